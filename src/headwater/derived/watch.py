"""Watching: what is derived in a lake, refreshed whenever a table changes that it reads.

Each look reads the logs of the tables once, which is one look for a file each where the lake is local, and finds who is
behind: their own sources, or the artefacts that they read. These are refreshed, and nothing else. Each of them is tried
once for the versions that its tables have; whoever is behind after that, because it failed or what it reads did, is
tried again when one of its tables changes, and now and then without that, each time after a longer while.

A stop is graceful: the artefact at work is finished, and no further one is begun.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from headwater.base.errors import HeadwaterError
from headwater.derived.dependencies import reachable
from headwater.derived.environment import Environment
from headwater.derived.lookup import Lookup, behind, lag_of
from headwater.derived.refreshes import Refreshes, known_names

__all__ = ["watch"]

_FIRST_RETRY_SECONDS = 5.0
_LONGEST_RETRY_SECONDS = 300.0

Versions = frozenset[tuple[str, str, int]]


def watch(
    environment: Environment,
    refresh: Callable[[Sequence[str]], Refreshes],
    names: Sequence[str] = (),
    *,
    stopped: threading.Event,
    complain: Callable[[HeadwaterError], None],
    interval_seconds: float = 0.2,
    cascade: bool = True,
) -> Iterator[Refreshes]:
    """Refresh some artefacts, or all, now and whenever they are behind, until ``stopped``; gives each refresh.

    Parameters
    ----------
    refresh
        does it, for the names that it is given
    complain
        learns when the lake itself cannot be looked at, which ends the first look and no later one
    cascade
        whether ``refresh`` also refreshes what they read; if not, an artefact whose own sources have no changes is
        where it should be
    """
    watching = _Watching(environment, known_names(names, environment), cascade=cascade)
    first = True
    while not stopped.is_set():
        pause_seconds = interval_seconds
        try:
            if due := watching.due(everything=first):
                found = refresh(due)
                watching.tried(due, ok=found.ok)
                yield found
        except HeadwaterError as error:
            if first:
                raise
            complain(error)
            pause_seconds = watching.pause_seconds
            watching.later()
        first = False
        stopped.wait(pause_seconds)


class _Watching:
    def __init__(self, environment: Environment, names: Sequence[str], *, cascade: bool) -> None:
        self._environment = environment
        self._names = names
        self._cascade = cascade
        self.pause_seconds = _FIRST_RETRY_SECONDS
        self._versions: dict[str, Versions] = {}
        self._tried: dict[str, tuple[Versions, float]] = {}
        """For what each artefact was refreshed last, and when it is to be tried again although nothing has changed."""

    def due(self, *, everything: bool) -> list[str]:
        """Who is behind, and was not tried for what its tables are now; or ``everything``, in whatever state it is."""
        lookup, now, found = Lookup(self._environment), time.monotonic(), []
        for name in self._names or sorted(self._environment.artefacts()):
            is_behind, versions = self._look(name, lookup)
            before, again = self._tried.get(name, (None, now))
            if everything or (is_behind and (versions != before or again <= now)):
                found.append(name)
            self._versions[name] = versions
        return found

    def _look(self, name: str, lookup: Lookup) -> tuple[bool, Versions]:
        """Whether an artefact is behind, and the versions of all tables below it; what cannot be read is behind."""
        try:
            artefact = lookup.artefact(name)
            if artefact is None:
                return True, frozenset()  # it is gone: the refresh reports that
            is_behind = not artefact.built or bool(lag_of(artefact, lookup))
            is_behind = is_behind or (self._cascade and bool(behind((name,), lookup)))
            below = reachable(name, lookup.reads)
        except HeadwaterError:
            return True, frozenset()  # the refresh reports why
        bases = {one: lookup.snapshot(one) for one in below}
        return is_behind, frozenset((one, at.table_id, at.version) for one, at in bases.items() if at is not None)

    def tried(self, names: Sequence[str], *, ok: bool) -> None:
        """Remember for what some artefacts were refreshed."""
        again = time.monotonic() + self.pause_seconds
        for name in names:
            self._tried[name] = (self._versions[name], again)
        if ok:
            self.pause_seconds = _FIRST_RETRY_SECONDS
        else:
            self.later()

    def later(self) -> None:
        """Let more time pass before the next attempt."""
        self.pause_seconds = min(2 * self.pause_seconds, _LONGEST_RETRY_SECONDS)
