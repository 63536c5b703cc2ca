"""Attempts: one try to change a view, alone in this process and on this machine, on what is committed then.

An attempt has what is committed (`base`, `definition`, `record`), can have the state of it in memory (`restored`), step
its circuit, and commit. Who loses a race against another machine leaves the ``with`` block quietly, and tries again;
after any failure what is in memory is thrown away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headwater.base import events, faults
from headwater.base.errors import (
    CorruptionError,
    HeadwaterError,
    InputError,
    NotFoundError,
)
from headwater.base.frontier import Frontier
from headwater.derived.attempt import Attempt, Timings
from headwater.derived.environment import Environment
from headwater.derived.reports import Refresh
from headwater.derived.sources import Input, Sources, Unavailable
from headwater.incremental.circuit import durable
from headwater.incremental.circuit.backfilling import Backfill
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.layout import Layout
from headwater.incremental.manifest import Manifest
from headwater.incremental.views import catching_up, output_table, packing_up
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.live import OUTPUT, Live
from headwater.incremental.views.loading import load_tables
from headwater.incremental.views.record import StateAt, ViewRecord
from headwater.incremental.views.state_folder import ViewFolder
from headwater.incremental.views.words import WORDS
from headwater.incremental.zset import ZSet
from headwater.lake import checkpoint, snapshot
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.published import Changed
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table

__all__ = ["Unusable", "ViewAttempt"]


class Unusable(Exception):
    """What is needed to go on from changes is not there; the text says what."""


@dataclass
class ViewAttempt(Attempt):
    """One try to change a view."""

    view: str
    table: Table
    environment: Environment
    live: Live
    last: bool = False
    timings: Timings = field(default_factory=dict)
    done: Refresh | None = None
    sweeps: bool = False
    """Whether old state is deleted with the commit, because nobody has looked for it yet."""

    base: Snapshot = field(init=False)
    definition: Definition = field(init=False)
    record: ViewRecord = field(init=False)
    was: Frontier = field(init=False)
    began: float = field(init=False)
    bytes_out: int = 0
    """How large the data files are that the last commit brought."""
    _held_step: Callable[[], None] | None = None

    @property
    def guard(self) -> threading.RLock:
        """The lock of the live view."""
        return self.live.guard

    @property
    def folder(self) -> ViewFolder:
        """The folder of its state."""
        return self.live.folder

    def look(self) -> None:
        """See what is committed."""
        self.base = self.table.snapshot
        definition = Definition.of(self.base)
        if definition is None:
            raise InputError.not_derived(self.view, WORDS, self.base.where)
        self.definition, self.record = definition, self.live.informed(ViewRecord.of(self.base), definition.sql)
        self.was = self.record.frontier

    def failed(self) -> None:
        """Drop what is in memory."""
        self.live.discard()
        self.live.suspicious = True

    def inherited(self) -> None:
        """What another process may have left is swept with the next commit."""
        self.live.suspicious = True

    def at(self, record: ViewRecord, *, table: Metadata | None = None, settled: bool = False) -> StateAt:
        """What the state in memory is the state of, when a record is committed."""
        table = table or self.base.state.metadata
        return StateAt(table.id, record.published, record.frontier, settled=settled)

    def stepped(
        self,
        circuit: Circuit,
        read: Callable[[Input], Iterator[pa.RecordBatch]],
        definition: Definition,
        task: events.Task | None,
        backfill: Backfill | None = None,
        *,
        holds: bool = False,
    ) -> tuple[int, ZSet]:
        """Feed a circuit with what ``read`` gives for each input, as one step; how many rows that were, and the view's
        change.

        If it ``holds``, the step is not permanent in memory before `make_permanent` is called.
        """
        start, rows = time.perf_counter(), 0
        with circuit.transaction() as transaction:
            transaction.holds = holds
            if backfill is not None:
                transaction.step = backfill.run
            for relation, one in definition.inputs.items():
                if backfill is not None and relation not in backfill.sources:
                    continue
                for batch in read(one):
                    rows += batch.num_rows
                    circuit.inputs[relation].figures.bytes_in += batch.nbytes
                    if task is not None:
                        task.advance(batch.num_rows)
                    circuit.step({relation: batch})
            end = time.perf_counter()
        assert transaction.outputs is not None
        self._held_step = transaction.commit
        self.timings["read"] = end - start
        self.timings["step"] = time.perf_counter() - end
        faults.point("view.refresh.stepped", self.view)
        return rows, transaction.outputs.zset(OUTPUT)

    def loaded(
        self, circuit: Circuit, sources: Sources, definition: Definition, task: events.Task | None
    ) -> tuple[int, ZSet]:
        """Feed a circuit without state with all rows of its sources; how many rows that were, and the view's rows."""
        with self.timed("load"):
            rows, found = load_tables(circuit, sources, definition, self.live.folder.store, task)
        faults.point("view.refresh.stepped", self.view)
        return rows, found

    def followed(
        self, circuit: Circuit, sources: Sources, task: events.Task | None, *, holds: bool = False
    ) -> tuple[int, ZSet]:
        """Feed a circuit with what has changed in the sources.

        A row that cannot be computed with may be mended by a later change. So after such a failure the changes are
        added up, and tried once more.
        """
        try:
            return self.stepped(circuit, sources.changes, self.definition, task, holds=holds)
        except InputError:
            return self.stepped(circuit, sources.net_changes, self.definition, None, holds=holds)

    def make_permanent(self) -> None:
        """Let the circuit keep the step that it has made, if it does not yet."""
        commit, self._held_step = self._held_step, None
        if commit is not None:
            commit()

    def restored(self, task: events.Task | None = None) -> None:
        """Have the state that is committed in memory, for the files that the table has now."""
        with self.timed("restore"):
            if not self.live.has(self.base.state.metadata.id, self.definition, self.record):
                try:
                    at = self.live.restore(self.base.state.metadata.id, self.definition, self.record)
                    if at is not None:
                        self._catch_up(at, task)
                except (NotFoundError, CorruptionError, InputError) as e:
                    self.live.discard()
                    raise Unusable(f"its state cannot be used: {e.message}") from e
            addresses = self.live.addresses
            there = set(addresses.files.values())
            if there != set(self.base.files):
                gone = [path for path in there if path not in self.base.files]
                came = [f for path, f in self.base.files.items() if path not in there]
                packing_up.readdress(self.base, addresses, self.layout, gone, came)

    def saved_state(self, task: events.Task | None = None) -> Manifest:
        """The saved state of exactly what is committed; it is brought forward and saved if there is none."""
        if self.record.state is None:
            raise Unusable("it has no state yet")
        folder, table, published = self.live.folder, self.base.state.metadata.id, self.record.published
        try:
            name = folder.newest(self.record.state, table, published)
            found = folder.listed(name)
        except (NotFoundError, CorruptionError) as e:
            raise Unusable(f"its state cannot be used: {e.message}") from e
        at = StateAt.of(found.extra["extra"])
        files = set(found.extra["extra"]["files"].values())
        if at is not None and at.published == published and files == set(self.base.files):
            return found
        self.restored(task)
        one = self.live
        assert one.circuit is not None
        one.is_saved(folder.save(one.circuit, one.addresses, self.at(self.record, settled=True)))
        one.unswept += 1
        assert one.saved is not None
        return folder.listed(one.saved)

    def _catch_up(self, at: StateAt, task: events.Task | None) -> None:
        """Bring a state that is older than the view to where the view is."""
        assert self.live.circuit is not None
        # The state does not say which columns it has read: those of the record, or it would have been built from
        # scratch.
        known = self.record.frontier.identities
        columns = {n: known[n].columns if n in known else {} for n in at.frontier.identities}
        since = at.frontier.identified({n: replace(i, columns=columns[n]) for n, i in at.frontier.identities.items()})
        inputs = self.definition.inputs.values()
        sources = Sources.pin(self.view, inputs, since, self.record.frontier, self.environment, kind=WORDS)
        try:
            sources.check()
            self.followed(self.live.circuit, sources, task)
        except (Unavailable, HeadwaterError) as e:
            self.live.discard()
            raise Unusable(f"its state cannot be brought forward: {e}") from e
        before = snapshot.at_version(self.base.storage, at.published)
        catching_up.follow(self.live.addresses, self.layout, before=before, after=self.base)
        self.live.behind = self.record.published - at.published

    @property
    def layout(self) -> Layout:
        """The layout of the view's rows."""
        return Layout(self.definition.schema)

    def commit(
        self,
        operation: str,
        changed: Changed,
        record: ViewRecord,
        *,
        definition: Definition | None = None,
        metadata: Metadata | None = None,
        ready: Callable[[], object] | None = None,
        rows: int = 0,
    ) -> None:
        """Make it true, and tidy up; ``rows`` is how many had changed in the sources."""
        self.bytes_out = sum(f.size for f in changed.adds if f.path not in self.base.files)
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
            self.live.follows(record.state, rows)
            self.live.unswept += 1
            if self.sweeps:
                self.sweep()
            if checkpoint.due(self.base.state):
                self.live.unchecked = self.base.version

    def pack(self, files: Sequence[AddFile]) -> None:
        """Write files of the view anew, as one more commit that changes no row."""
        if not files or self.base.version != self.record.published:
            return
        if not self._has_addresses():
            self.table.optimize()
            return
        rewritten = packing_up.rewrite(self.base, self.layout, files)
        if not self.swap(rewritten):
            packing_up.discard(rewritten)
        self.sweep()

    def optimize(self) -> None:
        """Write files of the view anew and merge its state, as one more commit that changes no row;
        superseded state goes at once.
        """
        if self.base.version != self.record.published:
            return
        files = packing_up.everything(self.base)
        if not self._has_addresses():
            self.pack(files)
            return
        rewritten = packing_up.rewrite(self.base, self.layout, files) if files else None
        changed = None if rewritten is None else packing_up.swapped(self.base, self.live.addresses, rewritten)
        if rewritten is not None and changed is None:
            packing_up.discard(rewritten)
        assert self.live.circuit is not None
        merged = durable.compact(durable.traces_of(self.live.circuit, self.live.addresses.traces))
        if merged or changed is not None:
            self._commit_files(changed or Changed())
        self.sweep()

    def _has_addresses(self) -> bool:
        """Whether there are addresses to keep. If the state cannot be used there are none: the next refresh says so,
        and builds another.
        """
        try:
            if self.record.state is not None:
                self.restored()
        except Unusable:
            return False
        return self.record.state is not None

    def swap(self, rewritten: packing_up.Rewritten) -> bool:
        """Let files that were written anew take the place of the old ones; False if that cannot be any more."""
        if self.base.version != self.record.published or self.record.state is None:
            return False
        self.restored()
        changed = packing_up.swapped(self.base, self.live.addresses, rewritten)
        if changed is None:
            return False
        self._commit_files(changed)
        return True

    def _commit_files(self, changed: Changed) -> None:
        """Commit rows that lie elsewhere, with the state as it is in memory."""
        assert self.live.circuit is not None
        record = replace(self.record, published=self.base.version + 1)
        state = self.live.folder.save(self.live.circuit, self.live.addresses, self.at(record))
        self.commit("OPTIMIZE", changed, replace(record, state=state))

    def settle(self) -> None:
        """Save what is in memory, if it belongs to what is committed and was not saved with it."""
        one = self.live
        if (
            one.behind
            and one.circuit is not None
            and one.has(self.base.state.metadata.id, self.definition, self.record)
        ):
            faults.point("view.settle.before", self.view)
            one.is_saved(one.folder.save(one.circuit, one.addresses, self.at(self.record, settled=True)))
            one.unswept += 1

    def sweep(self) -> None:
        """Delete states that were superseded."""
        self.live.unswept = 0
        self.live.folder.sweep(self.record.state, self.base.state.metadata.id, self.record.published)
