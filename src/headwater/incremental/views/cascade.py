"""Cascades: a refresh that brings the views forward first which a view reads, in order, each once.

Every table is looked at once (`upstream`), so views that meet again agree. A view that is where it should be is left
alone. Each refresh is a commit of its own: if one fails, those before it stay, and the error names them.

``until`` is meant for all of them, and each name in it has one of three meanings:

- a table: no view goes beyond that version of it;
- a view that is read: its readers read that very version, and it is not refreshed itself, nor for its sake what it
  reads;
- anything else is not looked at.

A view that ``until`` does not name is refreshed if it names something below it, and its readers then read the newest
version of it that reflects nothing beyond ``until``: it may have been further already. Where there is no such version,
and where ``until`` names nothing below it, the readers keep what they have of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.base.errors import HeadwaterError, NotFoundError, UpstreamError
from headwater.base.frontier import Frontier
from headwater.derived.contract import Refresh
from headwater.incremental.views import tidying
from headwater.incremental.views.attempting import Timings
from headwater.incremental.views.costs import RefreshPlan
from headwater.incremental.views.deciding import after_upstream, decide
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.dependencies import reachable, upstream_first
from headwater.incremental.views.live import live
from headwater.incremental.views.record import Record
from headwater.incremental.views.refreshing import refresh
from headwater.incremental.views.sources import Sources
from headwater.incremental.views.surroundings import Surroundings
from headwater.incremental.views.upstream import Looked
from headwater.lake import snapshot
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table

__all__ = ["Cascade", "plan_with_upstream", "refresh_with_upstream"]


def refresh_with_upstream(
    view: str, table: Table, around: Surroundings, until: Frontier | None, *, full: bool, timings: Timings
) -> Refresh:
    """Bring a view forward, and before it all views that it reads."""
    cascade = Cascade(around, until)
    done: list[Refresh] = []
    for name in cascade.order([view])[:-1]:
        try:
            one = cascade.upstream(name)
        except HeadwaterError as error:
            raise stopped(view, name, error, done) from error
        if one is not None:
            done.append(one)
    try:
        own = cascade.refresh(view, table, full=full, timings=timings)
    except HeadwaterError as error:
        if done:
            named = ", ".join(f"`{one.name}`" for one in done)
            error.advise(f"refreshed and committed before: {named}")
        raise
    return replace(own, upstream=tuple(done))


def stopped(asked: str, failed: str, error: HeadwaterError, done: Iterable[Refresh]) -> UpstreamError:
    """The error of a refresh that stopped before it came to the view that was asked for."""
    before = [one.name for one in done]
    return UpstreamError.stopped(asked, failed, error.message, error.where or "", error.advice, before)


def plan_with_upstream(view: str, table: Table, around: Surroundings, until: Frontier | None) -> RefreshPlan:
    """What `refresh_with_upstream` would do."""
    cascade = Cascade(around, until)
    plans: dict[str, RefreshPlan] = {}
    for name in cascade.order([view]):
        base = table.snapshot if name == view else cascade.looked.snapshot(name)
        assert base is not None, "it is a view"
        first = [n for n in cascade.looked.sources(name) or () if n in plans]
        if name != view and not first and cascade.is_current(name):
            continue
        try:
            plans[name] = cascade.plan(name, base, first)
        except HeadwaterError as error:
            if name == view:
                raise
            raise stopped(view, name, error, ()) from error
        if name != view and plans[name].mode == "noop":
            del plans[name]
    return replace(plans.pop(view), upstream=plans)


class Cascade:
    """Refreshes of views that read each other, to one frontier or to the newest versions."""

    def __init__(self, around: Surroundings, until: Frontier | None = None) -> None:
        self.looked = Looked(around)
        self._around = around
        self._until = until
        self._goal = until  # with the versions of views that were chosen on the way

    def order(self, names: Iterable[str]) -> list[str]:
        """Some views and those that have to be refreshed before them, each after those that it reads."""
        asked = set(names)
        return upstream_first(sorted(asked), lambda name: self._sources(name, asked))

    def _sources(self, name: str, asked: Iterable[str] = ()) -> tuple[str, ...] | None:
        """What a view reads, unless ``until`` says which version of the view is meant."""
        if self._until is not None and name in self._until and name not in asked:
            return None
        return self.looked.sources(name)

    def upstream(self, name: str) -> Refresh | None:
        """Refresh a view that others read; None if it is where it should be."""
        named = self._until is None or not reachable(name, self._sources).isdisjoint(self._until)
        done = None
        if named and not self.is_current(name):
            done = self.refresh(name, self._around.table(name))
        if self._until is not None and named:
            self._choose(name)
        return None if done is None or done.mode == "noop" else done

    def refresh(self, name: str, table: Table, *, full: bool = False, timings: Timings | None = None) -> Refresh:
        """Refresh a view; what it reads is where it should be."""
        newest = self.looked.tables()
        done = refresh(
            name, table, self._around, self._goal, full=full, timings={} if timings is None else timings, newest=newest
        )
        tidying.ask(name, table, self._around)
        self.looked.again(name)
        return done

    def is_current(self, name: str) -> bool:
        """Whether a view is where a refresh would bring it, given that what it reads is."""
        base, reads = self.looked.snapshot(name), self.looked.sources(name)
        if base is None or reads is None or not (record := Record.of(base)).published:
            return False
        return all(self._is_read(source, record) for source in reads)

    def _is_read(self, source: str, record: Record) -> bool:
        now, have = self.looked.snapshot(source), record.frontier.get(source, -1)
        if self._goal is not None:
            return self._goal.get(source, -1) <= have
        return now is not None and (now.version, now.state.metadata.id) == (have, record.ids.get(source))

    def plan(self, name: str, base: Snapshot, first: list[str]) -> RefreshPlan:
        """What refreshing a view would take, after views that it reads are refreshed."""
        meant = Definition.of(base)
        assert meant is not None, "it is a view"
        record = live(self._around.root, name).informed(Record.of(base), meant.sql)
        newest = self.looked.tables()
        sources = Sources.pin(name, meant, record, self._goal, self._around, newest=newest, unbuilt=bool(first))
        found = decide(name, meant, record, sources)
        return after_upstream(found, meant, first) if first else found

    # -- which version of a view readers read ----------------------------------------------------------------------

    def _choose(self, name: str) -> None:
        """Let readers read the newest version of a view that reflects nothing beyond ``until``; where there is none,
        what they have.
        """
        base = self.looked.snapshot(name)
        assert base is not None, "it is a view"
        assert self._goal is not None, "there is something to choose by"
        try:
            while (record := Record.of(base)).published:
                if self._is_within(record.frontier):
                    self._goal = Frontier({**self._goal, name: base.version})
                    return
                base = snapshot.at_version(base.storage, record.published - 1)
        except NotFoundError:  # older versions are not known any more
            return

    def _is_within(self, frontier: Frontier) -> bool:
        """Whether versions of tables and views reflect nothing beyond ``until``."""
        assert self._until is not None, "there is something to compare with"
        for source, version in frontier.items():
            if source in self._until:
                if version > self._until[source]:
                    return False
            elif self._sources(source) is not None:
                now = self.looked.snapshot(source)
                assert now is not None, "it is a view"
                if not self._is_within(Record.of(snapshot.at_version(now.storage, version)).frontier):
                    return False
        return True
