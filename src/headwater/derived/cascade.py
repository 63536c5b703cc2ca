"""Cascades: a refresh that first brings forward the artefacts that an artefact reads, in order, each once.

Every table is looked at once (`lookup`), so artefacts that meet again agree. An artefact that is where it should be is
left alone. Each refresh is a commit of its own: if one fails, those before it stay, and the error names them.

``until`` is meant for all of them, and each name in it has one of three meanings:

- a table: no artefact goes beyond that version of it;
- an artefact that is read: its readers read that very version, and it is not refreshed itself, nor for its sake what it
  reads;
- anything else is not looked at.

An artefact that ``until`` does not name is refreshed if it names something below it, and its readers then read the
newest version of it that reflects nothing beyond ``until``: it may have been further already. Where there is no such
version, and where ``until`` names nothing below it, the readers keep what they have of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.base.errors import HeadwaterError, NotFoundError, UpstreamError
from headwater.base.frontier import Frontier
from headwater.derived import kinds
from headwater.derived.dependencies import reachable, upstream_first
from headwater.derived.environment import Environment
from headwater.derived.lookup import Lookup
from headwater.derived.plan import RefreshPlan
from headwater.derived.record import Record
from headwater.derived.reports import Refresh
from headwater.lake import snapshot

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact

__all__ = ["Cascade", "plan_with_upstream", "refresh_with_upstream"]


def refresh_with_upstream(
    artefact: Artefact, environment: Environment, until: Frontier | None, *, full: bool
) -> Refresh:
    """Bring an artefact forward, and before it all that it reads."""
    cascade = Cascade(environment, until)
    cascade.lookup.hold(artefact)
    done: list[Refresh] = []
    for name in cascade.order([artefact.name])[:-1]:
        try:
            one = cascade.upstream(name)
        except HeadwaterError as error:
            raise _stopped(artefact, name, error, done) from error
        if one is not None:
            done.append(one)
    try:
        own = cascade.refresh(artefact, full=full)
    except HeadwaterError as error:
        if done:
            named = ", ".join(f"`{one.name}`" for one in done)
            error.advise(f"refreshed and committed before: {named}")
        raise
    return replace(own, upstream=tuple(done))


def _stopped(asked: Artefact, failed: str, error: HeadwaterError, done: Iterable[Refresh]) -> UpstreamError:
    """The error of a refresh that stopped before it came to the artefact that was asked for."""
    before = [one.name for one in done]
    return UpstreamError.stopped(asked.name, failed, error.message, error.where or "", error.advice, before, asked.kind)


def plan_with_upstream(artefact: Artefact, environment: Environment, until: Frontier | None) -> RefreshPlan:
    """What `refresh_with_upstream` would do."""
    cascade = Cascade(environment, until)
    cascade.lookup.hold(artefact)
    plans: dict[str, RefreshPlan] = {}
    for name in cascade.order([artefact.name]):
        first = [n for n in cascade.lookup.reads(name) or () if n in plans]
        if name != artefact.name and not first and cascade.is_current(name):
            continue
        try:
            plans[name] = cascade.plan(name, first)
        except HeadwaterError as error:
            if name == artefact.name:
                raise
            raise _stopped(artefact, name, error, ()) from error
        if name != artefact.name and plans[name].mode == "noop":
            del plans[name]
    return replace(plans.pop(artefact.name), upstream=plans)


class Cascade:
    """Refreshes of artefacts that read each other, to one frontier or to the newest versions."""

    def __init__(self, environment: Environment, until: Frontier | None = None) -> None:
        self.lookup = Lookup(environment)
        self._environment = environment
        self._until = until
        self._goal = until  # with the versions of artefacts that were chosen on the way

    def order(self, names: Iterable[str]) -> list[str]:
        """Some artefacts and those that have to be refreshed before them, each after those that it reads."""
        asked = set(names)
        return upstream_first(sorted(asked), lambda name: self._reads(name, asked))

    def _reads(self, name: str, asked: Iterable[str] = ()) -> tuple[str, ...] | None:
        """What an artefact reads, unless ``until`` says which version of the artefact is meant."""
        if self._until is not None and name in self._until and name not in asked:
            return None
        return self.lookup.reads(name)

    def opened(self, name: str) -> Artefact:
        """A handle on an artefact, to refresh it."""
        looked = self.lookup.artefact(name)
        assert looked is not None, "it is an artefact"
        return kinds.kind(looked.kind.name).open(name, self._environment)

    def upstream(self, name: str) -> Refresh | None:
        """Refresh an artefact that others read; None if it is where it should be."""
        named = self._until is None or not reachable(name, self._reads).isdisjoint(self._until)
        done = None
        if named and not self.is_current(name):
            done = self.refresh(self.opened(name))
        if self._until is not None and named:
            self._choose(name)
        return None if done is None or done.mode == "noop" else done

    def refresh(self, artefact: Artefact, *, full: bool = False) -> Refresh:
        """Refresh an artefact; what it reads is where it should be."""
        done = artefact.refresh_alone(self._goal, full=full, newest=self.lookup.tables())
        self.lookup.forget(artefact.name)
        return done

    def is_current(self, name: str) -> bool:
        """Whether an artefact is where a refresh would bring it, given that what it reads is."""
        artefact = self.lookup.artefact(name)
        if artefact is None or not artefact.built:
            return False
        frontier = artefact.frontier
        return all(self._is_read(source, frontier) for source in artefact.reads)

    def _is_read(self, source: str, frontier: Frontier) -> bool:
        now, have = self.lookup.snapshot(source), frontier.get(source, -1)
        if self._goal is not None:
            return self._goal.get(source, -1) <= have
        known = frontier.identities.get(source)
        return now is not None and known is not None and (now.version, now.state.metadata.id) == (have, known.id)

    def plan(self, name: str, first: list[str]) -> RefreshPlan:
        """What refreshing an artefact would take, after artefacts that it reads are refreshed."""
        artefact = self.lookup.artefact(name)
        assert artefact is not None, "it is an artefact"
        return artefact.plan_alone(self._goal, newest=self.lookup.tables(), first=first)

    # -- which version of an artefact readers read -----------------------------------------------------------------

    def _choose(self, name: str) -> None:
        """Let readers read the newest version of an artefact that reflects nothing beyond ``until``; where there is
        none, what they have.
        """
        base = self.lookup.snapshot(name)
        assert base is not None, "others read it"
        assert self._goal is not None, "there is something to choose by"
        try:
            while (record := Record.of(base)).published:
                if self._is_within(record.frontier):
                    self._goal = Frontier({**self._goal, name: base.version}).identified(self._goal.identities)
                    return
                base = snapshot.at_version(base.storage, record.published - 1)
        except NotFoundError:  # older versions are not known any more
            return

    def _is_within(self, frontier: Frontier) -> bool:
        """Whether versions of tables and artefacts reflect nothing beyond ``until``."""
        assert self._until is not None, "there is something to compare with"
        for source, version in frontier.items():
            if source in self._until:
                if version > self._until[source]:
                    return False
            elif self._reads(source) is not None:
                now = self.lookup.snapshot(source)
                assert now is not None, "it is read"
                if not self._is_within(Record.of(snapshot.at_version(now.storage, version)).frontier):
                    return False
        return True
