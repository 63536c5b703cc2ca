"""Refreshing: from the changes of the sources to one commit.

1. Pin the sources, and look at what the newest commit says.
2. Decide (`decide`): follow the changes, or compute from scratch, and why.
3. Following: the changed rows say which stretches of which series of the result they touch (`following`). A linear
   plan is run over the changed rows alone; else those stretches are computed again, from the rows that they are made
   of, and held against the rows that the table has there.
4. The difference is written to files that nobody names yet, and committed with the frontier.

A process that ends anywhere leaves the table as it was, or as it is to be; files of an attempt that was not committed
are swept by the next one (`derived.orphans`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base import events, faults
from headwater.base.errors import ConflictError, InputError, NotFoundError, UnsupportedError
from headwater.derived import orphans
from headwater.derived.attempt import Attempt, Timings, reported
from headwater.derived.environment import Environment
from headwater.derived.foreign import changed_since
from headwater.derived.place import Place
from headwater.derived.plan import RefreshPlan
from headwater.derived.record import Record
from headwater.derived.sources import Input, Sources, Unavailable
from headwater.derived.state_folder import StateFolder
from headwater.lake import data_files
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.changes import WEIGHT
from headwater.lake.published import Changed
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table
from headwater.timeseries.features import output_table
from headwater.timeseries.features.computing import Computation, Engine, within
from headwater.timeseries.features.definition import WORDS, Definition
from headwater.timeseries.features.following import Followed, NotFollowed, followed
from headwater.timeseries.features.linear import linear_change
from headwater.timeseries.features.output_table import PREFIX
from headwater.timeseries.features.region import FIRST, LAST, Region, Within, region_of
from headwater.timeseries.features.row_difference import difference
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.stream import Stream
from headwater.timeseries.times import moved, time_numbers

__all__ = ["FeatureAttempt", "FeaturePlan", "decide"]

_MOST_CHANGED = 1_000_000
"""So many changed rows are not read into memory: computing from scratch is quicker."""


@dataclass(frozen=True, kw_only=True)
class FeaturePlan(RefreshPlan):
    """What a refresh would do, by which engine, and what of the result a change touches."""

    engine: Engine = "local"
    reach: str = ""

    def _details(self) -> list[str]:
        if self.mode == "noop":
            return []
        parts = [f"computed {'in this process' if self.engine == 'local' else 'by Spark'}"]
        return parts + ([f"computes {self.reach}"] if self.mode == "incremental" and self.reach else [])


def decide(
    name: str,
    stored: Definition,
    wanted: Definition,
    stream: Stream | None,
    record: Record,
    sources: Sources,
    *,
    full: bool,
) -> FeaturePlan:
    """What a refresh to these sources has to do; ``wanted`` is what the function means now."""
    if not sources.pinned or stream is None:
        return FeaturePlan(mode="noop", reason="no source is named")
    total = sources.total_rows()
    engine = Computation.of(stream.plan).engine

    def scratch(reason: str, *, allowed: bool = True) -> FeaturePlan:
        if wanted.policy == "strict" and not allowed:
            raise UnsupportedError.recompute(name, reason, WORDS)
        sources.check_columns()
        return FeaturePlan(mode="full", reason=reason, rows=total, engine=engine)

    if not record.published:
        return scratch("it was never built")
    if full:
        return scratch("it was asked for")
    if not stored.same_rows(wanted):
        return scratch("its function is another one, or gives another stream, than when it was built", allowed=False)
    if sources.frontier == record.frontier and not sources.replaced:
        return FeaturePlan(mode="noop", reason="nothing has changed", rows=total)
    if wanted.policy == "full":
        return scratch("its policy is `full`")
    try:
        sources.check()
        counts = sources.changed_rows()
        sources.check_files()
    except (Unavailable, NotFoundError) as e:
        why = str(e) if isinstance(e, Unavailable) else f"its changes are gone: {e.message}"
        return scratch(why, allowed=False)
    changed = sum(counts.values())
    try:
        how = followed(narrowed(stream.plan), wanted.ordering)
    except NotFollowed as e:
        if changed:
            return scratch(str(e), allowed=False)
        how = None
    if changed > _MOST_CHANGED and changed > total // 10:
        return scratch(f"{changed:,} rows have changed, of {total:,}: computing from scratch is quicker", allowed=False)
    reason = f"{changed:,} {'row has' if changed == 1 else 'rows have'} changed"
    reach = "" if how is None else how.describe()
    return FeaturePlan(mode="incremental", reason=reason, rows=total, changes=counts, reach=reach)


class FeatureAttempt(Attempt):
    """One try to refresh a feature table."""

    base: Snapshot
    stored: Definition
    record: Record

    def __init__(self, name: str, table: Table, environment: Environment, place: Place, *, last: bool) -> None:
        self.name, self.table, self.environment, self.place, self.last = name, table, environment, place, last
        self.timings: Timings = {}

    @property
    def guard(self) -> threading.RLock:
        return self.place.guard

    @property
    def folder(self) -> StateFolder:
        return self.place.folder

    def look(self) -> None:
        self.base = self.table.snapshot
        found = Definition.of(self.base)
        if found is None:
            raise InputError.not_derived(self.name, WORDS, self.base.where)
        self.stored, self.record = found, Record.of(self.base)

    def failed(self) -> None:
        self.place.suspicious = True

    inherited = failed

    def refresh(self, wanted: Definition, stream: Stream | None, sources: Sources, plan: FeaturePlan) -> None:
        """Do what was decided, and leave the report in ``done``."""
        was = self.record.frontier
        self._sweep()
        faults.point("features.refresh.begin", self.name)
        assert stream is not None, "there are sources"
        fresh = None if wanted == self.stored else wanted
        metadata: Metadata | None = None
        with events.task(f"refresh {self.name}", unit="rows") as task:
            if plan.mode == "incremental":
                task.expect(sum(plan.changes.values()) or None)
                try:
                    rows_in, changed, engine = self._follow(wanted, stream, sources)
                    plan = replace(plan, engine=engine)
                except Unavailable as e:
                    if wanted.policy == "strict":
                        raise UnsupportedError.recompute(self.name, str(e), WORDS) from None
                    plan = replace(plan, mode="full", reason=str(e), engine=Computation.of(stream.plan).engine)
            if plan.mode == "full":
                task.expect(plan.rows or None)
                made = output_table.metadata_for(self.name, wanted, self.base.state.metadata)
                metadata = None if made == self.base.state.metadata else made
                rows_in, changed = plan.rows, self._scratch(wanted, stream, metadata)
        last = self.finished(plan.mode, rows_in, changed.rows)
        after = Record(frontier=sources.frontier, published=self.base.version + 1, last=last)
        faults.point("features.before_commit", self.name)
        output_table.commit(self.base, changed, after, definition=fresh, metadata=metadata)
        faults.point("features.after_commit", self.name)
        seconds = time.perf_counter() - self.began
        self.done = reported(self.name, was, sources, last, seconds=seconds, reason=plan.reason)

    def _sweep(self) -> None:
        if self.place.suspicious:
            orphans.sweep(self.base, self.base.version, prefix=PREFIX, vectors_folder=PREFIX)
            self.place.suspicious = False

    # -- following changes -----------------------------------------------------------------------------------------

    def _follow(self, wanted: Definition, stream: Stream, sources: Sources) -> tuple[int, Changed, Engine]:
        """The change of the rows by the changes of the sources."""
        changes = {one.table: _net(sources, one) for one in wanted.inputs}
        rows_in = sum(table.num_rows for table in changes.values())
        if not rows_in:
            return 0, Changed(), "local"
        plan = narrowed(stream.plan)
        how = followed(plan, wanted.ordering)
        schema, metadata = wanted.schema, self.base.state.metadata
        if how.linear:
            gone, come = linear_change(plan, changes, schema)
            old = output_table.region_of_old(self.base, schema, exactly(gone))
            which, lost = difference(old.rows, gone)
            if len(lost):
                raise Unavailable(f"{len(lost):,} rows that should go are not in the table")
            stays = np.ones(old.rows.num_rows, np.bool_)
            stays[which] = False
            return rows_in, output_table.publish(self.base, metadata, old, np.flatnonzero(stays), come), "local"
        region = touched(how, changes)
        if not region.rows:
            return rows_in, Changed(), "local"
        computed = Computation.of_region(within(plan, how, region))
        new = computed.collect(self.environment, schema)
        asked = Within(plan, region, how.keys, how.time)
        old = output_table.region_of_old(self.base, schema, asked)
        which, come_at = difference(old.rows, new)
        come = new.take(pa.array(come_at))
        return rows_in, output_table.publish(self.base, metadata, old, which, come), computed.engine

    # -- from scratch ----------------------------------------------------------------------------------------------

    def _scratch(self, wanted: Definition, stream: Stream, metadata: Metadata | None) -> Changed:
        """All rows; what the table has of them already stays, where both are at hand."""
        computed = Computation.of(stream.plan)
        base, schema = self.base, wanted.schema
        if computed.engine == "spark":
            return output_table.replaced(base, self._on_spark(computed, wanted, metadata))
        new = computed.collect(self.environment, schema)
        made = metadata if metadata is not None else base.state.metadata
        if metadata is None and base.files:
            old = output_table.old_rows(base, schema, None, ())
            which, come_at = difference(old.rows, new)
            return output_table.publish(base, base.state.metadata, old, which, new.take(pa.array(come_at)))
        prefix = f"{PREFIX}-{base.version + 1}"
        rows = _by_time(new, wanted.time)
        adds = data_files.write_rows(base.storage, data_files.Layout(made), rows.to_batches(), prefix=prefix)
        return output_table.replaced(base, adds)

    def _on_spark(self, computed: Computation, wanted: Definition, metadata: Metadata | None) -> Iterable[AddFile]:
        from headwater.lake.spark.write import SparkRows
        from headwater.lake.write import Source

        rows = computed.on_spark(self.environment).rows()
        source = rows if isinstance(rows, Source) else SparkRows(rows)
        made = metadata if metadata is not None else self.base.state.metadata
        return source.write(self.base.storage, made, {})


def _by_time(rows: pa.Table, time: str | None) -> pa.Table:
    """The rows in the order of their times: changes are mostly of late, and then find theirs in a few row groups,
    where rows in the order of series would have some of each time in all of them.
    """
    if time is None or time not in rows.schema.names:
        return rows
    return rows.take(pc.sort_indices(rows.column(time)))


def _net(sources: Sources, one: Input) -> pa.Table:
    """The changed rows of a source with their weights: what came and went is not among them."""
    schema = pa.schema([f.with_nullable(True).remove_metadata() for f in one.read]).append(pa.field(WEIGHT, pa.int64()))
    batches = [pa.record_batch(b.columns, schema.names) for b in sources.net_changes(one)]
    return pa.concat_tables([schema.empty_table(), *(pa.Table.from_batches([b]).cast(schema) for b in batches)])


def touched(how: Followed, changes: Mapping[str, pa.Table]) -> Region:
    """The stretches of the result that changed rows of sources reach."""
    keys, first, last = [], [], []
    kinds: dict[str, pa.DataType] = {}
    for leaf in how.leaves:
        if not isinstance(leaf.node, DeltaSource):
            continue
        rows = changes[leaf.node.table.name]
        given = {name: rows.column(leaf.keys[name]) for name in how.keys}
        for name, column in given.items():
            kinds.setdefault(name, pa.int64() if pa.types.is_integer(column.type) else column.type)
        keys.append(pa.table({n: c.cast(kinds[n]) for n, c in given.items()}) if given else None)
        low, high = np.full(rows.num_rows, FIRST), np.full(rows.num_rows, LAST)
        if leaf.time is not None:
            times, there = time_numbers(rows.column(leaf.time))
            known = np.ones(rows.num_rows, np.bool_) if there is None else there
            if leaf.after is not None:
                low = np.where(known, moved(times, -leaf.after), FIRST)
            if leaf.before is not None:
                high = np.where(known, moved(times, leaf.before), LAST)
        first.append(low)
        last.append(high)
    none = [np.empty(0, np.int64)]
    lows, highs = np.concatenate(none + first), np.concatenate(none + last)
    named = [one for one in keys if one is not None]
    table = pa.concat_tables(named) if named else pa.table({})
    return region_of(table, lows, highs)


def exactly(rows: pa.Table) -> Within:
    """The region that just the rows with the plain values of these rows are in."""
    from headwater.timeseries.operators.values import Values

    names = [f.name for f in rows.schema if _is_listed(f.type)]
    times = np.zeros(rows.num_rows, np.int64)
    return Within(Values(rows), region_of(rows.select(names), times, times), tuple(names), None)


def _is_listed(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_timestamp(kind) or types.is_date(kind))


def check_foreign(name: str, base: Snapshot, record: Record) -> None:
    """Raise if others have changed the rows."""
    what = changed_since(base, record.published)
    if what is not None:
        raise ConflictError.derived_changed(name, what, base.where, WORDS)
