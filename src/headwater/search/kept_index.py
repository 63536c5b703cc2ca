"""Search indexes as they are kept: splits, the readers that use them, and what a refresh does.

An index is a derived artefact: its commits are records (`derived.recorded`), each of which names splits and the
frontier up to which they cover the table. Unlike other artefacts it does not answer as of its frontier. The table's own
log says which rows are alive, at its newest version or an older one (`at`); splits only find rows in the files that
they cover, and files without one are indexed when somebody asks. So an index can be behind, and is then slower, but it
is never wrong.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, Self, TypeVar

import pyarrow as pa

from headwater.base import events, faults
from headwater.base.errors import (
    ConflictError,
    CorruptionError,
    HeadwaterError,
    InputError,
    NotFoundError,
    SearchQueryError,
)
from headwater.base.frontier import Frontier
from headwater.base.kinds import words_of
from headwater.base.packages import required
from headwater.derived.environment import Environment
from headwater.derived.plan import RefreshPlan
from headwater.derived.recorded import Built, RecordedArtefact
from headwater.derived.reports import Refresh
from headwater.derived.sources import Input, Sources, Unavailable
from headwater.lake.actions import AddFile
from headwater.lake.snapshot import Snapshot
from headwater.search.cover import Cover
from headwater.search.definition import Definition
from headwater.search.maintenance import rewritten
from headwater.search.postings import indexed_postings, scanned_postings
from headwater.search.reader import Reader, open_reader
from headwater.search.record import IndexRecord, SplitEntry
from headwater.search.refreshing import Coverage, choose_merges, coverage_of, entry_of, merged_entries, retained
from headwater.search.split_builder import build_splits
from headwater.search.split_store import SplitStore, discarded, evict, forget_corrupt

__all__ = ["IndexPlan", "IndexStatus", "KeptIndex", "splits_path"]

_T = TypeVar("_T")
_MOST_READERS = 16
_FUTURE_MS = 3_600_000
"""A clock may be so far behind that of the storage."""
_TRIES = 10
_readers: OrderedDict[tuple[Any, ...], Reader] = OrderedDict()
_guard = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class IndexPlan(RefreshPlan):
    """What a refresh of an index would do: the files to be indexed, and which engine does it."""

    todo: Sequence[AddFile] = ()
    engine: Literal["local", "spark"] = "local"

    def _details(self) -> list[str]:
        return [f"built by {self.engine} tasks"] if self.engine == "spark" else []


@dataclass(frozen=True)
class IndexStatus:
    """How far an index covers its table, and what it takes."""

    coverage: float
    splits: int
    idle_splits: int
    rows: int
    dead_rows: int
    bytes: int
    missing_files: int
    missing_rows: int
    damaged: tuple[str, ...]


class KeptIndex(RecordedArtefact):
    """A search index as it is kept: its splits, its readers and its refreshes. `SearchIndex` is what people use."""

    kind = words_of("index")
    record_type = IndexRecord

    def __init__(self, name: str, environment: Environment) -> None:
        required("tantivy", "a search index", "search")
        super().__init__(name, environment)
        self._meant = Definition.from_json(self.committed().definition, self.log.path)
        self.store = SplitStore(environment.root, splits_path(name))
        self._at: Snapshot | None = None
        self._built: Mapping[str, Cover] = {}

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def definition(self) -> str:
        """Which fields of which table it has."""
        return str(self._meant)

    @property
    def meant(self) -> Definition:
        """The definition."""
        return self._meant

    @property
    def inputs(self) -> Sequence[Input]:
        """The columns that are indexed."""
        return (self._meant.input,)

    @property
    def folder_path(self) -> str:
        """Where its files lie, below the root of the lake."""
        return _folder_path(self.name)

    @property
    def fields(self) -> dict[str, str]:
        """The columns that are indexed, each with its kind."""
        return {f.column: f.kind for f in self._meant.fields}

    @property
    def rows(self) -> int | None:
        """How many rows its splits hold, alive or not."""
        record: IndexRecord = self.record
        return sum(one.rows for one in record.splits)

    def create_statement(self) -> str:
        """The statement that would make such an index."""
        from headwater.search.statement import create_statement

        return create_statement(self.name, self._meant)

    def at(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> Self:
        """The same index over an older version of the table."""
        return self.pinned_to(self._environment.table(self._meant.source).at(version, timestamp=timestamp).snapshot)

    def pinned_to(self, base: Snapshot) -> Self:
        """The same index over a snapshot of the table, whatever is committed meanwhile."""
        found = copy.copy(self)
        found._at = base
        return found

    # -- readers ---------------------------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The version of the table that is searched: the newest one, or that of `at`."""
        return self._at if self._at is not None else self.newest

    @property
    def newest(self) -> Snapshot:
        """The newest version of the table."""
        return self._environment.table(self._meant.source).snapshot

    def reader(self, base: Snapshot | None = None, *, whole: bool = True) -> Reader:
        """A reader of the table as it is now, or of another version; an error if the index was never built.

        Without ``whole``, files that no split covers are left out (`Reader.uncovered`), and not indexed on the spot.
        """
        committed = self.committed()
        record: IndexRecord = self.record_of(committed)
        if not record.published:
            raise InputError.not_built(self.name, 0, self._environment.root.url, self.kind)
        base = base or self.snapshot
        at = (self.store.url, self._meant.stamp_of(base), base.where, base.table_id, base.version)
        key = (*at, record.splits)
        with _guard:
            known = _readers.get(key)
            if known is not None and not (whole and known.uncovered):
                _readers.move_to_end(key)
                return known
        self._meant.check(self.name, base)
        for _ in range(3):
            found = open_reader(self._meant, base, self.store, record.names, report=self.report_damage, whole=whole)
            newer = self.committed()
            if newer.number == committed.number:
                break  # else a split may have been missing because it was merged meanwhile
            committed, record = newer, self.record_of(newer)
        with _guard:
            _readers[*at, record.splits] = found
            while len(_readers) > _MOST_READERS:
                _readers.popitem(last=False)
        return found

    def report_damage(self, name: str, error: Exception) -> None:
        """A split cannot be used: say so, and have it built again by the next refresh."""
        if name in self.record.names:
            with suppress(HeadwaterError, OSError):  # who may not write may still search
                self.store.mark_damaged(name)
            events.notice(
                f"a split of the index `{self.name}` cannot be used, and its files are searched without it: {error}"
            )

    def steadily(self, ask: Callable[[], _T]) -> _T:
        """Ask; again if the library fails and the copy of a split that this machine has turns out to be corrupt."""
        try:
            return ask()
        except (SearchQueryError, CorruptionError):
            with _guard:
                mine = [(key, one) for key, one in _readers.items() if key[0] == self.store.url]
            damaged = [key for key, one in mine if forget_corrupt(one.lent)]
            if not damaged:
                raise
            with _guard:
                for key in damaged:
                    _readers.pop(key, None)
            return ask()

    # -- the contract ----------------------------------------------------------------------------------------------

    @property
    def coverage(self) -> float:
        """Which share of the table's rows, as it is now, lies in files that a split covers."""
        return self.details().coverage

    def read(self) -> pa.RecordBatchReader:
        """What the index knows: each term of each field, with its number of rows and a digest of them,
        as of `frontier`.
        """
        record = self.record
        if not record.published:
            raise InputError.not_built(self.name, 0, self._environment.root.url, self.kind)
        base = self.pinned(Frontier(), record.frontier).pinned[self._meant.source]
        return indexed_postings(open_reader(self._meant, base, self.store, record.names, report=self.report_damage))

    def recompute(self, at: Frontier) -> pa.RecordBatchReader:
        """The same, by reading every row of the table at ``at`` and taking its text apart."""
        return scanned_postings(self._meant, self.pinned(Frontier(), at).pinned[self._meant.source])

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """Their values that it indexes: what it knows of each row."""
        return rows.select(self._meant.columns)

    def details(self) -> IndexStatus:
        """How far it covers the table as it is now, and what it takes."""
        record: IndexRecord = self.record
        base = self.snapshot
        found = self.coverage_at(record, base)
        stamp = self._meant.stamp_of(base)
        live = base.num_rows or 0
        missing = sum((f.num_records or 0) - f.num_deleted for f in found.missing)
        return IndexStatus(
            coverage=1.0 if not live else max(0.0, 1 - missing / live) if record.published else 0.0,
            splits=len(found.entries),
            idle_splits=sum(one.stamp != stamp or one.idle_since is not None for one in found.entries),
            rows=sum(one.rows for one in found.entries),
            dead_rows=sum(found.dead_rows(one.name, base) for one in found.entries),
            bytes=sum(one.bytes for one in found.entries),
            missing_files=len(found.missing),
            missing_rows=missing,
            damaged=found.broken,
        )

    # -- refreshing ------------------------------------------------------------------------------------------------

    def coverage_at(self, record: IndexRecord, base: Snapshot) -> Coverage:
        """Which files of a snapshot the splits of a record cover."""
        there = self.store.usable()
        broken = [one.name for one in record.splits if one.name not in there]
        covers: dict[str, Cover] = {}
        for one in record.splits:
            if one.name in there:
                try:
                    covers[one.name] = self.store.cover(one.name)
                except (CorruptionError, NotFoundError):
                    broken.append(one.name)
        return coverage_of(self._meant, base, record.splits, covers, broken)

    def decide(self, record: IndexRecord, sources: Sources, *, full: bool) -> IndexPlan:
        """Which files have to be indexed."""
        base = sources.pinned.get(self._meant.source)
        if base is None:
            return IndexPlan(mode="noop", reason="no source is named")
        self._meant.check(self.name, base)
        rows = sources.total_rows()
        if not record.published or full:
            why = "it was asked for" if record.published else "it was never built"
            todo = tuple(base.files.values())
            return IndexPlan(mode="full", reason=why, rows=rows, todo=todo, engine=self._engine(todo))
        found = self.coverage_at(record, base)
        if sources.frontier == record.frontier and not found.broken and not any(f.num_records for f in found.missing):
            return IndexPlan(mode="noop", reason="nothing has changed", rows=rows)
        todo = found.missing
        changes = _changed_rows(sources, todo)
        stamp = self._meant.stamp_of(base)
        engine = self._engine(todo)
        if base.files and not any(one.stamp == stamp for one in record.splits) and record.splits:
            why = f"`{self._meant.source}`, or a column that is indexed, is another one than before"
            return IndexPlan(mode="full", reason=why, rows=rows, todo=todo, engine=engine)
        reason = f"{len(todo):,} file{'' if len(todo) == 1 else 's'} to index"
        if found.broken:
            reason += f", of damaged or missing splits: {', '.join(found.broken)}"
        return IndexPlan(mode="incremental", reason=reason, rows=rows, changes=changes, todo=todo, engine=engine)

    def _engine(self, todo: Sequence[AddFile]) -> Literal["local", "spark"]:
        from headwater.base import settings

        large = sum(f.num_records or 0 for f in todo) >= settings.current().search_spark_rows
        return "spark" if large and self._environment.session is not None else "local"

    def build(self, record: IndexRecord, plan: IndexPlan, sources: Sources, number: int, task: events.Task) -> Built:
        """Index files, merge splits that are small, and leave out those that are of no use any more."""
        base = sources.pinned[self._meant.source]
        task.expect(sum(f.num_records or 0 for f in plan.todo) or None)
        stamp = self._meant.stamp_of(base)
        found = self.coverage_at(record, base)
        kept: list[SplitEntry] = []
        covers = dict(found.covers)
        if plan.mode != "full":
            kept = retained(found.entries, covers, base, stamp)
        added = self._indexed(plan, base, covers, task)
        entries = [*kept, *added]
        used = [one for one in entries if one.stamp == stamp and one.idle_since is None]
        dead = {one.name: _dead(covers[one.name], base) for one in used}
        for group in choose_merges(used, dead, self._meant.target_rows):
            faults.point("search.merge.before", self.name)
            made = merged_entries(self._meant, self.store, group, covers, base, report=self.report_damage)
            gone = {one.name for one in group}
            entries = [one for one in entries if one.name not in gone] + made
        rows_in = sum(one.rows for one in added) if plan.mode == "full" else sum(plan.changes.values())
        superseded = tuple(sorted({*record.names} - {one.name for one in entries}))
        made_record = IndexRecord(splits=tuple(entries), superseded=superseded)
        changed = sum(one.rows for one in record.splits if one.name in superseded) if plan.mode == "full" else 0
        return Built(made_record, rows_in, rows_in + changed)

    def _indexed(
        self, plan: IndexPlan, base: Snapshot, covers: dict[str, Cover], task: events.Task
    ) -> list[SplitEntry]:
        """Splits of the files that are to be indexed, where readers find them."""
        found = self._ready(plan, self._meant.stamp_of(base))
        covered = {path for cover in found.values() for path in cover.files}
        todo = [f for f in plan.todo if f.path not in covered]
        if plan.engine == "spark" and todo:
            from headwater.search.on_spark import build_on_spark

            found |= build_on_spark(self._meant, self.store, base, todo, self._environment, task)
        else:
            for built in build_splits(self._meant, base, todo, advance=task.advance):
                with discarded(built):
                    found[built.name] = self.store.add(built)
        covers.update(found)
        return [entry_of(name, cover) for name, cover in found.items()]

    def _ready(self, plan: IndexPlan, stamp: str) -> dict[str, Cover]:
        """The splits that were built beforehand, as far as they are still there and of use."""
        if not self._built:
            return {}
        there, paths = self.store.usable(), {f.path for f in plan.todo}
        return {
            name: cover
            for name, cover in self._built.items()
            if name in there and cover.stamp == stamp and paths.issuperset(cover.files)
        }

    def refresh_with(self, built: Mapping[str, Cover]) -> Refresh:
        """Refresh it, with splits that whoever wrote the files has built already."""
        found = copy.copy(self)
        found._built = dict(built)
        return found.refresh_alone(None)

    def merge(self) -> int:
        """Merge all splits of the table as it is now as far as their target allows; gives how many there are then."""
        return self._rewrite(fan=2)

    def vacuum(self, *, retention_hours: float = 168) -> int:
        """Drop splits and parts of splits that are only of use for versions older than the retention; gives how many
        splits are left.

        With ``retention_hours=0`` nothing of a file is left that the table does not have now.
        """
        if retention_hours < 0:
            raise InputError.bad_argument("retention_hours", retention_hours, "a number of hours, from 0 on")
        return self._rewrite(retention_ms=int(retention_hours * 3_600_000))

    def purge(self) -> None:
        """Index the table as it is now from scratch, delete every other split, and empty the cache of this machine."""
        super().purge()
        with _guard:
            _readers.clear()
        evict(0)

    def delete_others(self, record: IndexRecord) -> None:
        """Delete the splits that a record does not name."""
        self.store.delete(self.store.orphans(record.names, young_ms=-_FUTURE_MS))

    def _rewrite(self, *, fan: int | None = None, retention_ms: int | None = None) -> int:
        """Commit other splits that give the same answers, at the same frontier."""
        with self.held():
            for _ in range(_TRIES):
                committed = self.committed()
                record: IndexRecord = self.record_of(committed)
                if not record.published:
                    raise InputError.not_built(self.name, 0, self.log.path, self.kind)
                base = self.newest
                found = self.coverage_at(record, base)
                made = rewritten(
                    self._meant, self.store, base, found, fan=fan, retention_ms=retention_ms, report=self.report_damage
                )
                # What is damaged stays named: the next refresh finds and replaces it.
                splits = (*made, *(one for one in record.splits if one.name in found.broken))
                if splits == record.splits:
                    self._delete_orphans(record, retention_ms)
                    return len(splits)
                gone = tuple(sorted({*record.names} - {one.name for one in splits}))
                after = replace(record, splits=splits, superseded=gone, published=committed.number + 1)
                try:
                    self.log.commit(committed.number, committed.definition, after.to_json())
                except ConflictError:
                    continue
                self.tidy(record, after)
                self._delete_orphans(after, retention_ms)
                self.log.sweep()
                return len(splits)
        raise ConflictError.lost("another refresh was committed first", committed.number, self.kind.name, self.log.path)

    def _delete_orphans(self, record: IndexRecord, retention_ms: int | None) -> None:
        """Delete the files of splits that no commit names, which a process that was killed may have left too."""
        if retention_ms is not None:
            faults.point("search.vacuum.before_delete", self.name)
            self.store.delete(self.store.orphans(record.names, young_ms=max(retention_ms, 1)))

    def tidy(self, before: IndexRecord | None, after: IndexRecord) -> None:
        """Delete splits that readers have had time to finish with."""
        if before is None:
            self.store.delete(self.store.orphans({*after.names, *after.superseded, *self._built}))
        else:
            self.store.delete(name for name in before.superseded if name not in after.names)

    def remove_output(self) -> None:
        """Delete the splits."""
        self.store.delete(self.store.orphans((), young_ms=1))
        self.store.root.remove_folder(self.folder_path)


def _folder_path(name: str) -> str:
    return f"_headwater/indexes/{name}"


def splits_path(name: str) -> str:
    """Where the splits of an index lie, below the root of the lake."""
    return f"{_folder_path(name)}/splits"


def _changed_rows(sources: Sources, todo: Sequence[AddFile]) -> dict[str, int]:
    """The rows that have changed, by the log; where it does not tell, those that are indexed.
    Rows that moved are none.
    """
    try:
        sources.check()
        return sources.changed_rows()
    except Unavailable:
        return {name: sum(f.num_records or 0 for f in todo) for name in sources.pinned}


def _dead(cover: Cover, base: Snapshot) -> int:
    return sum(n for path, n in zip(cover.files, cover.rows_of, strict=True) if path not in base.files)
