"""The change data feed: what each version did to a table's rows, as ``table_changes`` shows it.

A row that changed comes twice, as ``update_preimage`` and ``update_postimage``, with the version and time of the
commit. A commit that wrote entries of the feed is read from them; of any other, the rows of added files were inserted
and those of removed files deleted, and where only a file's deletion vector changed, the rows in the difference were
deleted.

As in Delta, the feed must have been on (``delta.enableChangeDataFeed``) all through the interval: before that, an
update left no trace of which old row became which new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, NotFoundError
from headwater.base.storage import Storage
from headwater.lake import changes, log, snapshot
from headwater.lake.actions import Commit
from headwater.lake.data_files import CHANGE_TYPE
from headwater.lake.history import commit_times
from headwater.lake.interval import MetadataHistory, read_commits
from headwater.lake.readable import timestamp_ms
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct

__all__ = ["Feed", "feed"]

COMMIT_VERSION, COMMIT_TIMESTAMP = "_commit_version", "_commit_timestamp"
_BY_WEIGHT = {1: "insert", -1: "delete"}
_EXTRA = (
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(COMMIT_VERSION, pa.int64()),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", tz="UTC")),
)


def feed(storage: Storage, start: int | str | datetime, end: int | str | datetime | None = None) -> Feed:
    """The changes of the versions from ``start`` to ``end`` (by default the newest), both with them.

    A number is a version. A text or datetime is a time: the feed then begins with the first version at or after it, and
    ends with the last one at or before it.
    """
    now = snapshot.latest(storage)
    first = _version(storage, now, "start", start, before=False)
    last = now.version if end is None else _version(storage, now, "end", end, before=True)
    if last < first:
        raise InputError.bad_argument("end", end, f"a version or time that is not before the start ({first})")
    until = now if last == now.version else snapshot.at_version(storage, last)
    _check_on(storage, until, first)
    return Feed(until, first)


def _version(storage: Storage, now: Snapshot, name: str, value: int | str | datetime, *, before: bool) -> int:
    if isinstance(value, str | datetime):
        asked = timestamp_ms(value)
        times = commit_times(storage)
        fitting = [v for v, t in times.items() if (t <= asked if before else t >= asked)]
        if not fitting:
            raise NotFoundError.no_commit(str(value), "before" if before else "after", storage.url)
        return max(fitting) if before else min(fitting)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError.bad_argument(name, value, "a version, or a time as text")
    if value > now.version:
        raise NotFoundError.version(value, now.version, storage.url)
    return value


def _check_on(storage: Storage, until: Snapshot, first: int) -> None:
    states = [(until.version, until.state.metadata)]
    for version in range(first, until.version + 1):
        metadata = log.read_commit(storage, version, 0).metadata
        if metadata is not None:
            states.append((version, metadata))
    states.append((first, snapshot.at_version(storage, first).state.metadata))
    off = [v for v, m in states if m.configuration.get("delta.enableChangeDataFeed", "false").lower() != "true"]
    if off:
        raise InputError.no_change_feed(min(off), until.where)


@dataclass(frozen=True)
class Feed:
    """The feed from version ``first`` to ``until``: a `Relation`."""

    until: Snapshot
    first: int

    @property
    def schema(self) -> pa.Schema:
        """The table's columns at the end of the interval, and what happened to the row, in which version, when."""
        own = [f.with_nullable(True) for f in self.until.arrow_schema]
        return pa.schema([*own, *_EXTRA])

    def read(self, columns: Sequence[str], conjuncts: Sequence[Conjunct] = ()) -> pa.RecordBatchReader:
        """The rows; versions that the conjuncts rule out are not opened."""
        schema = pa.schema([self.schema.field(c) for c in columns])
        extra = {f.name for f in _EXTRA}
        stored = [c for c in columns if c not in extra]
        times = commit_times(self.until.storage)
        commits = read_commits(self.until.storage, self.first - 1, self.until.version)
        history = MetadataHistory.until(self.until, self.first - 1, commits)

        def batches() -> Iterator[pa.RecordBatch]:
            for commit in commits:
                version = commit.version
                if not _may_hold(version, conjuncts):
                    continue
                for batch, kinds in self._version(commit, history, stored):
                    given = dict(zip(stored, batch.columns, strict=True))
                    given[CHANGE_TYPE] = kinds
                    given[COMMIT_VERSION] = pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows)
                    moment = pa.scalar(times[version] * 1000, pa.int64()).cast(_EXTRA[2].type)
                    given[COMMIT_TIMESTAMP] = pa.repeat(moment, batch.num_rows)
                    yield pa.RecordBatch.from_arrays([given[c] for c in columns], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _version(
        self, commit: Commit, history: MetadataHistory, columns: list[str]
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """The rows that one version changed, and how."""
        # All versions are given under the last schema, so that one answer has one shape.
        for change in changes.files_of(self.until, [commit], history, columns, recorded=True):
            if change.feed:
                yield from changes.read_feed(self.until, change, columns)
                continue
            for batch in changes.read_change(self.until, change, columns):
                weights = batch.column(batch.num_columns - 1)
                kinds = pc.if_else(pc.equal(weights, 1), _BY_WEIGHT[1], _BY_WEIGHT[-1])
                yield batch.select(columns), kinds


def _may_hold(version: int, conjuncts: Sequence[Conjunct]) -> bool:
    tests = {"=": int.__eq__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
    for c in conjuncts:
        whole = c.column == COMMIT_VERSION and all(type(v) is int for v in c.values)
        if whole and c.op in tests and not tests[c.op](version, c.values[0]):
            return False
    return True
