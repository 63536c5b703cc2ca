"""Rows of a key between two places: for joins on ranges of an ordered column.

`between` lists the rows alive in a union of intervals, each row once; `pairs` lists, for each probe, all entries of all
runs in its interval, whatever their weights: a join multiplies weights, so it needs no sum of them first.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Hashes, Positions, Rows
from headwater.kernels.compiled import kernel, shared
from headwater.kernels.memory import view_rows
from headwater.kernels.walk import first_after, first_from, hash_range
from headwater.kernels.window_walk import ahead, ordered, weigh

__all__ = ["between", "pairs"]

Mask = Flags


@shared
def _interval(
    runs: Rows,
    r: int,
    width: int,
    x: np.uint64,
    lo: Rows,
    hi: Rows,
    i: int,
    from_first: bool,
    to_last: bool,
    keys: Rows,
    parts: Rows,
) -> tuple[int, int]:
    """Where the rows of a key from ``lo[i]`` to ``hi[i]``, both included, begin and end in a run."""
    a, b = hash_range(runs, r, x)
    if b > a:
        rows = view_rows(runs[r, 1], runs[r, 5], width)
        base = runs[r, 2]
        first = first_from(rows, base, a, b, lo, i, 0, keys if from_first else parts)
        b = first_after(rows, base, first, b, hi, i, 0, keys if to_last else parts)
        a = first
    return a, b


@kernel
def between(
    runs: Rows,
    width: int,
    hashes: Hashes,
    lo: Rows,
    hi: Rows,
    from_first: Mask,
    to_last: Mask,
    keys: Rows,
    parts: Rows,
    order: Rows,
) -> Rows:
    """The rows alive in any of the intervals, as picks (run, position, weight).

    Intervals of a key follow each other, and neither their begins nor their ends fall; they may overlap.
    """
    number = runs.shape[0]
    at = np.empty(number, np.int64)
    end = np.zeros(number, np.int64)
    picks = np.empty((64, 3), np.int64)
    m = np.int64(0)
    for i in range(hashes.size):
        again = i > 0 and hashes[i] == hashes[i - 1] and ordered(lo, i, 0, lo, i - 1, 0, keys) == 0
        for r in range(number):
            a, b = _interval(runs, r, width, hashes[i], lo, hi, i, from_first[i], to_last[i], keys, parts)
            at[r] = max(a, end[r]) if again else a
            end[r] = max(b, at[r])
        while True:
            best = ahead(runs, width, order, at, end)
            if best < 0:
                break
            j = at[best]
            _, weight = weigh(runs, width, order, at, end, best, False, False)
            if weight == 0:
                continue
            if m == picks.shape[0]:
                more = np.empty((2 * m, 3), np.int64)
                for k in range(m):
                    for c in range(3):
                        more[k, c] = picks[k, c]
                picks = more
            picks[m, 0] = best
            picks[m, 1] = j
            picks[m, 2] = weight
            m += 1
    return picks[:m]


@kernel
def pairs(
    runs: Rows, width: int, hashes: Hashes, lo: Rows, hi: Rows, keys: Rows, parts: Rows
) -> tuple[Positions, Rows]:
    """For each probe all entries in its interval: which probe, and picks (run, position)."""
    number = runs.shape[0]
    n = hashes.size
    limits = np.empty((n * number, 2), np.int64)
    total = np.int64(0)
    for i in range(n):
        for r in range(number):
            a, b = _interval(runs, r, width, hashes[i], lo, hi, i, False, False, keys, parts)
            limits[i * number + r, 0] = a
            limits[i * number + r, 1] = b
            total += max(b - a, 0)
    which = np.empty(total, np.int64)
    picks = np.empty((total, 2), np.int64)
    m = np.int64(0)
    for k in range(n * number):
        for j in range(limits[k, 0], limits[k, 1]):
            which[m] = k // number
            picks[m, 0] = k % number
            picks[m, 1] = j
            m += 1
    return which, picks
