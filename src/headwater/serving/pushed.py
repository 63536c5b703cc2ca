"""Pushed tables: online tables whose rows come through the API of a server, and from nowhere else.

A table is made with its key and columns, and is empty. Writing rows replaces those with the same keys; deleting names
keys. Each write is one commit of the table's log (`commits`): an overlay over the base, so that it costs what it
writes. Overlays take in smaller ones as they come, and when they are some percent of the base, it takes in all of them
in the background, while writes go on (`merging`). The frontier of a pushed table is its own name at the number of the
last write, ``clicks@7``: whoever has written can ask for an answer that has seen it.

Any number of threads and processes may write to one table: the lock of its folder lets one at a time build on what the
one before it has committed. What is wrong with any row refuses the write as a whole. A key that occurs twice in one
write is wrong: which of its rows would count is not ours to guess.

The log of records holds as definition, version 1::

    {"version": 1, "origin": "push", "key": [...], "columns": [["<name>", "<dtype>", <nullable>], …],
     "ttl_ms": <n> or null, "event_time": "<column>" or null}
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.base import faults
from headwater.base.errors import HeadwaterError, InputError, NotFoundError, SchemaError
from headwater.base.frontier import Frontier
from headwater.base.storage import Storage
from headwater.derived import upkeep
from headwater.lake.catalog import RECORDS, Catalog
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, sampled, stored_schema, taken
from headwater.serving.commits import Change, Commits, Head
from headwater.serving.dtypes import dtype_name, parse_dtype
from headwater.serving.keys import KeyBatch
from headwater.serving.layers import Layers
from headwater.serving.merging import compacted, needs_compaction, overlaid, replace_layers
from headwater.serving.pushed_rows import as_table, fitted, once
from headwater.serving.record import LayerEntry, OnlineRecord
from headwater.serving.reserved import RESERVED
from headwater.serving.store import KIND_NAME, OnlineStore

__all__ = ["PushedCompaction", "PushedDefinition", "PushedTables", "PushedWrite"]

_ORIGIN = "push"
_SMALL_ROWS = 100_000
"""A table of so many rows is laid out anew when its base is written, which takes moments."""
_TWICE = "E1704"


@dataclass(frozen=True, slots=True)
class PushedDefinition:
    """What a table is like: its columns have those of the key first."""

    key: tuple[str, ...]
    schema: pa.Schema
    ttl_ms: int | None = None
    event_time: str | None = None

    @classmethod
    def of(
        cls, key: Sequence[str], schema: pa.Schema, ttl_ms: int | None = None, event_time: str | None = None
    ) -> PushedDefinition:
        """A definition, checked."""
        if isinstance(key, str) or not key or len(set(key)) != len(key):
            raise InputError.bad_argument("key", key, "the names of the columns that rows are found by, each once")
        if len(set(schema.names)) != len(schema.names):
            raise SchemaError.duplicate_columns(sorted({n for n in schema.names if schema.names.count(n) > 1}))
        stored = stored_schema(schema, key)
        for name in stored.names:
            if name in RESERVED or not name:
                expected = "another name: answers have a column of their own by this one" if name else "a name"
                raise InputError.bad_argument("columns", name, expected)
        if event_time is not None:
            if event_time not in stored.names:
                raise NotFoundError.column(event_time, stored.names)
            kind = stored.field(event_time).type
            if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
                raise InputError.bad_argument("event_time", event_time, "a column of type timestamp or date")
        if ttl_ms is not None and (event_time is None or ttl_ms <= 0):
            what = "more than nothing" if event_time else "with event_time, the column that says how old a row is"
            raise InputError.bad_argument("ttl_ms", ttl_ms, what)
        return cls(tuple(key), stored, ttl_ms, event_time)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> PushedDefinition:
        """Read what `to_json` gives."""
        fields = [pa.field(name, parse_dtype(dtype), nullable) for name, dtype, nullable in found["columns"]]
        return cls(tuple(found["key"]), pa.schema(fields), found["ttl_ms"], found["event_time"])

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "version": 1,
            "origin": _ORIGIN,
            "key": list(self.key),
            "columns": [[f.name, dtype_name(f.type), f.nullable] for f in self.schema],
            "ttl_ms": self.ttl_ms,
            "event_time": self.event_time,
        }

    def __str__(self) -> str:
        columns = ", ".join(f"{f.name} {dtype_name(f.type)}{'' if f.nullable else ' not null'}" for f in self.schema)
        return f"{columns} by {', '.join(self.key)}"


@dataclass(frozen=True, slots=True)
class PushedWrite:
    """What became of a write: how many rows it wrote or deleted, and the version that shows them."""

    rows: int
    version: int
    frontier: Frontier


class PushedTables:
    """The pushed tables below a data folder.

    Parameters
    ----------
    root : Storage
        the data folder
    background : bool
        let a thread of this process take in overlays when they have grown; without it, somebody has to call `compact`

    Examples
    --------
    >>> import tempfile
    >>> from headwater.base.storage import open_storage
    >>> tables = PushedTables(open_storage(tempfile.mkdtemp()))
    >>> tables.create("clicks", key=["user"], schema=pa.schema([("user", pa.int64()), ("n", pa.int32())]))
    >>> print(tables.upsert("clicks", pa.table({"user": [1, 2], "n": pa.array([5, 7], pa.int32())})).frontier)
    clicks@2
    >>> tables.delete("clicks", [2, 3]).rows
    1
    """

    def __init__(self, root: Storage, *, background: bool = True) -> None:
        self.root = root
        self.background = background

    def names(self) -> list[str]:
        """The pushed tables that there are."""
        names = self.root.folders(f"{RECORDS}/{KIND_NAME}")
        return [name for name in names if _is_pushed(Commits(self.root, name).head())]

    def definition(self, name: str) -> PushedDefinition:
        """What a table is like."""
        return self._definition(name, self._commits(name).head())

    # -- making and dropping ---------------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        *,
        key: Sequence[str],
        schema: pa.Schema,
        ttl_ms: int | None = None,
        event_time: str | None = None,
        exists_ok: bool = False,
    ) -> None:
        """Make an empty table; with ``exists_ok``, one that is there already with the same columns is fine.

        Its ttl and event time become those that are given.
        """
        commits, meant = self._commits(name), PushedDefinition.of(key, schema, ttl_ms, event_time)

        def attempt(head: Head, number: int) -> Change | None:
            if head.record is None or head.definition is None:
                return self._built(commits.store, meant, (), number, Frontier({name: number}))
            if not exists_ok or not _is_pushed(head):
                raise InputError.already_exists(name, self.root.url)
            have = PushedDefinition.from_json(head.definition)
            if (have.key, have.schema) != (meant.key, meant.schema):
                raise InputError.other_definition(name, str(have), self.root.url)
            return None if have == meant else Change(meant.to_json(), head.record, None)

        commits.change(attempt, alone=False)

    def drop(self, name: str) -> None:
        """Delete a table with all its rows."""
        commits = self._commits(name)
        self._definition(name, commits.head())
        upkeep.cancel(self._upkeep_key(name))
        commits.remove()

    # -- rows ------------------------------------------------------------------------------------------------------

    def upsert(self, name: str, rows: pa.Table | pa.RecordBatch | pa.RecordBatchReader) -> PushedWrite:
        """Write rows: those with keys that there are replace them as a whole. All of them count at the same moment."""
        given = as_table(rows)
        where = self._where(name)

        def attempt(definition: PushedDefinition, head: Head, layers: Layers, number: int) -> _Written | None:
            batch = fitted(given, definition.schema, definition.key, where)
            if not batch.num_rows:
                return None
            keys = layers.codec.encode([batch.column(column) for column in definition.key])
            had = layers.find(keys).records != 0
            try:
                stack = self._overlaid(name, head, layers, [batch], None, number)
            except InputError as e:
                if e.code == _TWICE:
                    e.advice = ("nothing was written; give each key once in a write",)
                raise
            return _Written(stack, batch.num_rows, int(np.count_nonzero(~had)))

        return self._write(name, attempt)

    def delete(self, name: str, keys: Any) -> PushedWrite:
        """Delete the rows of keys, whatever `KeyCodec.keys` takes; keys without a row are fine."""
        where = self._where(name)

        def attempt(definition: PushedDefinition, head: Head, layers: Layers, number: int) -> _Written | None:
            given = layers.codec.keys(keys)
            if given.nulls is not None:
                raise SchemaError.pushed_values(", ".join(definition.key), "the key", "a key is null", where)
            there = once(given)
            there = taken(there, np.flatnonzero(layers.find(there).records))
            if not len(there):
                return None
            return _Written(self._overlaid(name, head, layers, [], there, number), len(there), -len(there))

        return self._write(name, attempt)

    def _overlaid(
        self,
        name: str,
        head: Head,
        layers: Layers,
        batches: Iterable[pa.RecordBatch],
        deleted: KeyBatch | None,
        number: int,
    ) -> tuple[LayerEntry, ...]:
        assert head.record is not None
        faults.point("online.overlay.before_write", name)
        store = OnlineStore(self.root, name)
        return overlaid(store, head.record, layers, batches, deleted, number, where=self._where(name))

    def _write(
        self, name: str, attempt: Callable[[PushedDefinition, Head, Layers, int], _Written | None]
    ) -> PushedWrite:
        """Commit what an attempt has written; the attempt may be repeated on what others have committed meanwhile."""
        commits, done = self._commits(name), 0

        def change(head: Head, number: int) -> Change | None:
            nonlocal done
            definition = self._definition(name, head)
            assert head.record is not None and head.definition is not None
            made = attempt(definition, head, commits.store.layers(head.record), number)
            done = 0 if made is None else made.rows
            if made is None:
                return None
            frontier = Frontier({name: number})
            rows = head.record.rows + made.added
            record = OnlineRecord(layers=made.layers, rows=rows, frontier=frontier, reach=frontier)
            return Change(head.definition, record, "incremental", made.rows, made.rows)

        head = commits.change(change, alone=False)
        assert head.record is not None
        if done and self.background and needs_compaction(head.record):
            upkeep.later(self._upkeep_key(name), lambda: self._compact_quietly(name), what=f"compacting `{name}`")
        return PushedWrite(done, head.number, head.record.frontier)

    # -- upkeep ----------------------------------------------------------------------------------------------------

    def compact(self, name: str, *, always: bool = False) -> bool:
        """Let the base take in the overlays, if they have grown or ``always``; whether that was done.

        A small table is laid out anew, as its rows are now, while writes wait. A large one is copied while they go on.
        """
        commits = self._commits(name)
        head = commits.head()
        definition, record = self._definition(name, head), head.record
        assert record is not None
        if len(record.layers) < 2 or not (always or needs_compaction(record)):
            return False
        if record.rows <= _SMALL_ROWS:
            return self._lay_out(commits, definition)
        return self._take_in(commits, head)

    def _lay_out(self, commits: Commits, definition: PushedDefinition) -> bool:
        def attempt(head: Head, number: int) -> Change | None:
            if head.record is None or head.record.rows > 2 * _SMALL_ROWS:
                return None
            found = commits.store.newest()
            assert found is not None
            made = self._built(commits.store, definition, found.read(), number, head.record.frontier)
            return Change(head.definition or {}, replace(made.record, last=head.record.last), None)

        before = commits.head().number
        return commits.change(attempt, alone=False).number != before

    def _take_in(self, commits: Commits, head: Head) -> bool:
        record, store = head.record, commits.store
        assert record is not None
        entry = compacted(store, store.layers(record), head.number + 1)
        done = False

        def attempt(now: Head, _: int) -> Change | None:
            nonlocal done
            layers = None if now.record is None else replace_layers(now.record.layers, record.layers, entry)
            there = all(os.path.exists(os.path.join(store.folder.folder, one)) for one in entry.files)
            if layers is None or not there or now.record is None:
                return None
            done = True
            return Change(now.definition or {}, replace(now.record, layers=layers), None)

        try:
            commits.change(attempt, alone=False)
        finally:
            if not done:
                store.delete_files(entry.files)
        return done

    def _compact_quietly(self, name: str) -> None:
        try:
            self.compact(name)
        except NotFoundError:
            return  # it was dropped, or written so often that the files are gone: the next write asks again

    def _built(
        self,
        store: OnlineStore,
        meant: PushedDefinition,
        batches: Iterable[pa.RecordBatch],
        number: int,
        frontier: Frontier,
    ) -> Change:
        """A base that holds rows, laid out as they are."""
        head, rows = sampled(batches)
        layout = layout_of(meant.schema, meant.key, head, ordered=False)
        shape = Shape(layout, new_seed())
        entry = LayerEntry.of(build_layer(rows, shape, lambda part: store.new_file(number, part)))
        store.upload(entry.files)
        record = OnlineRecord(layers=(entry,), rows=entry.rows, frontier=frontier, reach=frontier)
        return Change(meant.to_json(), record, "full", entry.rows, entry.rows)

    # -- names -----------------------------------------------------------------------------------------------------

    def _commits(self, name: str) -> Commits:
        Catalog.check_name(name)  # a name becomes a part of paths
        return Commits(self.root, name)

    def _definition(self, name: str, head: Head) -> PushedDefinition:
        if head.definition is None:
            raise NotFoundError.table(name, self.names(), self.root.url)
        if not _is_pushed(head):
            raise SchemaError.not_pushed(name, self.root.url)
        return PushedDefinition.from_json(head.definition)

    def _where(self, name: str) -> str:
        return f"table {name}"

    def _upkeep_key(self, name: str) -> str:
        return f"pushed {self.root.url} {name}"


class PushedCompaction:
    """Takes in the overlays of all pushed tables below a data folder,
    in a process that answers nobody (`Publisher`).
    """

    name = "_pushed"

    def __init__(self, root: Storage, *, every_s: float = 2.0) -> None:
        self.tables = PushedTables(root, background=False)
        self.every_s = every_s
        self.error: HeadwaterError | None = None

    def tick(self) -> float:
        """Compact what has grown."""
        self.error = None
        try:
            for name in self.tables.names():
                self.tables._compact_quietly(name)
        except HeadwaterError as e:
            self.error = e.with_traceback(None)
        return self.every_s


@dataclass(frozen=True, slots=True)
class _Written:
    """The layers with a write, how many rows it was about, and by how many the table grows."""

    layers: tuple[LayerEntry, ...]
    rows: int
    added: int


def _is_pushed(head: Head) -> bool:
    return head.definition is not None and head.definition.get("origin") == _ORIGIN
