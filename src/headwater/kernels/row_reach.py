"""How far a match may go: for each row the end of the rows that are at most so long after it."""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Positions
from headwater.kernels.compiled import kernel

__all__ = ["reach_within"]

_MOST = np.int64((1 << 63) - 1)


@kernel
def reach_within(times: Positions, there: Flags, bounds: Positions, length: int, reach: Positions) -> None:
    """Fill ``reach`` for rows in the order of their times in each partition; one without a time reaches itself."""
    for part in range(bounds.size - 1):
        end = bounds[part]
        for row in range(bounds[part], bounds[part + 1]):
            if not there[row]:
                reach[row] = row + 1
                continue
            end = max(end, row + 1)
            last = _MOST if times[row] > _MOST - length else times[row] + length
            while end < bounds[part + 1] and there[end] and times[end] <= last:
                end += 1
            reach[row] = end
