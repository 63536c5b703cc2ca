"""Sources: the tables that an artefact reads, at the versions that a refresh is about, and their changes since the last
one.

A refresh pins each source to one snapshot. Changes are read as the log has them, without adding them up: a row that
went and came is two rows of opposite weights. Files that were only rewritten (OPTIMIZE) are not read. `net_changes`
adds them up first, for artefacts that cannot compute with a row that was mended since.

The changes may not be there. Files may have been vacuumed and log entries cleaned up, a table may have been dropped and
made again under its name, and a column may have become something else. `Unavailable` says so, with the reason for
people.

**Identities.** A table that is made again under its name has another id in its log. Under column mapping a column has a
name inside the data files that it never gives up; one that was dropped and added again under its old name is another
column, of the same name and type, and old files read under the new schema would give values that were never read
before. So the frontier keeps, with each version, the id of the table and the names inside files of the columns that
were read, those of nested fields with them. Without column mapping a column is its name, and only the table's id is
kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.base.frontier import Frontier, TableIdentity
from headwater.base.kinds import KindWords, words_of
from headwater.base.schema import DeltaType, Field, spark_type
from headwater.derived.environment import Environment
from headwater.lake import partitions, snapshot
from headwater.lake.changes import FileChange, change_files, read_change, stream_changes
from headwater.lake.published import is_built, kind_of
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct

__all__ = ["Input", "Nothing", "Sources", "Unavailable", "check_columns", "identity_of", "renamed"]


class Unavailable(Exception):
    """The changes of a source cannot be had; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Input:
    """What an artefact reads of a table.

    Parameters
    ----------
    relation : str
        what the artefact calls it
    table : str
        its name in the lake
    schema : pa.Schema
        the columns of the table when the artefact was defined
    columns : tuple of str
        those that are read
    """

    relation: str
    table: str
    schema: pa.Schema
    columns: tuple[str, ...]

    @property
    def read(self) -> pa.Schema:
        """The columns that are read."""
        return pa.schema([self.schema.field(c) for c in self.columns])


@dataclass(frozen=True)
class Nothing:
    """A table before its first version: a relation without rows."""

    schema: pa.Schema

    def read(self, columns: Sequence[str], conjuncts: Sequence[Conjunct]) -> pa.RecordBatchReader:
        """No rows."""
        del conjuncts
        schema = pa.schema([self.schema.field(c).with_nullable(True) for c in columns])
        return pa.RecordBatchReader.from_batches(schema, iter(()))


@dataclass(frozen=True)
class Sources:
    """The sources of an artefact, pinned to what a refresh is to reflect.

    Parameters
    ----------
    reader, kind
        the name of the artefact, and what its kind is called
    inputs : sequence of Input
        what it reads
    since : Frontier
        what it reflects already, with the identities of the tables then
    pinned : dict of str to Snapshot
        each source at the version that it is to reflect
    """

    reader: str
    kind: KindWords
    inputs: Sequence[Input]
    since: Frontier
    pinned: dict[str, Snapshot]

    @classmethod
    def pin(
        cls,
        reader: str,
        inputs: Iterable[Input],
        since: Frontier,
        until: Frontier | None,
        environment: Environment,
        *,
        kind: KindWords,
        newest: Mapping[str, Snapshot] = MappingProxyType({}),
        unbuilt: bool = False,
    ) -> Sources:
        """The newest version of each source, or that of ``until``; never one before ``since``.

        ``kind`` is the reader's, for errors, and ``newest`` are sources that were looked at already. A source that is
        an artefact which was never built is an error, unless its version is asked for, or ``unbuilt`` says that it is
        about to be built.
        """
        read = tuple(inputs)
        pinned: dict[str, Snapshot] = {}
        for name in sorted({one.table for one in read}):
            have = since.get(name)
            want = None if until is None else until.get(name)
            if until is not None and want is None and have is None:
                continue
            now = _newest(reader, kind, name, since, environment, newest)
            if until is None:
                if not (unbuilt or is_built(now)):
                    raise InputError.source_not_built(reader, name, kind, words_of(kind_of(now) or ""))
                pinned[name] = now
                continue
            wanted = max(v for v in (want, have) if v is not None)
            pinned[name] = now if now.version == wanted else snapshot.at_version(now.storage, wanted)
        return cls(reader, kind, read, since, pinned)

    @cached_property
    def frontier(self) -> Frontier:
        """What the artefact reflects afterwards, and of which tables."""
        versions = Frontier({name: base.version for name, base in self.pinned.items()})
        return versions.identified({name: self._identity(name, base) for name, base in self.pinned.items()})

    def _identity(self, name: str, base: Snapshot) -> TableIdentity:
        return identity_of(base, (c for one in self.inputs if one.table == name for c in one.columns))

    def mistaken(self, name: str) -> list[str]:
        """Columns of a source that were others of the same names when it was last read."""
        base, known = self.pinned[name], self.since.identities.get(name)
        old = known.columns if known is not None else {}
        if not old:
            if base.mapping_mode == "none" or name not in self.since:
                return []
            old = self._identity(name, snapshot.at_version(base.storage, self.since[name])).columns
        return _differing(old, _column_identities(base, old))

    @cached_property
    def replaced(self) -> list[str]:
        """Sources whose names stand for another table than before."""
        return self.since.replaced_in(self.frontier)

    # -- may the changes be followed? ------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `Unavailable` if a source is not what it was, and an error if it cannot be read as defined at all."""
        self.check_columns()
        for name in self.replaced:
            raise Unavailable(f"`{name}` is another table than before")
        for name, base in self.pinned.items():
            if base.version < self.since.get(name, -1):
                raise Unavailable(f"`{name}` is at version {base.version}, and was at {self.since[name]}")
            self._check_identities(name)

    def check_columns(self) -> None:
        """Raise an error if the sources do not have the columns that are read."""
        for one in self.inputs:
            if one.table in self.pinned:
                check_columns(self.reader, one, self.pinned[one.table], self.kind)

    def _check_identities(self, name: str) -> None:
        try:
            others = self.mistaken(name)
        except NotFoundError as e:
            raise Unavailable(f"what the columns of `{name}` were is not known any more: {e.message}") from None
        if others:
            raise Unavailable(f"`{others[0]}` of `{name}` is another column than before, of the same name")

    @cached_property
    def files(self) -> dict[str, list[FileChange]]:
        """The files of each source that hold its changes; raises `Unavailable`."""
        found = {}
        for name, base in self.pinned.items():
            after = self.since.get(name, -1)
            try:
                found[name] = change_files(base, after) if after < base.version else []
            except (NotFoundError, SchemaError) as e:
                raise Unavailable(f"the changes of `{name}` since version {after} are gone: {e.message}") from None
        return found

    def check_files(self) -> None:
        """Raise `Unavailable` if files that hold changes were vacuumed;
        those that the tables still have are not asked for.
        """
        for name, files in self.files.items():
            base = self.pinned[name]
            gone = next((p for p in _superseded(base, files) if not base.storage.exists(p)), None)
            if gone is not None:
                after = self.since.get(name, -1)
                raise Unavailable(
                    f"the changes of `{name}` since version {after} are gone: its file `{gone}` is missing"
                )

    def changed_rows(self) -> dict[str, int]:
        """How many rows of each source have changed, as far as the log tells; raises `Unavailable`."""
        found = {}
        for name, files in self.files.items():
            try:
                found[name] = sum(_rows_of(self.pinned[name], f) for f in files)
            except NotFoundError as e:
                raise Unavailable(f"the changes of `{name}` cannot be read: {e.message}") from None
        return found

    def total_rows(self) -> int:
        """How many rows all sources have."""
        return sum(map(self.rows_of, self.pinned))

    def rows_of(self, name: str) -> int:
        """How many rows a source has."""
        return _live_rows(self.pinned[name]) if name in self.pinned else 0

    # -- reading ---------------------------------------------------------------------------------------------------

    def changes(self, one: Input) -> Iterator[pa.RecordBatch]:
        """The changed rows of a source with their weights, in batches."""
        base = self.pinned.get(one.table)
        if base is None or not self.files[one.table]:
            return
        names = [base.schema.field(c).name for c in one.columns]
        yield from _available(one, (b for f in self.files[one.table] for b in read_change(base, f, names)))

    def net_changes(self, one: Input) -> Iterator[pa.RecordBatch]:
        """The same added up: a row that came and went is not among them."""
        base = self.pinned.get(one.table)
        if base is None or not self.files[one.table]:
            return
        names = [base.schema.field(c).name for c in one.columns]
        yield from _available(one, stream_changes(base, self.since.get(one.table, -1), names))

    def rows(self, one: Input) -> Iterator[pa.RecordBatch]:
        """All rows of a source, in batches."""
        base = self.pinned.get(one.table)
        if base is None:
            return
        names = [base.schema.field(c).name for c in one.columns]
        for batch in scan(base, names):
            yield renamed(batch, one.columns)

    def relations(self) -> dict[str, Snapshot | Nothing]:
        """What the relations stand for."""
        return {
            one.relation: self.pinned[one.table] if one.table in self.pinned else Nothing(one.schema)
            for one in self.inputs
        }


def _newest(
    reader: str, kind: KindWords, name: str, since: Frontier, environment: Environment, looked: Mapping[str, Snapshot]
) -> Snapshot:
    """A source as it is now, or as it was looked at; unless the artefact is further already, by another refresh."""
    known = looked.get(name)
    if known is not None:
        identity = since.identities.get(name)
        same = identity is not None and identity.id == known.state.metadata.id
        if not same or known.version >= since.get(name, -1):
            return known
    try:
        return environment.table(name).snapshot
    except NotFoundError as e:
        if e.code != "E1101":
            raise
        raise NotFoundError.source(reader, name, e.hint or "", environment.root.url, kind) from None


def check_columns(reader: str, one: Input, base: Snapshot, kind: KindWords) -> None:
    """Raise if the columns that an artefact reads of a table are not what they were when it was defined."""
    now = {f.name.lower(): f for f in base.arrow_schema}
    for f in one.read:
        found = now.get(f.name.lower())
        if found is None:
            raise SchemaError.source_changed(reader, one.table, f"it has no column `{f.name}` any more", kind)
        if found.type != f.type:
            was, is_now = spark_type(f.type), spark_type(found.type)
            what = f"its column `{f.name}` is of type {is_now}, and was of type {was}"
            raise SchemaError.source_changed(reader, one.table, what, kind)
        if found.nullable and not f.nullable:
            what = f"its column `{f.name}` may be null, which it could not be"
            raise SchemaError.source_changed(reader, one.table, what, kind)


def _available(one: Input, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Changes under the names that the definition has for the columns; raises `Unavailable` if they are gone."""
    try:
        for batch in batches:
            yield renamed(batch, one.columns)
    except (NotFoundError, SchemaError) as e:
        raise Unavailable(f"the changes of `{one.table}` cannot be read: {e.message}") from None


def renamed(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """A batch under the names that a definition has for its columns; what stands behind them keeps its name."""
    names = [*columns, *batch.schema.names[len(columns) :]]
    return batch if batch.schema.names == names else batch.rename_columns(names)


def _superseded(base: Snapshot, files: Sequence[FileChange]) -> Iterator[str]:
    """The files of a change that the newest version does not need, and a vacuum may have taken;
    those elsewhere are left out.
    """
    live = {f.deletion_vector.unique_id for f in base.files.values() if f.deletion_vector is not None}
    for change in files:
        sides = [f for f in (change.before, change.after) if f is not None]
        path = partitions.decode_path(sides[0].path)
        if sides[0].path not in base.files and "://" not in path and not path.startswith(("/", "file:")):
            yield path
        for vector in (f.deletion_vector for f in sides):
            if vector is not None and vector.storage_type == "u" and vector.unique_id not in live:
                yield vector.relative_path()


def _rows_of(base: Snapshot, change: FileChange) -> int:
    if change.feed:
        assert change.after is not None
        with base.storage.open_input(partitions.decode_path(change.after.path)) as source:
            return int(pq.read_metadata(source).num_rows)
    if change.before is not None and change.after is not None:
        return abs(change.after.num_deleted - change.before.num_deleted)
    file = change.after or change.before
    assert file is not None
    if file.num_records is not None:
        return file.num_records - file.num_deleted
    return max(1, round(file.size / _row_bytes(base)))


def _live_rows(base: Snapshot) -> int:
    if base.num_rows is not None:
        return base.num_rows
    return round(sum(f.size for f in base.files.values()) / _row_bytes(base))


def _row_bytes(base: Snapshot) -> float:
    """How many bytes of file a row takes, by the files that say how many they have."""
    known = [(f.size, f.num_records) for f in base.files.values() if f.num_records]
    rows = sum(n for _, n in known if n)
    return sum(size for size, _ in known) / rows if rows else 32.0


# -- identities -----------------------------------------------------------------------------------------------------


def identity_of(base: Snapshot, columns: Iterable[str]) -> TableIdentity:
    """Which table this is, and what the columns are that are read of it."""
    mapped = base.mapping_mode != "none"
    return TableIdentity(base.state.metadata.id, _column_identities(base, columns) if mapped else {})


def _column_identities(base: Snapshot, columns: Iterable[str]) -> dict[str, str]:
    """What some columns of a table are; those that it does not have are left out."""
    mapped = base.mapping_mode != "none"
    known = {f.name.lower(): f for f in base.schema.fields}
    names = sorted({c.lower() for c in columns})
    return {name: _identity(known[name], mapped=mapped) for name in names if name in known}


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The columns that were something else, or are not there any more."""
    return [name for name, was in old.items() if new.get(name) != was]


def _identity(f: Field, *, mapped: bool) -> str:
    return (f.physical_name if mapped else f.name) + _inside(f.type, mapped=mapped)


def _inside(dtype: DeltaType, *, mapped: bool) -> str:
    if isinstance(dtype, str):
        return ""
    if dtype["type"] == "struct":
        return "(" + ",".join(_identity(Field.from_json(f), mapped=mapped) for f in dtype["fields"]) + ")"
    return "".join(_inside(dtype[k], mapped=mapped) for k in ("elementType", "keyType", "valueType") if k in dtype)
