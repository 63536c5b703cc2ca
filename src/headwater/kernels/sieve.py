"""A chain of filters and columns in one pass: rows that are within limits, in another layout.

Filters that compare with constants (`headwater.kernels.limits`) and projections that only move columns are, one after
the other, still a choice of rows and a move of words. So however many of them follow each other, each row is read once
and written once.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrange import move_at, order_words_at
from headwater.kernels.arrays import Positions, Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.memory import address_of, load, store

__all__ = ["sieve"]


@kernel
def sieve(rows: Rows, limits: Rows, moves: Rows, bits: Rows, makings: Rows, passed: Positions, out: Rows) -> int:
    """Move the rows that are within all limits to ``out`` as `rearrange` does; give their number.

    ``limits`` are as `within` takes them; ``passed`` becomes how many rows got through each, and those before it.
    """
    step = 8 * rows.shape[1]
    to_step = 8 * out.shape[1]
    row = address_of(rows)
    to = address_of(out)
    lines = address_of(limits)
    number = limits.shape[0]
    for k in range(number):
        passed[k] = 0
    m = np.int64(0)
    for _ in range(rows.shape[0]):
        kept = True
        for k in range(number):
            line = lines + 48 * k
            x = load(row, load(line, 0))
            inside = (load(line, 1) <= x) & (x <= load(line, 2))
            null = (load(row, load(line, 3)) >> load(line, 4)) & 1
            kept &= (inside != (load(line, 5) != 0)) & (null == 0)
            passed[k] += kept
        if kept:
            for k in range(out.shape[1]):
                store(to, k, 0)
            move_at(row, to, moves, bits)
            order_words_at(to, makings)
            to += to_step
            m += 1
        row += step
    return m
