"""Walking through the rows of a key in all runs at once, forward or back.

A walk has a position for each run; the next row is the least of those the runs have next, and stepping over it moves
all runs that have it, adding their weights up. Rows whose weights come to nothing or less are not alive: their weight
is given as zero.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Rows
from headwater.kernels.compiled import shared
from headwater.kernels.memory import view_rows
from headwater.kernels.walk import first_after, first_from, hash_range
from headwater.kernels.words import compare

__all__ = ["ahead", "behind", "key_limits", "ordered", "weigh"]


@shared
def ordered(a: Rows, i: int, a_base: int, b: Rows, j: int, b_base: int, parts: Rows) -> int:
    """`compare` as a function of its own, for kernels that would have many copies of it."""
    return compare(a, i, a_base, b, j, b_base, parts)


@shared
def ahead(runs: Rows, width: int, order: Rows, at: Rows, end: Rows) -> int:
    """The run that has the next row, or -1."""
    best = -1
    for r in range(runs.shape[0]):
        if at[r] >= end[r]:
            continue
        if best >= 0:
            one = view_rows(runs[r, 1], runs[r, 5], width)
            two = view_rows(runs[best, 1], runs[best, 5], width)
            if ordered(one, at[r], runs[r, 2], two, at[best], runs[best, 2], order) >= 0:
                continue
        best = r
    return best


@shared
def behind(runs: Rows, width: int, order: Rows, at: Rows, begin: Rows) -> int:
    """The run that has the row before, or -1."""
    best = -1
    for r in range(runs.shape[0]):
        if at[r] <= begin[r]:
            continue
        if best >= 0:
            one = view_rows(runs[r, 1], runs[r, 5], width)
            two = view_rows(runs[best, 1], runs[best, 5], width)
            if ordered(one, at[r] - 1, runs[r, 2], two, at[best] - 1, runs[best, 2], order) <= 0:
                continue
        best = r
    return best


@shared
def weigh(
    runs: Rows, width: int, order: Rows, at: Rows, limit: Rows, best: int, backwards: bool, staged: bool
) -> tuple[int, int]:
    """Step over the next row in all runs that have it, and give its weights: old and new."""
    last = runs.shape[0] - 1
    chosen = view_rows(runs[best, 1], runs[best, 5], width)
    there = at[best] - 1 if backwards else at[best]
    old = 0
    new = 0
    for r in range(runs.shape[0]):
        if at[r] <= limit[r] if backwards else at[r] >= limit[r]:
            continue
        rows = view_rows(runs[r, 1], runs[r, 5], width)
        j = at[r] - 1 if backwards else at[r]
        if r != best and ordered(rows, j, runs[r, 2], chosen, there, runs[best, 2], order) != 0:
            continue
        new += rows[j, width - 1]
        if not staged or r != last:
            old += rows[j, width - 1]
        at[r] += -1 if backwards else 1
    return max(old, 0), max(new, 0)


@shared
def key_limits(
    runs: Rows, width: int, x: np.uint64, probes: Rows, i: int, base: int, parts: Rows, begin: Rows, end: Rows
) -> None:
    """Where the rows of the key of ``probes[i]`` begin and end in each run."""
    for r in range(runs.shape[0]):
        a, b = hash_range(runs, r, x)
        if b > a:
            rows = view_rows(runs[r, 1], runs[r, 5], width)
            a = first_from(rows, runs[r, 2], a, b, probes, i, base, parts)
            b = first_after(rows, runs[r, 2], a, b, probes, i, base, parts)
        begin[r] = a
        end[r] = b
