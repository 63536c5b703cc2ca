"""Refreshing: from the changes of the sources to one commit, in an order in which a crash anywhere is before or after it.

1. pin the sources, and look at what the newest commit of the view says: its frontier, and the state that belongs to it;
2. read the changes, step the circuit, write the rows that come and mark those that go (files that nobody names yet);
3. save the state (a manifest that nobody names yet); or, after a small change, leave that for later;
4. commit: rows and frontier become true together, or another refresh won;
5. later, in the background, save the state, delete what is not named any more, and put small files together if there are many (`tidying`).

If a process ends before 5., the state is older than the rows: the next one follows the changes in between again, without publishing them.

If it cannot be done from changes (there is no state yet, changes are gone, it would take longer), the circuit is built anew and fed
with all rows; its result is published as a difference all the same. After any failure what is in memory is thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from headwater.base import events, faults
from headwater.base.derived import Mode, Refresh
from headwater.base.errors import (
    ConflictError,
    CorruptionError,
    HeadwaterError,
    InputError,
    NotFoundError,
    UnsupportedError,
)
from headwater.base.frontier import Frontier
from headwater.incremental import spill
from headwater.incremental.circuit import durable
from headwater.incremental.circuit.backfilling import Backfill
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.layout import Layout
from headwater.incremental.views import catching_up, orphans, output_table, packing_up
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.costs import RefreshPlan
from headwater.incremental.views.deciding import decide, foreign
from headwater.incremental.views.definition import Definition, Input
from headwater.incremental.views.functions import check_functions
from headwater.incremental.views.live import OUTPUT, Live, built, live
from headwater.incremental.views.publishing import Changed, publish
from headwater.incremental.views.reconciling import reconcile, replace_all
from headwater.incremental.views.record import Record
from headwater.incremental.views.sources import Sources, Unavailable
from headwater.incremental.views.state_at import StateAt
from headwater.incremental.views.surroundings import Surroundings
from headwater.incremental.views.together import begin
from headwater.incremental.zset import ZSet
from headwater.lake import checkpoint, snapshot
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table

__all__ = ["Attempt", "Timings", "attempts", "refresh"]

_TRIES = 20
_WORTH_A_THREAD = 32_768
_LOST = "E4001"
Timings = dict[str, float]


def refresh(
    view: str, table: Table, around: Surroundings, until: Frontier | None, *, full: bool, timings: Timings
) -> Refresh:
    """Bring a view forward."""
    for attempt in attempts(view, table, around):
        attempt.timings = timings
        with attempt:
            attempt.refresh(until, full=full)
        if attempt.done is not None:
            return attempt.done
    raise AssertionError("the last attempt raises")


def attempts(view: str, table: Table, around: Surroundings) -> Iterator[Attempt]:
    """Tries to commit something to a view, each on what is committed then; a try that lost a race is followed by another."""
    for left in reversed(range(_TRIES)):
        yield Attempt(view, table, around, live(around.root, view), last=left == 0)


@dataclass
class Attempt:
    """One try to change a view, alone in this process and on this machine; a ``with`` block that swallows a lost race."""

    view: str
    table: Table
    around: Surroundings
    live: Live
    last: bool = False
    timings: Timings = field(default_factory=dict)
    done: Refresh | None = None
    sweeps: bool = False
    """Whether old state is deleted with the commit, because nobody has looked for it yet."""

    base: Snapshot = field(init=False)
    definition: Definition = field(init=False)
    record: Record = field(init=False)
    was: Frontier = field(init=False)
    began: float = field(init=False)

    def __enter__(self) -> Self:
        self.began = time.perf_counter()
        self.live.guard.acquire()
        try:
            self._held = self.live.folder.held()
            self._held.__enter__()
            try:
                self._look()
                self.timings["begin"] = time.perf_counter() - self.began
            except BaseException:
                self._held.__exit__(None, None, None)
                raise
        except BaseException:
            self.live.guard.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        try:
            if error is not None:
                self.live.discard()
                self.live.suspicious = True
            self._held.__exit__(None, None, None)
        finally:
            self.live.guard.release()
        return isinstance(error, ConflictError) and error.code == _LOST and not self.last

    def _look(self) -> None:
        self.base = self.table.snapshot
        definition = Definition.of(self.base)
        if definition is None:
            raise InputError.not_a_view(self.view, self.base.where)
        self.definition, self.record = definition, self.live.informed(Record.of(self.base))
        self.was = self.record.frontier

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Measure a part of the work."""
        start = time.perf_counter()
        yield
        self.timings[phase] = self.timings.get(phase, 0.0) + time.perf_counter() - start

    # -- what to do ------------------------------------------------------------------------------------------------

    def refresh(self, until: Frontier | None, *, full: bool) -> None:
        """Do it, and leave the report in ``done``."""
        check_functions(self.view, self.definition.functions, self.around.functions)
        with self.timed("pin"):
            sources = Sources.pin(self.view, self.definition, self.record, until, self.around)
        changed = None if full else foreign(self.base, self.definition, self.record)
        if changed is not None:
            raise ConflictError.view_changed(self.view, changed, self.base.where)
        with self.timed("plan"):
            plan = decide(self.view, self.definition, self.record, sources, full=full, brief=True)
        if plan.mode == "noop":
            self.done = Refresh(
                before=self.record.frontier, after=self.record.frontier, mode="noop", reason=plan.reason
            )
            return
        if self.live.suspicious:
            with self.timed("sweep"):
                orphans.sweep(self.base, self.record.published)
            self.live.suspicious = False
            self.sweeps = True
        faults.point("view.refresh.begin", self.view)
        with events.task(f"refresh {self.view}", unit="rows") as task:
            if plan.mode == "incremental":
                try:
                    with spill.put_off():
                        self._from_changes(sources, plan, task)
                    return
                except _Unusable as e:
                    self.live.discard()
                    plan = replace(plan, mode="full", way="build", reason=str(e))
                    if self.definition.policy == "strict":
                        raise UnsupportedError.recompute(self.view, plan.reason) from None
            self.anew(sources, plan.reason, task, plan=plan)

    # -- from changes ----------------------------------------------------------------------------------------------

    def _from_changes(self, sources: Sources, plan: RefreshPlan, task: events.Task) -> None:
        start = time.perf_counter()
        self._restored(task)
        circuit = self.live.circuit
        assert circuit is not None
        try:
            rows_in, delta = self._stepped(circuit, sources.changes, self.definition, task)
        except Unavailable as e:
            raise _Unusable(str(e)) from None
        changed, folder, addresses = Changed(), self.live.folder, self.live.addresses
        with self._flushing(circuit, rows_in), self.timed("publish"):
            if len(delta):
                changed = publish(self.base, addresses, delta)
        del delta  # or runs that it comes from would seem to be in use when it comes to sweeping
        rates = replace(self.record.rates, lost_seconds=plan.lost_seconds)
        rates = rates.after_changes(rows_in, time.perf_counter() - start)
        record = Record(sources.frontier, sources.ids, self.live.saved, self.base.version + 1, rates)
        ready = None
        if not self.live.may_lag(rows_in):
            with self.timed("save"):
                folder.flush(durable.traces_of(circuit, addresses.traces))
                record = replace(record, state=folder.next_name())

            def ready() -> None:  # what is left of it, while the files of the commit are being flushed
                with self.timed("save"):
                    folder.save(circuit, addresses, self._at(record), name=record.state)

        self.commit("REFRESH MATERIALIZED VIEW", changed, record, ready=ready)
        self._report(sources, "incremental", rows_in, changed, plan.reason)

    def _at(self, record: Record, *, table: Metadata | None = None, settled: bool = False) -> StateAt:
        """What the state in memory is the state of, when a record is committed."""
        table = table or self.base.state.metadata
        return StateAt(table.id, record.published, record.frontier, record.ids, settled=settled)

    def _flushing(self, circuit: Circuit, rows: int) -> AbstractContextManager[object]:
        """Write the new state of a large step beside what follows; that of a small one is written sooner than a thread has its turn."""
        if rows < _WORTH_A_THREAD:
            return nullcontext()
        return begin(lambda: self.live.folder.flush(durable.traces_of(circuit)))

    def _stepped(
        self,
        circuit: Circuit,
        read: Callable[[Input], Iterator[pa.RecordBatch]],
        definition: Definition,
        task: events.Task | None,
        backfill: Backfill | None = None,
    ) -> tuple[int, ZSet]:
        """Feed a circuit with what ``read`` gives for each input, as one step; how many rows that were, and the view's change."""
        start, rows = time.perf_counter(), 0
        with circuit.transaction() as transaction:
            if backfill is not None:
                transaction.step = backfill.run
            for relation, one in definition.inputs.items():
                if backfill is not None and relation not in backfill.sources:
                    continue
                for batch in read(one):
                    rows += batch.num_rows
                    if task is not None:
                        task.advance(batch.num_rows)
                    circuit.step({relation: batch})
            end = time.perf_counter()
        assert transaction.outputs is not None
        self.timings["read"] = end - start
        self.timings["step"] = time.perf_counter() - end
        faults.point("view.refresh.stepped", self.view)
        return rows, transaction.outputs.zset(OUTPUT)

    def _restored(self, task: events.Task | None = None) -> None:
        """Have the state that is committed in memory, for the files that the table has now."""
        with self.timed("restore"):
            if not self.live.has(self.base.state.metadata.id, self.definition, self.record):
                try:
                    at = self.live.restore(self.base.state.metadata.id, self.definition, self.record)
                    if at is not None:
                        self._catch_up(at, task)
                except (NotFoundError, CorruptionError, InputError) as e:
                    raise _Unusable(f"its state cannot be used: {e.message}") from e
            addresses = self.live.addresses
            there = set(addresses.files.values())
            if there != set(self.base.files):
                gone = [path for path in there if path not in self.base.files]
                came = [f for path, f in self.base.files.items() if path not in there]
                packing_up.readdress(self.base, addresses, self.layout, gone, came)

    def _catch_up(self, at: StateAt, task: events.Task | None) -> None:
        """Bring a state that is older than the view to where the view is."""
        assert self.live.circuit is not None
        since = Record(at.frontier, at.ids, published=at.published)
        sources = Sources.pin(self.view, self.definition, since, self.record.frontier, self.around)
        try:
            sources.check()
            self._stepped(self.live.circuit, sources.changes, self.definition, task)
        except (Unavailable, HeadwaterError) as e:
            raise _Unusable(f"its state cannot be brought forward: {e}") from e
        before = snapshot.at_version(self.base.storage, at.published)
        catching_up.follow(self.live.addresses, self.layout, before=before, after=self.base)
        self.live.behind = self.record.published - at.published

    @property
    def layout(self) -> Layout:
        """The layout of the view's rows."""
        return Layout(self.definition.schema)

    # -- anew ------------------------------------------------------------------------------------------------------

    def anew(
        self,
        sources: Sources,
        reason: str,
        task: events.Task,
        *,
        definition: Definition | None = None,
        metadata: Metadata | None = None,
        keep: bool = False,
        plan: RefreshPlan | None = None,
    ) -> None:
        """Compute the view from all rows of its sources, and publish the difference; by a query, if that is the policy or the plan.

        With another ``definition`` the view is that from now on. ``keep`` says that the sources are where the state is, so that parts that are
        the same need not be computed again.
        """
        start = time.perf_counter()
        meant = definition or self.definition
        addresses = Addresses()
        circuit = None
        queries = meant.policy == "full" or (plan is not None and plan.way == "query")
        if queries:
            result, rows_in = self._queried(meant, sources), sources.total_rows()
        else:
            circuit = built(meant)
            backfill = self._backfill(circuit) if keep else None
            rows_in, result = self._stepped(circuit, sources.rows, meant, task, backfill)
        with self.timed("publish"):
            if metadata is None:
                changed = reconcile(self.base, addresses, result)
            else:
                changed = replace_all(self.base, metadata, addresses, result)
        del result
        rates, spent = self.record.rates, time.perf_counter() - start
        lost = plan.lost_seconds if plan is not None else 0.0
        if queries:
            self.live.queried = (rows_in, spent)
            rates = replace(rates.after_query(rows_in, spent), lost_seconds=lost, stateless=meant.policy != "full")
        else:
            rates = rates.after_full(rows_in, spent, lost)
        record = Record(sources.frontier, sources.ids, None, self.base.version + 1, rates)
        if circuit is not None:
            with self.timed("save"):
                at = self._at(record, table=metadata)
                record = replace(record, state=self.live.folder.save(circuit, addresses, at))
        self.live.circuit, self.live.addresses = circuit, addresses
        operation = "REFRESH MATERIALIZED VIEW" if definition is None else "REPLACE MATERIALIZED VIEW"
        self.commit(operation, changed, record, definition=definition, metadata=metadata)
        self._report(sources, "full", rows_in, changed, reason)

    def _backfill(self, circuit: Circuit) -> Backfill | None:
        """What can be kept of the committed state, for another circuit; None if nothing."""
        if self.record.state is None:
            return None
        try:
            self._restored()
            self.settle()
            assert self.live.saved is not None, "it was restored"
            found = Backfill(circuit, self.live.folder.store, self.live.folder.manifest(self.live.saved))
        except (_Unusable, NotFoundError, CorruptionError):
            return None
        return found if found.kept else None

    def _queried(self, definition: Definition, sources: Sources) -> ZSet:
        reader = self.around.compute(definition.answer, sources.relations(), definition.sql)
        schema = definition.schema
        rows = pa.Table.from_batches([b.cast(schema) for b in reader], schema)
        return ZSet.packed(Layout(schema), rows).consolidate()

    # -- the moment ------------------------------------------------------------------------------------------------

    def commit(
        self,
        operation: str,
        changed: Changed,
        record: Record,
        *,
        definition: Definition | None = None,
        metadata: Metadata | None = None,
        ready: Callable[[], object] | None = None,
    ) -> None:
        """Make it true, and tidy up."""
        faults.point("view.commit.before", self.view)
        with self.timed("commit"):
            output_table.commit(
                self.base, operation, changed, record, definition=definition, metadata=metadata, ready=ready
            )
        faults.point("view.commit.after", self.view)
        with self.timed("tidy"):
            self.base = snapshot.at_version(self.base.storage, record.published)
            self.definition, self.record = definition or self.definition, record
            self.live.committed(self.base.state.metadata.id, self.definition, record)
            self.live.follows(record.state)
            self.live.unswept += 1
            if self.sweeps:
                self.sweep()
            if checkpoint.due(self.base.state):
                self.live.unchecked = self.base.version

    def pack(self, files: Sequence[AddFile]) -> None:
        """Write files of the view anew, as one more commit that changes no row."""
        if not files or self.base.version != self.record.published:
            return
        if self.record.state is None:
            self.table.optimize()
            return
        self.swap(packing_up.rewrite(self.base, self.layout, files))
        self.sweep()

    def swap(self, rewritten: packing_up.Rewritten) -> bool:
        """Let files that were written anew take the place of the old ones; False if that cannot be any more."""
        if self.base.version != self.record.published or self.record.state is None:
            return False
        self._restored()
        changed = packing_up.swapped(self.base, self.live.addresses, rewritten)
        if changed is None:
            return False
        assert self.live.circuit is not None
        record = replace(self.record, published=self.base.version + 1)
        state = self.live.folder.save(self.live.circuit, self.live.addresses, self._at(record))
        self.commit("OPTIMIZE", changed, replace(record, state=state))
        return True

    def settle(self) -> None:
        """Save what is in memory, if it belongs to what is committed and was not saved with it."""
        one = self.live
        if (
            one.behind
            and one.circuit is not None
            and one.has(self.base.state.metadata.id, self.definition, self.record)
        ):
            faults.point("view.settle.before", self.view)
            one.saved = one.folder.save(one.circuit, one.addresses, self._at(self.record, settled=True))
            one.behind = 0
            one.unswept += 1

    def sweep(self) -> None:
        """Delete states that were superseded."""
        self.live.unswept = 0
        self.live.folder.sweep(self.record.state, self.base.state.metadata.id, self.record.published)

    def _report(self, sources: Sources, mode: Mode, rows_in: int, changed: Changed, reason: str) -> None:
        # A source that is another table now, or none of the view's any more, is not something that it has got further with.
        was, after, replaced = self.was, sources.frontier, sources.replaced
        self.done = Refresh(
            before=was.restrict(n for n in was if was[n] <= after.get(n, -1) and n not in replaced),
            after=after,
            mode=mode,
            rows_in=rows_in,
            rows_out=changed.inserted + changed.deleted,
            seconds=time.perf_counter() - self.began,
            reason=reason,
        )


class _Unusable(Exception):
    """What is needed to go on from changes is not there; the text says what."""
