"""Snapshots: a table at one version, held and moved forward cheaply.

Opening a table with a thousand commits costs a checkpoint and a few small files; opening it again should cost
one listing. So the newest state of each table is kept for the process, and brought forward by the commits that
came since. A `Snapshot` itself never changes: whoever holds one reads one version, whatever others commit.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import InputError, NotFoundError
from headwater.base.schema import Field, Schema
from headwater.base.storage import Storage
from headwater.lake import log, protocol
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.physical import physical_field
from headwater.lake.skipping import FileIndex

__all__ = [
    "Snapshot",
    "Target",
    "at_timestamp",
    "at_version",
    "forget",
    "held_at",
    "is_held",
    "is_known",
    "is_newest_known",
    "latest",
    "remember",
    "resolve",
]


class Snapshot:
    """A table at one version: schema, properties and live files."""

    def __init__(self, storage: Storage, state: log.LogState) -> None:
        protocol.check_readable(state.protocol, state.metadata, storage.url)
        self.storage = storage
        self.state = state

    def __repr__(self) -> str:
        return f"<Snapshot {self.storage.url} version {self.version}: {len(self.files)} files>"

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def timestamp_ms(self) -> int:
        return self.state.timestamp_ms

    @property
    def table_id(self) -> str:
        """The table's identity, which it keeps for life: one that was dropped and created again has another."""
        return self.state.metadata.id

    @property
    def schema(self) -> Schema:
        return self.state.metadata.schema

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return self.schema.arrow

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.state.metadata.partition_columns

    @property
    def configuration(self) -> Mapping[str, str]:
        return self.state.metadata.configuration

    @property
    def files(self) -> Mapping[str, AddFile]:
        return self.state.files

    @property
    def where(self) -> str:
        return self.storage.url

    def is_on(self, name: str) -> bool:
        return self.configuration.get(name, "false").lower() == "true"

    @property
    def writes_vectors(self) -> bool:
        """Whether deleted rows may be marked instead of rewriting files."""
        return self.is_on("delta.enableDeletionVectors") and protocol.supports(self.state.protocol, "deletionVectors")

    @property
    def writes_change_feed(self) -> bool:
        return self.is_on("delta.enableChangeDataFeed")

    @property
    def mapping_mode(self) -> str:
        return self.configuration.get("delta.columnMapping.mode", "none")

    @cached_property
    def constraints(self) -> dict[str, str]:
        """CHECK constraints by name, with the invariants of older tables."""
        prefix = "delta.constraints."
        checks = {k[len(prefix) :]: v for k, v in self.configuration.items() if k.startswith(prefix)}
        for f in self.schema.fields:
            if text := f.metadata.get("delta.invariants"):
                checks[f"invariant on {f.name}"] = str(json.loads(text)["expression"]["expression"])
        return checks

    @property
    def generated(self) -> list[Field]:
        return [f for f in self.schema.fields if f.generation]

    @cached_property
    def num_rows(self) -> int | None:
        """Live rows, if every file's statistics know."""
        counts = [f.num_records for f in self.files.values()]
        if any(c is None for c in counts):
            return None
        return sum(c for c in counts if c is not None) - sum(f.num_deleted for f in self.files.values())

    @cached_property
    def file_index(self) -> FileIndex:
        """What the log knows of the files' values, parsed once for all conditions on this snapshot."""
        return self.index_of(list(self.files.values()))

    def index_of(self, files: Sequence[AddFile]) -> FileIndex:
        mapped = self.mapping_mode != "none"
        names = {f.name: f.physical_name if mapped else f.name for f in self.schema.fields}
        return FileIndex(
            [f.stats for f in files],
            [f.partition_values for f in files],
            schema=pa.schema([physical_field(f, mapped=mapped) for f in self.schema.fields]),
            partition_columns=[names[c] for c in self.partition_columns],
        )

    def under(self, metadata: Metadata) -> Snapshot:
        """The same version seen through another definition of the table: what its rows are under those columns."""
        return Snapshot(self.storage, replace(self.state, metadata=metadata))

    def check_writable(self) -> None:
        protocol.check_writable(self.state.protocol, self.state.metadata, self.where)


Target = Storage | Snapshot
"""What an operation acts on: a table, or the snapshot of it that the caller has just resolved."""

_held: OrderedDict[str, Snapshot] = OrderedDict()
_lock = threading.Lock()


def latest(storage: Storage) -> Snapshot:
    """The newest snapshot of the table at ``storage``."""
    with _lock:
        held = _held.get(storage.url)
    state = log.load(storage) if held is None else log.advance(storage, held.state)
    if held is not None and state is held.state:
        return held
    return remember(storage, state)


def remember(storage: Storage, state: log.LogState) -> Snapshot:
    """The snapshot of ``state``, held for the next `latest` unless a newer one of the same table is."""
    made = Snapshot(storage, state)
    with _lock:
        held = _held.get(storage.url)
        same = held is not None and held.state.metadata.id == state.metadata.id
        if held is None or not same or held.version <= state.version:
            _held[storage.url] = made
        _held.move_to_end(storage.url)
        while len(_held) > max(1, settings.current().snapshot_cache):
            _held.popitem(last=False)
    return made


def resolve(target: Target) -> Snapshot:
    """The snapshot that an operation acts on: the one that its caller has resolved, or the newest."""
    return target if isinstance(target, Snapshot) else latest(target)


def is_known(storage: Storage) -> bool:
    """Whether a snapshot of the table is held, without a look at whether the table is still there."""
    with _lock:
        return storage.url in _held


def is_newest_known(base: Snapshot) -> bool:
    """Whether this process knows of no newer snapshot of the table, without looking."""
    with _lock:
        held = _held.get(base.storage.url)
    return held is not None and held.state is base.state


def held_at(storage: Storage, version: int) -> Snapshot | None:
    """The held snapshot, without a look at the log, if it is of that version."""
    with _lock:
        held = _held.get(storage.url)
    return held if held is not None and held.version == version else None


def is_held(storage: Storage) -> bool:
    """Whether the table is known, and the log that it is known from still lies there;
    False says nothing where that is slow to tell.
    """
    with _lock:
        found = _held.get(storage.url)
    return found is not None and storage.local_path("") is not None and storage.exists(log.commit_path(found.version))


def forget(storage: Storage) -> bool:
    """Hold no snapshot of the table any more; says whether one was held."""
    with _lock:
        return _held.pop(storage.url, None) is not None


def at_version(storage: Storage, version: int) -> Snapshot:
    """The snapshot of exactly ``version``."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InputError.bad_argument("version", version, "a version of the table, 0 or more")
    with _lock:
        held = _held.get(storage.url)
    if held is not None and held.version == version:
        return held
    return Snapshot(storage, log.load(storage, version))


def at_timestamp(storage: Storage, timestamp_ms: int) -> Snapshot:
    """The snapshot that was the newest at ``timestamp_ms``."""
    from headwater.lake.history import commit_times

    times = commit_times(storage)
    fitting = [v for v, t in times.items() if t <= timestamp_ms]
    if not fitting:
        first = min(times.values(), default=0)
        raise NotFoundError.timestamp(_iso(timestamp_ms), _iso(first), storage.url)
    return at_version(storage, max(fitting))


def _iso(timestamp_ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
