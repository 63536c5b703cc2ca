"""Values of an order column as numbers of 128 bits: what distances are added to.

Adding a distance to a word may leave 64 bits, and decimals of more than 18 digits have two words anyway. So values are
widened to (high, low), where the low word has its sign bit flipped, as in rows: then two compare word by word as signed
numbers.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Rows
from headwater.kernels.compiled import inlined

__all__ = ["less", "plus", "wide"]

_SIGN = -(1 << 63)
_MOST = (1 << 63) - 1


@inlined
def wide(rows: Rows, i: int, high: int, low: int) -> tuple[int, int]:
    """The value of a row as 128 bits that compare word by word: ``low`` is -1 where the value is one word."""
    if low >= 0:
        return rows[i, high], rows[i, low]
    return rows[i, high] >> 63, rows[i, high] ^ _SIGN


@inlined
def plus(high: int, low: int, more_high: int, more_low: int) -> tuple[int, int]:
    """Such a value, more by a number of 128 bits; what does not fit is the greatest there is, or the least."""
    a = np.uint64(low ^ _SIGN)
    b = a + np.uint64(more_low)
    out = high + more_high + (1 if b < a else 0)
    if more_high >= 0 and out < high:
        return _MOST, _MOST
    if more_high < 0 and out > high:
        return _SIGN, _SIGN
    return out, int(np.int64(b)) ^ _SIGN


@inlined
def less(a_high: int, a_low: int, b_high: int, b_low: int) -> bool:
    return a_high < b_high or (a_high == b_high and a_low < b_low)
