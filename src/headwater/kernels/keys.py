"""The different keys of some rows."""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Hashes, Positions, Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.words import equal_parts

__all__ = ["distinct_keys"]


@kernel
def distinct_keys(
    hashes: Hashes,
    rows: Rows,
    parts: Rows,
    last: bool,
    out: Positions,
) -> int:
    """Fill ``out`` with the position of the first row of each key, or of the last; give how many keys there are."""
    n = hashes.size
    capacity = 16
    while capacity < 2 * n:
        capacity *= 2
    table = np.full(capacity, np.int32(-1), np.int32)
    mask = capacity - 1
    m = np.int64(0)
    for i in range(n):
        at = np.int64(hashes[i] & np.uint64(mask))
        while True:
            g = np.int64(table[at])
            if g < 0:
                table[at] = m
                out[m] = i
                m += 1
                break
            j = out[g]
            if hashes[j] == hashes[i] and equal_parts(rows, j, 0, parts, rows, i, 0, parts):
                if last:
                    out[g] = i
                break
            at = (at + 1) & mask
    return m
