"""Sources: what each scan of a query reads.

A query pins every table it names once, so that all its scans of one table see one version. For each scan there is a
`Source`: the pinned snapshot, the columns asked for, and the files that the log's statistics do not rule out; or, where
an index of the table knows them, just the rows that may meet the query's conditions (`NarrowedSource`). An engine reads
the files itself where it can (`paths`, `vectors`, `constants`), and else takes the rows as Arrow
(`__arrow_c_stream__`), which works for every table the lake can read, on every storage.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.derived.narrowing import Narrowed
from headwater.lake import partitions
from headwater.lake.actions import AddFile
from headwater.lake.find import candidate_files
from headwater.lake.relation import Relation
from headwater.lake.scan import Positions, map_files, read_file, scan
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct
from headwater.sql.demands import Demand

__all__ = ["NarrowedSource", "RelationSource", "Source", "StreamedSource", "TableSource"]

_GLOB = frozenset("*?[{")


# By file: the columns that are known to be in it, and whether these are all.
_inside: OrderedDict[tuple[str, str], tuple[frozenset[str], bool]] = OrderedDict()
_MOST_FILES = 200_000


def columns_inside(snapshot: Snapshot, add: AddFile, wanted: AbstractSet[str]) -> frozenset[str]:
    """Columns that a file holds, in lower case: those of its statistics, or all where these leave one open.

    Files never change, so what was found out is kept.
    """
    key = (snapshot.where, add.path)
    if key not in _inside:
        try:
            counted = json.loads(add.stats or "{}").get("nullCount", ())
        except ValueError:
            counted = ()
        _remember(key, counted, whole=False)
    held, whole = _inside[key]
    if not whole and not wanted <= held:
        with snapshot.storage.open_input(partitions.decode_path(add.path), size=add.size) as file:
            _remember(key, pq.read_schema(file).names, whole=True)
    return _inside[key][0]


_shapes: dict[frozenset[str], frozenset[str]] = {}


def _remember(key: tuple[str, str], names: Iterable[str], *, whole: bool) -> None:
    lower = frozenset(n.lower() for n in names)
    _inside[key] = (_shapes.setdefault(lower, lower), whole)  # thousands of files share a few sets
    while len(_inside) > _MOST_FILES:
        _inside.popitem(last=False)


class Source(Protocol):
    """The rows of one scan; each ``__arrow_c_stream__`` reads them anew."""

    @property
    def schema(self) -> pa.Schema: ...

    def batches(self) -> Iterator[pa.RecordBatch]: ...

    def describe(self) -> str:
        """One line for EXPLAIN."""
        ...


class StreamedSource(Source):
    """Arrow's stream interface over ``batches``."""

    def reader(self) -> pa.RecordBatchReader:
        """A fresh pass over the rows."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class RelationSource(StreamedSource):
    """Rows that come from Python: the answer of a table function, or a table with the addresses of its rows."""

    relation: Relation
    columns: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...] = ()

    @classmethod
    def of(cls, relation: Relation, demand: Demand) -> RelationSource:
        return cls(relation, demand.columns or tuple(relation.schema.names[:1]), demand.conjuncts)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.relation.schema.field(c).with_nullable(True) for c in self.columns])

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.relation.read(self.columns, self.conjuncts):
            yield pa.RecordBatch.from_arrays([batch.column(c) for c in self.columns], schema=self.schema)

    def describe(self) -> str:
        return f"rows of a function, {len(self.columns)} columns"


@dataclass(frozen=True)
class TableSource(StreamedSource):
    """A pinned table, the columns that a scan reads of it, and conditions that its rows have to meet.

    With ``only``, just these files of it.
    """

    snapshot: Snapshot
    columns: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...] = ()
    only: frozenset[str] | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, demand: Demand) -> TableSource:
        # A scan without columns still has rows to count.
        columns = demand.columns or tuple(snapshot.schema.names[:1])
        return cls(snapshot, columns, demand.conjuncts)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.snapshot.schema.field(c).arrow.with_nullable(True) for c in self.columns])

    @cached_property
    def files(self) -> list[AddFile]:
        """The files that may hold rows that count."""
        found = candidate_files(self.snapshot, self.conjuncts)
        return found if self.only is None else [a for a in found if a.path in self.only]

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in scan(self.snapshot, self.columns, self.files, conjuncts=self.conjuncts):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)

    # ------------------------------------------------------------------ for engines that open files themselves

    @cached_property
    def paths(self) -> list[str] | None:
        """Where the files lie on the local disk, or None if an engine had better take `batches`."""
        storage, found = self.snapshot.storage, []
        if storage.local_path("") is None or self._renamed_inside:
            return None
        for add in self.files:
            path = storage.local_path(partitions.decode_path(add.path))
            if path is None or not _GLOB.isdisjoint(path):
                return None
            found.append(path)
        return found

    @property
    def _renamed_inside(self) -> bool:
        """Whether files know the columns by ids, or a nested field by another name."""
        mode = self.snapshot.mapping_mode
        nested = any(pa.types.is_nested(f.type) for f in self.schema)
        return mode == "id" or (mode != "none" and nested)

    @cached_property
    def stored(self) -> dict[str, str]:
        """The name inside the files of each column that they hold."""
        mapped = self.snapshot.mapping_mode != "none"
        split_by = set(self.snapshot.partition_columns)
        fields = [self.snapshot.schema.field(c) for c in self.columns if c not in split_by]
        return {f.name: f.physical_name if mapped else f.name for f in fields}

    def by_lacking(self) -> dict[frozenset[str], list[AddFile]]:
        """The files, by the columns that they should hold and do not, since they are older than those columns."""
        wanted = {inside.lower(): name for name, inside in self.stored.items()}
        found: dict[frozenset[str], list[AddFile]] = {}
        for add in self.files:
            lacking = wanted.keys() - columns_inside(self.snapshot, add, wanted.keys())
            found.setdefault(frozenset(wanted[c] for c in lacking), []).append(add)
        return found

    def some_column(self, add: AddFile) -> dict[str, str]:
        """Any column that ``add`` holds, for a scan that asks for none: a relation needs one."""
        mapped, split_by = self.snapshot.mapping_mode != "none", self.snapshot.partition_columns
        held = [f for f in self.snapshot.schema.fields if f.name not in split_by]
        names = {f.name: f.physical_name if mapped else f.name for f in held}
        inside = columns_inside(self.snapshot, add, {n.lower() for n in names.values()})
        first = next(n for n in names if names[n].lower() in inside)
        return {first: names[first]}

    def constants(self, files: Sequence[AddFile]) -> Mapping[str, list[object]]:
        """The value of each partition column that is asked for, file by file."""
        mapped = self.snapshot.mapping_mode != "none"
        found: dict[str, list[object]] = {}
        for name in self.columns:
            if name not in self.stored:
                f = self.snapshot.schema.field(name)
                key = f.physical_name if mapped else f.name
                texts = [a.partition_values.get(key, a.partition_values.get(name)) for a in files]
                found[name] = [partitions.parse(text, f.arrow.type).as_py() for text in texts]
        return found

    @property
    def is_plain(self) -> bool:
        """Whether the files, as they lie there, are the rows: nothing deleted, renamed or kept in the log."""
        return (
            self.paths is not None
            and len(self.stored) == len(self.columns)
            and all(a.deletion_vector is None for a in self.files)
            and self.snapshot.mapping_mode == "none"
        )

    def describe(self) -> str:
        now = self.snapshot
        skipped = len(now.files) - len(self.files)
        rows = [a.num_records for a in self.files]
        counted = "" if None in rows else f", at most {sum(r for r in rows if r is not None):,} rows"
        vectors = sum(1 for a in self.files if a.deletion_vector is not None)
        return (
            f"version {now.version}: {len(self.files)} of {len(now.files)} files ({skipped} skipped){counted}, "
            f"{sum(a.size for a in self.files):,} bytes, {len(self.columns)} of {len(now.schema.fields)} columns"
            + (f", {vectors} with deletion vectors" if vectors else "")
        )


@dataclass(frozen=True)
class NarrowedSource(StreamedSource):
    """The rows of a table that may meet the conditions of a scan, as something derived from it knows them, and why.

    ``found`` are rows by file and position. ``rest`` are the files that are scanned: all of them where nothing is left
    out.
    """

    found: Mapping[str, Positions]
    rest: TableSource
    note: str

    @classmethod
    def of(cls, whole: TableSource, narrowed: Narrowed) -> NarrowedSource:
        if narrowed.candidates is None:
            return cls({}, whole, narrowed.note)
        may = {add.path for add in whole.files}
        found = {path: rows for path, rows in narrowed.candidates.rows.items() if path in may}
        return cls(found, replace(whole, only=frozenset(narrowed.candidates.unknown)), narrowed.note)

    @property
    def schema(self) -> pa.Schema:
        return self.rest.schema

    @property
    def named(self) -> FoundSource:
        """The rows that are known, without those of files that are scanned."""
        return FoundSource(self.found, self.rest)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.named.batches()
        yield from self.rest.batches()

    def describe(self) -> str:
        if self.rest.only is None:
            return f"{self.rest.describe()}; {self.note}"
        columns = f"{len(self.rest.columns)} of {len(self.rest.snapshot.schema.fields)} columns"
        scanned = len(self.rest.files)
        more = f"; {scanned} file{'' if scanned == 1 else 's'} without it scanned" if scanned else ""
        return f"version {self.rest.snapshot.version}: {self.note}, {columns}{more}"


@dataclass(frozen=True)
class FoundSource(StreamedSource):
    """Rows of a table by file and position."""

    found: Mapping[str, Positions]
    table: TableSource

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        now, columns, schema = self.table.snapshot, self.table.columns, self.schema

        def read(item: tuple[str, Positions]) -> list[pa.RecordBatch]:
            path, rows = item
            return list(read_file(now, now.files[path], columns, only=rows))

        for batches in map_files(list(self.found.items()), read):
            for batch in batches:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def describe(self) -> str:
        return f"{sum(map(len, self.found.values())):,} rows of version {self.table.snapshot.version}"
