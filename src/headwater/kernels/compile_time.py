"""How long this process has compiled kernels, or waited for it: whoever measures work takes that off.

Compiling happens once on a machine. Counted as work, it would make a plan believe for months that a rebuild takes half
a minute.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Stopwatch", "compiling"]

_lock = threading.Lock()
_seconds = 0.0


@contextmanager
def compiling() -> Iterator[None]:
    """Count the time of a ``with`` block as compiling."""
    global _seconds
    start = time.perf_counter()
    try:
        yield
    finally:
        with _lock:
            _seconds += time.perf_counter() - start


class Stopwatch:
    """Measures work from now on, without what was spent compiling meanwhile.

    >>> watch = Stopwatch()
    >>> with compiling():
    ...     time.sleep(0.05)
    >>> watch.seconds() < 0.05
    True
    """

    def __init__(self) -> None:
        self._start, self._compiling = time.perf_counter(), _seconds

    def seconds(self) -> float:
        """The seconds of work so far."""
        return max(0.0, time.perf_counter() - self._start - (_seconds - self._compiling))
