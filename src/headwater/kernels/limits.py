"""Choosing rows by limits of words: ``low <= word <= high``, for each of some columns.

A comparison of a whole number, a date, a timestamp or a short decimal with a constant is a limit of one word, and so a
filter of such comparisons is one pass over the rows, which copies those that are within. A null is within no limits.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.memory import address_of, copy_words, load

__all__ = ["within"]


@kernel
def within(rows: Rows, limits: Rows, out: Rows) -> int:
    """Copy the rows that are within all limits (word, low, high, null word, null bit, outside) to ``out``; give their
    number.

    ``outside`` turns a limit round: what is between the two is left out.
    """
    width = rows.shape[1]
    step = 8 * width
    row = address_of(rows)
    to = address_of(out)
    lines = address_of(limits)
    m = np.int64(0)
    for _ in range(rows.shape[0]):
        kept = True
        for k in range(limits.shape[0]):
            line = lines + 48 * k
            x = load(row, load(line, 0))
            inside = (load(line, 1) <= x) & (x <= load(line, 2))
            null = (load(row, load(line, 3)) >> load(line, 4)) & 1
            kept &= (inside != (load(line, 5) != 0)) & (null == 0)
        copy_words(to, row, width)
        moved = np.int64(kept)
        to += step * moved
        m += moved
        row += step
    return m
