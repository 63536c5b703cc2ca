"""Rows of slices, one for each copy: what window functions see.

A window function sees a row of weight 3 as three rows. `expand` lists the copies of each row, slice by slice, first as
they were and then as they are, so that a function is computed once for both: old and new slices are just different
groups. Afterwards `differing` finds the rows that say something new; a row whose copies come to the same values before
and after cancels out there, before an output row is made of it.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Positions, Rows
from headwater.kernels.compiled import kernel

__all__ = ["clip", "copies", "differing", "expand", "starts"]


@kernel
def copies(weights: Positions) -> float:
    """How many rows the weights stand for; a float, because it may be any number."""
    total = 0.0
    for i in range(weights.size):
        total += weights[i]
    return total


@kernel
def expand(weights: Positions, slices: Positions, pieces: int, at: Positions, offsets: Positions) -> None:
    """``at`` become the positions of the copies' rows, and ``offsets`` where each slice begins among them.

    ``slices`` rise, and have the numbers below ``pieces``; a slice may have no rows.
    """
    m = np.int64(0)
    piece = np.int64(0)
    offsets[0] = 0
    for i in range(weights.size):
        while piece < slices[i]:
            piece += 1
            offsets[piece] = m
        for _ in range(weights[i]):
            at[m] = i
            m += 1
    while piece < pieces:
        piece += 1
        offsets[piece] = m


@kernel
def starts(weights: Positions, out: Positions) -> None:
    """Where the copies of each row begin."""
    m = np.int64(0)
    for i in range(weights.size):
        out[i] = m
        m += weights[i]
    out[weights.size] = m


@kernel
def differing(old_starts: Positions, new_starts: Positions, core: Flags, values: Rows, keep: Flags) -> None:
    """Mark in ``keep`` the copies in cores whose values are not the same before and after.

    ``values`` has a line for each copy, the old ones first; ``new_starts`` count from the first new one.
    """
    shift = old_starts[old_starts.size - 1]
    for i in range(core.size):
        if not core[i]:
            continue
        a = old_starts[i]
        b = shift + new_starts[i]
        n = old_starts[i + 1] - a
        same = n == new_starts[i + 1] - new_starts[i]
        k = 0
        while same and k < n:
            for c in range(values.shape[1]):
                if values[a + k, c] != values[b + k, c]:
                    same = False
                    break
            k += 1
        if not same:
            for k in range(old_starts[i], old_starts[i + 1]):
                keep[k] = True
            for k in range(new_starts[i], new_starts[i + 1]):
                keep[shift + k] = True


@kernel
def clip(weights: Positions, slices: Positions, begin: int, end: int) -> None:
    """Leave of each slice the copies from ``begin`` to ``end`` (not included)."""
    place = np.int64(0)
    for i in range(weights.size):
        if i == 0 or slices[i] != slices[i - 1]:
            place = np.int64(0)
        a = max(place, begin)
        place += weights[i]
        weights[i] = max(min(place, end) - a, 0)
