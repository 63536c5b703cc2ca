"""Recorded artefacts: those whose output is not a Delta table, and whose commits are in a `RecordLog`.

What a refresh does is the same for all of them: pin the sources, decide, write files that nobody names yet, commit one
record that names them with the frontier, and then tidy up. A kind supplies the three parts that are its own: `decide`,
`build` and `tidy`. Whatever `build` has written before the commit is an orphan until then; whatever `tidy` does after
it cannot change the answer.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

from headwater.base import events, faults
from headwater.base.errors import NotFoundError, UnsupportedError
from headwater.base.frontier import Frontier
from headwater.derived.attempt import Attempt, Timings, attempts, reported
from headwater.derived.environment import Environment
from headwater.derived.handle import Handle
from headwater.derived.place import Place, place_of
from headwater.derived.plan import RefreshPlan
from headwater.derived.publishes import Publish, publishes_of_log
from headwater.derived.record import Record
from headwater.derived.record_history import RecordHistory
from headwater.derived.record_log import Committed, RecordLog
from headwater.derived.reports import Mode, Refresh
from headwater.derived.sources import Input, Sources
from headwater.derived.state_folder import StateFolder
from headwater.lake.snapshot import Snapshot

__all__ = ["Built", "RecordedArtefact"]

_NOT_LOOKED_AT: Mapping[str, Snapshot] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Built:
    """What `RecordedArtefact.build` has written: the record to commit, but for its frontier, and the rows.

    ``instead`` says why it was built from scratch where the plan was to follow the changes.
    """

    record: Record
    rows_in: int
    rows_out: int
    instead: str | None = None


class RecordedArtefact(Handle):
    """An artefact whose commits are records."""

    record_type: ClassVar[type[Record]] = Record
    remembers: ClassVar[bool] = False
    """Whether it can say what it published when, however long ago (`history`)."""

    def __init__(self, name: str, environment: Environment) -> None:
        super().__init__(name, environment)
        self.log = RecordLog(environment.root, self.kind.name, name)
        self.history = RecordHistory(environment.root, self.log)

    # -- what a kind supplies --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def inputs(self) -> Sequence[Input]:
        """What it reads."""

    @abstractmethod
    def decide(self, record: Any, sources: Sources, *, full: bool) -> RefreshPlan:
        """What a refresh from a record to these sources has to do."""

    @abstractmethod
    def build(self, record: Any, plan: Any, sources: Sources, number: int, task: events.Task) -> Built:
        """Write what belongs to commit ``number``, so that a record can name it."""

    def tidy(self, before: Any, after: Any) -> None:
        """Delete what neither of the last two commits names; after a failure,
        whatever no commit names (`before` is None).
        """

    # -- what follows ----------------------------------------------------------------------------------------------

    def committed(self) -> Committed:
        """The newest commit."""
        found = self.log.newest()
        if found is None:
            known = self._environment.names(self.kind.name)
            raise NotFoundError.derived(self.name, self.kind, known, self._environment.root.url)
        return found

    def record_of(self, committed: Committed) -> Any:
        """What a commit says."""
        return self.record_type.from_json(committed.record, f"commit {committed.number}", self.log.path)

    @property
    def record(self) -> Any:
        """What the newest commit says."""
        return self.record_of(self.committed())

    def purge(self) -> None:
        """Build it from its sources, delete every file that this does not name, and every commit but the newest."""
        self.refresh_alone(None, full=True)
        with self.held():
            committed = self.committed()
            self.delete_others(self.record_of(committed))
            self.log.sweep(kept=1)

    def delete_others(self, record: Any) -> None:
        """Delete all files of its own that a record does not name, however young they are."""
        raise UnsupportedError.operation(
            f"purging {self.kind.one}", "this kind cannot tell which files are its own", "drop it, and make it again"
        )

    def publishes(self) -> list[Publish]:
        """The commits that are kept, oldest first."""
        return publishes_of_log(self.log)

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the tables that it reads."""
        return tuple(sorted({one.table for one in self.inputs}))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the tables that it reads."""
        return self.reads

    def pinned(
        self, since: Frontier, until: Frontier | None, newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT, **more: bool
    ) -> Sources:
        """The sources at the versions that they are to be read at."""
        return Sources.pin(
            self.name, self.inputs, since, until, self._environment, kind=self.kind, newest=newest, **more
        )

    def refresh_alone(
        self, until: Frontier | None, *, full: bool = False, newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT
    ) -> Refresh:
        """Bring it forward, and nothing that it reads."""
        for attempt in attempts(lambda last: _RecordedAttempt(self, self._own_place, last=last)):
            with attempt:
                attempt.refresh(until, full=full, newest=newest)
            if attempt.done is not None:
                return attempt.done
        raise AssertionError("the last attempt raises")

    def plan_alone(
        self, until: Frontier | None, *, newest: Mapping[str, Snapshot] = _NOT_LOOKED_AT, first: Sequence[str] = ()
    ) -> RefreshPlan:
        """What `refresh_alone` would do."""
        record = self.record
        found = self.decide(record, self.pinned(record.frontier, until, newest, unbuilt=bool(first)), full=False)
        if not first:
            return found
        mode: Mode = "incremental" if found.mode == "noop" else found.mode
        named = ", ".join(f"`{one}`" for one in first)
        return replace(found, mode=mode, reason=f"{found.reason}; {named} will be refreshed first")

    @property
    def folder_path(self) -> str:
        """Where its files lie, below the root of the lake."""
        return f"_headwater/{self.kind.name}s/{self.name}"

    @property
    def _own_place(self) -> Place:
        return place_of(self._environment.root, self.folder_path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the one on this machine that changes it."""
        place = self._own_place
        with place.guard, place.folder.held():
            yield

    def delete(self) -> None:
        """Delete it with all that belongs to it, its name first."""
        with self.held():
            self.log.remove()
            if self.remembers:
                self.history.remove()
            self.remove_output()
            self._own_place.folder.remove()

    @abstractmethod
    def remove_output(self) -> None:
        """Delete what it has written."""


class _RecordedAttempt(Attempt):
    """One try to refresh a recorded artefact."""

    committed: Committed
    before: Any

    def __init__(self, artefact: RecordedArtefact, place: Place, *, last: bool) -> None:
        self.artefact, self.place, self.last = artefact, place, last
        self.timings: Timings = {}

    @property
    def guard(self) -> threading.RLock:
        return self.place.guard

    @property
    def folder(self) -> StateFolder:
        return self.place.folder

    def look(self) -> None:
        self.committed = self.artefact.committed()
        self.before = self.artefact.record_of(self.committed)

    def failed(self) -> None:
        self.place.suspicious = True

    inherited = failed

    def refresh(self, until: Frontier | None, *, full: bool, newest: Mapping[str, Snapshot]) -> None:
        """Do it, and leave the report in ``done``."""
        artefact, before, was = self.artefact, self.before, self.before.frontier
        sources = artefact.pinned(was, until, newest)
        plan = artefact.decide(before, sources, full=full)
        if plan.mode == "noop":
            self.done = Refresh(before=was, after=was, mode="noop", reason=plan.reason, name=artefact.name)
            return
        if self.place.suspicious:
            artefact.tidy(None, before)
            self.place.suspicious = False
        number = self.committed.number + 1
        faults.point("derived.refresh.begin", artefact.name)
        with events.task(f"refresh {artefact.name}", unit="rows") as task:
            built = artefact.build(before, plan, sources, number, task)
        if built.instead is not None:
            plan = replace(plan, mode="full", reason=built.instead)
        last = self.finished(plan.mode, built.rows_in, built.rows_out)
        after = replace(built.record, frontier=sources.frontier, published=number, last=last)
        artefact.log.commit(self.committed.number, self.committed.definition, after.to_json())
        artefact.tidy(before, after)
        (artefact.history if artefact.remembers else artefact.log).sweep()
        seconds = time.perf_counter() - self.began
        self.done = reported(artefact.name, was, sources, last, seconds=seconds, reason=plan.reason)
