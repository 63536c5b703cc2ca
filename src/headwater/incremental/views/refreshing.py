"""Refreshing: from the changes of the sources to one commit, in an order in which a crash anywhere is before or after
it.

1. pin the sources, and look at what the newest commit of the view says: its frontier, and the state that belongs to it;
2. read the changes, step the circuit, write the rows that come and mark those that go (files that nobody names yet);
3. save the state (a manifest that nobody names yet); or leave that for later, where a process that ends has little to
   do again;
4. commit: rows and frontier become true together, or another refresh won;
5. later, in the background, save the state, delete what is not named any more, and put small files together if there
   are many (`tidying`).

If a process ends before 5., the state is older than the rows: the next one follows the changes in between again,
without publishing them.

If it cannot be done from changes (there is no state yet, changes are gone, it would take longer), the circuit is built
anew and fed with all rows; its result is published as a difference all the same. Where that takes much longer than a
query, rows are published from a query, and the state is built behind them (`building`). After any failure what is in
memory is thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import pyarrow as pa

from headwater.base import events, faults
from headwater.base.errors import (
    ConflictError,
    CorruptionError,
    InputError,
    NotFoundError,
    UnsupportedError,
)
from headwater.base.frontier import Frontier
from headwater.derived import orphans
from headwater.derived.attempt import Timings, attempts, reported
from headwater.derived.environment import Environment
from headwater.derived.record import LastRefresh
from headwater.derived.reports import Refresh
from headwater.derived.sources import Sources, Unavailable
from headwater.incremental import spill
from headwater.incremental.circuit import durable
from headwater.incremental.circuit.backfilling import Backfill
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.layout import Layout
from headwater.incremental.views import building, tidying
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.attempting import Unusable, ViewAttempt
from headwater.incremental.views.costs import Rates, ViewPlan
from headwater.incremental.views.deciding import building_way, decide, foreign
from headwater.incremental.views.definition import Definition, check_functions
from headwater.incremental.views.fan_out import fan_out
from headwater.incremental.views.live import built, live
from headwater.incremental.views.profile import LOCAL, Work
from headwater.incremental.views.publishing import PREFIX, VECTORS, publish
from headwater.incremental.views.reconciling import first_rows, reconcile, replace_all
from headwater.incremental.views.record import ViewRecord
from headwater.incremental.views.spark.choice import Chosen, Demand, choose, shard_count
from headwater.incremental.views.spark.journal import Goal, unfinished
from headwater.incremental.views.together import begin
from headwater.incremental.views.words import WORDS
from headwater.incremental.zset import ZSet
from headwater.kernels.compile_time import Stopwatch
from headwater.lake.actions import Metadata
from headwater.lake.published import Changed
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table

__all__ = ["RefreshAttempt", "engine_of", "refresh", "view_attempts"]

_WORTH_A_THREAD = 32_768


def engine_of(
    view: str,
    definition: Definition,
    environment: Environment,
    sources: Sources,
    plan: ViewPlan,
    rates: Rates,
) -> Chosen:
    """Who computes a refresh that is planned so."""
    follows = plan.mode != "full"
    rows = round(sum(plan.changes.values()) * plan.fan_out) if follows else sources.total_rows()
    demand = Demand(rows, follows, rates.pace(follows=follows))
    query = plan.way == "query" and definition.policy != "full"
    return choose(view, definition, environment, demand, query=query)


def refresh(
    view: str,
    table: Table,
    environment: Environment,
    until: Frontier | None,
    *,
    full: bool,
    timings: Timings,
    newest: Mapping[str, Snapshot] = MappingProxyType({}),
) -> Refresh:
    """Bring a view forward; ``newest`` are sources that were looked at already."""
    for attempt in view_attempts(view, table, environment):
        attempt.timings = timings
        with attempt:
            attempt.refresh(until, full=full, newest=newest)
        if attempt.done is not None:
            tidying.ask(view, table, environment, attempt.base)
            if attempt.record.owed:
                building.soon(view, table, environment)
            if not attempt.continues:
                return attempt.done
            return _continued(attempt.done, refresh(view, table, environment, until, full=False, timings=timings))
    raise AssertionError("the last attempt raises")


def _continued(first: Refresh, then: Refresh) -> Refresh:
    """The report of a build that went on from an interrupted one, and of following what had changed since."""
    return replace(
        first,
        after=then.after,
        rows_in=first.rows_in + then.rows_in,
        rows_out=first.rows_out + then.rows_out,
        seconds=first.seconds + then.seconds,
    )


def view_attempts(view: str, table: Table, environment: Environment) -> Iterator[RefreshAttempt]:
    """Tries to commit something to a view."""
    return attempts(lambda last: RefreshAttempt(view, table, environment, live(environment.root, view), last=last))


class RefreshAttempt(ViewAttempt):
    """One try to refresh a view, or to give it another definition."""

    continues = False
    """Whether sources have changed since an interrupted build began that this one goes on with."""
    works: Sequence[Work] = ()
    """What tasks did, if they did it."""

    def refresh(self, until: Frontier | None, *, full: bool, newest: Mapping[str, Snapshot]) -> None:
        """Do it, and leave the report in ``done``."""
        check_functions(self.view, self.definition.functions, self.environment.functions)
        with self.timed("pin"):
            sources = Sources.pin(
                self.view, self.definition.inputs.values(), self.was, until, self.environment, kind=WORDS, newest=newest
            )
        changed = None if full else foreign(self.base, self.definition, self.record)
        if changed is not None:
            raise ConflictError.derived_changed(self.view, changed, self.base.where, WORDS)
        with self.timed("plan"):
            plan = decide(self.view, self.definition, self.record, sources, full=full, brief=True)
        if plan.mode == "noop":
            at = self.record.frontier
            self.done = Refresh(before=at, after=at, mode="noop", reason=plan.reason, name=self.view)
            return
        chosen = engine_of(self.view, self.definition, self.environment, sources, plan, self.record.rates)
        begun = unfinished(self.live.folder, self.base, self.definition) if chosen.engine == "spark" else None
        if self.live.suspicious and begun is None:
            with self.timed("sweep"):
                orphans.sweep(self.base, self.record.published, prefix=PREFIX, vectors_folder=VECTORS)
            self.live.suspicious = False
            self.sweeps = True
        self.live.begins()
        faults.point("view.refresh.begin", self.view)
        with events.task(f"refresh {self.view}", unit="rows") as task:
            if chosen.engine == "spark" and self._on_spark(sources, plan, chosen, task, begun):
                return
            if plan.mode == "incremental":
                task.expect(sum(plan.changes.values()) or None)
                try:
                    with spill.put_off():
                        self._from_changes(sources, plan, task)
                    return
                except Unusable as e:
                    self.live.discard()
                    way = building_way(self.definition, self.record, sources)
                    plan = replace(plan, mode="full", way=way, reason=str(e))
                    if self.definition.policy == "strict":
                        raise UnsupportedError.recompute(self.view, plan.reason, WORDS) from None
            self.anew(sources, plan.reason, task, plan=plan)

    def _on_spark(
        self, sources: Sources, plan: ViewPlan, chosen: Chosen, task: events.Task, begun: Goal | None
    ) -> bool:
        """Have it computed by Spark's tasks; False if it has to be done here after all.

        A build that was ``begun`` and did not end is gone on with, at the versions that it was for.
        """
        from headwater.incremental.views.spark.places import place_for
        from headwater.incremental.views.spark.running import run

        place = place_for(self.environment)
        follows = plan.mode == "incremental"
        if begun is not None and not follows:
            at_begin = self._begun(sources, begun)
            self.continues = at_begin is not None and at_begin.frontier != sources.frontier
            sources = at_begin or sources
        rows_in = sum(plan.changes.values()) if follows else sources.total_rows()
        work = round(rows_in * plan.fan_out) if follows else rows_in
        record = ViewRecord(frontier=sources.frontier, published=self.base.version + 1, rates=self.record.rates)
        try:
            before = self.saved_state(task) if follows else None
            outcome = run(
                self.view,
                self.definition,
                self.base,
                sources,
                place,
                self.live.folder,
                self.at(record),
                before=before,
                shards=begun.shards if begun is not None else shard_count(work, place.tasks, follows=follows),
            )
        except Unusable:
            return False  # the local runtime finds out for itself, and builds another state
        except (InputError, Unavailable) as error:
            if not follows:
                raise
            # A row that cannot be computed with may be mended by a later change: the local runtime adds them up.
            events.notice(f"the view `{self.view}` is refreshed locally: {error}")
            return False
        self.timings["spark"] = time.perf_counter() - self.began
        self.live.stages, self.works = outcome.stages, outcome.works
        faults.point("view.refresh.stepped", self.view)
        last = self.finished(plan.mode, rows_in, outcome.changed.rows)
        record = replace(record, state=self.live.folder.adopt(outcome.manifest), last=last)
        self.live.discard()
        self.commit("REFRESH MATERIALIZED VIEW", outcome.changed, record, rows=rows_in)
        self.live.discard()
        self.live.folder.clear()
        more = f"; {outcome.taken_over} shards were done before it was interrupted" if outcome.taken_over else ""
        self._report(sources, last, f"{plan.reason}; on Spark, since {chosen.reason}{more}")
        return True

    def _begun(self, sources: Sources, begun: Goal) -> Sources | None:
        """The sources at the versions that a build was for which did not end; None if they are not what they were."""
        try:
            inputs = self.definition.inputs.values()
            found = Sources.pin(self.view, inputs, Frontier(), begun.frontier, self.environment, kind=WORDS)
        except NotFoundError:
            return None
        known, now = found.frontier.identities, sources.frontier.identities
        same = all(known[name].id == now[name].id for name in known)
        return found if same and found.frontier == begun.frontier else None

    def _from_changes(self, sources: Sources, plan: ViewPlan, task: events.Task) -> None:
        watch = Stopwatch()
        self.restored(task)
        circuit = self.live.circuit
        assert circuit is not None
        try:
            rows_in, delta = self.followed(circuit, sources, task, holds=True)
        except Unavailable as e:
            raise Unusable(str(e)) from None
        changed, folder, addresses = Changed(), self.live.folder, self.live.addresses
        lags = self.live.may_lag(rows_in)
        if not lags:
            self.make_permanent()
        with self._flushing(circuit, 0 if lags else rows_in), self.timed("publish"):
            if len(delta):
                changed = publish(self.base, addresses, delta)
        del delta  # or runs that it comes from would seem to be in use when it comes to sweeping
        rates = replace(self.record.rates, lost_seconds=plan.lost_seconds)
        rates = rates.after_changes(rows_in, watch.seconds(), plan.fan_out)
        record = ViewRecord(
            frontier=sources.frontier,
            state=self.live.saved,
            published=self.base.version + 1,
            last=self.finished("incremental", rows_in, changed.rows),
            rates=rates,
        )
        if not lags:
            with self.timed("save"):
                folder.flush(durable.traces_of(circuit, addresses.traces))
                record = replace(record, state=folder.next_name())

        def ready() -> None:  # what can be done while the files of the commit are being flushed
            with self.timed("settle" if lags else "save"):
                if lags:
                    # To save the state afterwards: a thread takes its time to begin.
                    tidying.soon(self.view, self.table, self.environment)
                    self.make_permanent()
                    addresses.settle()
                else:
                    folder.save(circuit, addresses, self.at(record), name=record.state)

        self.commit("REFRESH MATERIALIZED VIEW", changed, record, ready=ready, rows=rows_in)
        self._report(sources, record.last, plan.reason)

    def _flushing(self, circuit: Circuit, rows: int) -> AbstractContextManager[object]:
        """Write the new state of a large step beside what follows;
        that of a small one is written sooner than a thread has its turn.
        """
        if rows < _WORTH_A_THREAD:
            return nullcontext()
        return begin(lambda: self.live.folder.flush(durable.traces_of(circuit)))

    def anew(
        self,
        sources: Sources,
        reason: str,
        task: events.Task,
        *,
        definition: Definition | None = None,
        metadata: Metadata | None = None,
        keep: bool = False,
        plan: ViewPlan | None = None,
    ) -> None:
        """Compute the view from all rows of its sources, and publish the difference; by a query, if that is the policy
        or the plan.

        With another ``definition`` the view is that from now on. ``keep`` says that the sources are where the state is,
        so that parts that are the same need not be computed again.
        """
        watch = Stopwatch()
        meant = definition or self.definition
        addresses = Addresses()
        circuit = None
        clock = datetime.now(UTC)
        owed = plan is not None and plan.way == "behind"
        answer = None
        if owed or meant.policy == "full" or (plan is not None and plan.way == "query"):
            task.expect(None)  # an engine does not say how far it is
            try:
                answer = self._queried(meant, sources, clock)
            except UnsupportedError:
                if not owed:
                    raise
                owed = False
        if answer is not None and metadata is None and not self.base.files:
            rows_in = sources.total_rows()
            with self.timed("publish"):
                changed = first_rows(self.base, answer)
        else:
            if answer is not None:
                rows = pa.Table.from_batches(answer, meant.schema)
                result, rows_in = ZSet.packed(Layout(meant.schema), rows).consolidate(), sources.total_rows()
            else:
                circuit = built(meant)
                backfill = self._backfill(circuit) if keep else None
                task.expect(None if backfill is not None else sources.total_rows() or None)
                if backfill is None:
                    rows_in, result = self.loaded(circuit, sources, meant, task)
                else:
                    rows_in, result = self.stepped(circuit, sources.rows, meant, task, backfill)
            with self.timed("publish"):
                if metadata is None:
                    changed = reconcile(self.base, addresses, result)
                else:
                    changed = replace_all(self.base, metadata, addresses, result)
            del result
        rates, spent = self.record.rates, watch.seconds()
        lost = plan.lost_seconds if plan is not None else 0.0
        if circuit is None:
            self.live.queried = (rows_in, spent)
            stateless = meant.policy != "full" and not owed
            rates = replace(rates.after_query(rows_in, spent), lost_seconds=lost, stateless=stateless)
        else:
            rates = replace(rates.after_full(rows_in, spent, lost), fan_out=fan_out(circuit, meant) or rates.fan_out)
        record = ViewRecord(
            frontier=sources.frontier,
            published=self.base.version + 1,
            last=self.finished("full", rows_in, changed.rows),
            rates=rates,
            owed=owed,
            clock=clock if meant.policy == "full" else None,
        )
        if circuit is not None:
            with self.timed("save"):
                at = self.at(record, table=metadata)
                record = replace(record, state=self.live.folder.save(circuit, addresses, at))
        self.live.circuit, self.live.addresses = circuit, addresses
        self.live.begun = replace(self.live.begun, figures={})  # nothing of this circuit was done before
        operation = "REFRESH MATERIALIZED VIEW" if definition is None else "REPLACE MATERIALIZED VIEW"
        self.commit(operation, changed, record, definition=definition, metadata=metadata)
        self._report(sources, record.last, reason)

    def _backfill(self, circuit: Circuit) -> Backfill | None:
        """What can be kept of the committed state, for another circuit; None if nothing."""
        if self.record.state is None:
            return None
        try:
            self.restored()
            self.settle()
            assert self.live.saved is not None, "it was restored"
            found = Backfill(circuit, self.live.folder.store, self.live.folder.manifest(self.live.saved))
        except (Unusable, NotFoundError, CorruptionError):
            return None
        return found if found.kept else None

    def _queried(self, definition: Definition, sources: Sources, clock: datetime) -> Iterator[pa.RecordBatch]:
        """The rows of a view, computed by a query engine; raises at once if it cannot."""
        reader = self.environment.compute(definition.answer_at(clock), sources.relations(), definition.sql)
        return (batch.cast(definition.schema) for batch in reader)

    def _report(self, sources: Sources, last: LastRefresh | None, reason: str) -> None:
        assert last is not None, "it was just made"
        seconds = time.perf_counter() - self.began
        whole = Work(engine="local", stage=LOCAL, steps=1, rows_in=last.rows_in, rows_out=last.rows_out)
        self.live.works = self.works or [replace(whole, bytes_out=self.bytes_out, seconds=seconds)]
        self.done = reported(self.view, self.was, sources, last, seconds=seconds, reason=reason)
