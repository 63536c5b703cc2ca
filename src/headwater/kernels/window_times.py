"""Which windows of time a time falls into."""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Positions
from headwater.kernels.compiled import kernel

__all__ = ["OVERFLOW", "windows_of"]

OVERFLOW = -1
_MOST = np.int64((1 << 63) - 1)
_LEAST = np.int64(-(1 << 63))


@kernel
def windows_of(
    times: Positions,
    null: Flags,
    size: int,
    every: int,
    offset: int,
    which: Positions,
    starts: Positions,
) -> int:
    """List (row, begin of window) for all windows [begin, begin + size) that have the row's time; give their number, or
    OVERFLOW.

    Windows begin at ``offset`` plus multiples of ``every``; those of a row are listed from the first to the last.
    """
    m = 0
    for i in range(times.size):
        if null[i]:
            continue
        t = times[i]
        if t < _LEAST + 2 * size or t > _MOST - 2 * size:
            return OVERFLOW
        rest = (t % every - offset % every) % every  # python's remainder: never negative
        begin = t - rest
        first = begin
        while first - every + size > t:
            first -= every
        while first <= begin:
            if first + size > t:
                which[m] = i
                starts[m] = first
                m += 1
            first += every
    return m
