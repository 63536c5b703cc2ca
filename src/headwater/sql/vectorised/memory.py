"""Memory that is given back is asked for again in a microsecond: the C library is taught to keep it.

A vector of 100,000 rows has 800 kB. glibc asks the system for such a piece and gives it back at once when it is freed,
so that every intermediate result costs a page fault for each 4 kB: ten times the time of the addition that it holds.
But it learns: when a piece that came from the system is freed, it takes pieces up to that size from its own heap from
then on, and keeps twice as much free. So one large piece is asked for and freed, once a process; its pages are never
touched.
"""

from __future__ import annotations

import functools

import numpy as np

__all__ = ["keep_freed_memory"]

_LARGEST_BYTES = 16 << 20


@functools.cache
def keep_freed_memory() -> None:
    """Let the heap keep what vectors of up to two million rows give back; other C libraries do nothing special here."""
    piece = np.empty(_LARGEST_BYTES, np.uint8)
    del piece
