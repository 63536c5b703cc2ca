"""Ranks: the place of each row in its group.

A group may begin in the middle: then a *start* says which place the row before it had, and that row itself says whether
the first row is its peer.
"""

from __future__ import annotations

from headwater.kernels.arrays import Positions, Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.words import compare, equal_parts

__all__ = ["ranked", "tiles"]


@kernel
def ranked(
    rows: Rows,
    at: Positions,
    offsets: Positions,
    peers: Rows,
    starts: Rows,
    befores: Rows,
    before_peers: Rows,
    numbers: Positions,
    ranks: Positions,
    dense: Positions,
) -> None:
    """Fill the row number, rank and dense rank of each copy.

    ``starts`` has (row number, rank, dense rank) of the row before each group, zeros where there is none, and
    ``befores`` that row, whose order is in the parts ``before_peers``. There may be twice as many groups as starts: the
    second half begins as the first does.
    """
    for g in range(offsets.size - 1):
        first = offsets[g]
        s = g % starts.shape[0]
        number = starts[s, 0]
        rank = starts[s, 1]
        place = starts[s, 2]
        for i in range(first, offsets[g + 1]):
            number += 1
            row = at[i]
            if i > first:
                same = row == at[i - 1] or compare(rows, row, 0, rows, at[i - 1], 0, peers) == 0
            else:
                same = number > 1 and equal_parts(rows, row, 0, peers, befores, s, 0, before_peers)
            if not same:
                rank = number
                place += 1
            numbers[i] = number
            ranks[i] = rank
            dense[i] = place


@kernel
def tiles(offsets: Positions, buckets: int, out: Positions) -> None:
    """ntile: the first buckets have one row more than the others where the rows do not divide evenly."""
    for g in range(offsets.size - 1):
        n = offsets[g + 1] - offsets[g]
        size = n // buckets
        larger = n % buckets
        edge = larger * (size + 1)
        for k in range(n):
            out[offsets[g] + k] = k // (size + 1) + 1 if k < edge else larger + (k - edge) // size + 1
