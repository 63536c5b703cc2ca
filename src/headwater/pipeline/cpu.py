"""CPU seconds of work that runs side by side: what the process takes is shared by those who are at work.

A thread's own clock leaves out what kernels, engines and Arrow do on threads of theirs, and the process's clock counts
everybody. So at each begin and end the CPU time since the last one is divided among those that were at work. The shares
add up to what the process has taken, and are exact for what runs alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["CpuShares"]


class CpuShares:
    """Who has taken how much CPU time.

    >>> ticks = iter([0.0, 1.0, 3.0, 4.0, 4.0, 4.0])
    >>> shares = CpuShares(clock=lambda: next(ticks))
    >>> with shares.at_work("a"):
    ...     with shares.at_work("b"):
    ...         pass
    >>> shares.seconds("a"), shares.seconds("b")
    (3.0, 1.0)
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._working: list[str] = []
        self._seconds: dict[str, float] = {}
        self._last = 0.0

    @contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        """Somebody is at work inside the block."""
        with self._guard:
            self._share()
            self._working.append(name)
        try:
            yield
        finally:
            with self._guard:
                self._share()
                self._working.remove(name)

    def seconds(self, name: str) -> float:
        """What somebody has taken until now."""
        with self._guard:
            self._share()
            return self._seconds.get(name, 0.0)

    def _share(self) -> None:
        now = self._clock()
        if self._working:
            part = (now - self._last) / len(self._working)
            for name in self._working:
                self._seconds[name] = self._seconds.get(name, 0.0) + part
        self._last = now
