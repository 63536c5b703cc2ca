"""Attempts: one try to change an artefact, alone in this process and on this machine, on what is committed then.

``with attempt:`` takes the lock of the process and of the folder, looks at what is committed, and lets both go at the
end. Whoever loses the commit to another machine leaves the block quietly, and `attempts` gives the next try; after any
failure what is in memory is dropped (`failed`).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

from headwater.base.errors import ConflictError
from headwater.base.frontier import Frontier
from headwater.base.storage import now_ms
from headwater.derived.record import LastRefresh
from headwater.derived.reports import Mode, Refresh
from headwater.derived.sources import Sources
from headwater.derived.state_folder import StateFolder

__all__ = ["Attempt", "Timings", "attempts", "reported"]

_LOST = "E4001"
_TRIES = 20
A = TypeVar("A", bound="Attempt")
Timings = dict[str, float]


def attempts(make: Callable[[bool], A]) -> Iterator[A]:
    """Tries to commit something, each on what is committed then; a try that lost a race is followed by another.

    ``make`` is told whether the try is the last one, which raises the conflict.
    """
    for left in reversed(range(_TRIES)):
        yield make(left == 0)
    raise AssertionError("the last attempt raises")


class Attempt(ABC):
    """One try to change an artefact; a ``with`` block that swallows a lost race."""

    last: bool = False
    """Whether a lost race is an error."""
    began: float
    timings: Timings
    done: Refresh | None = None
    """The report, when it is done."""

    @property
    @abstractmethod
    def guard(self) -> threading.RLock:
        """Lets one thread at a time change the artefact."""

    @property
    @abstractmethod
    def folder(self) -> StateFolder:
        """Lets one process at a time change it."""

    @abstractmethod
    def look(self) -> None:
        """See what is committed."""

    def failed(self) -> None:
        """Something went wrong: what is in memory may not be what is committed."""

    def inherited(self) -> None:
        """Another process was at it last, and has ended, perhaps in the middle: what it left has to be looked for."""

    def __enter__(self) -> Self:
        self.began = time.perf_counter()
        self.guard.acquire()
        try:
            self._held = self.folder.held()
            self._held.__enter__()
            try:
                if self.folder.after_another:
                    self.inherited()
                self.look()
                self.timings["begin"] = time.perf_counter() - self.began
            except BaseException:
                self._held.__exit__(None, None, None)
                raise
        except BaseException:
            self.guard.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        try:
            if error is not None:
                self.failed()
            self._held.__exit__(None, None, None)
        finally:
            self.guard.release()
        return isinstance(error, ConflictError) and error.code == _LOST and not self.last

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Measure a part of the work."""
        start = time.perf_counter()
        yield
        self.timings[phase] = self.timings.get(phase, 0.0) + time.perf_counter() - start

    def finished(self, mode: Mode, rows_in: int, rows_out: int) -> LastRefresh:
        """What the record says of this refresh."""
        return LastRefresh(now_ms(), mode, round(time.perf_counter() - self.began, 6), rows_in, rows_out)


def reported(name: str, was: Frontier, sources: Sources, last: LastRefresh, *, seconds: float, reason: str) -> Refresh:
    """The report of a refresh from ``was`` to what the sources are pinned to.

    A source that is another table now, or is not read any more, is not something that the artefact has got further
    with.
    """
    after, replaced = sources.frontier, sources.replaced
    return Refresh(
        before=was.restrict(n for n in was if was[n] <= after.get(n, -1) and n not in replaced),
        after=after,
        mode=last.mode,
        rows_in=last.rows_in,
        rows_out=last.rows_out,
        seconds=seconds,
        reason=reason,
        name=name,
    )
