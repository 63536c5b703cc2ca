"""The nearest row before or after a place, and which places a change of the neighbours touches.

As-of joins ask: which row of the other side is the last at or before this time? `nearest` answers for many rows with
one call: a binary search in each run, and then the first row alive, walking away from the place.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Hashes, Positions, Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.memory import view_rows
from headwater.kernels.walk import first_after, first_from, hash_range
from headwater.kernels.window_walk import ahead, behind, ordered, weigh
from headwater.kernels.words import INLINE

__all__ = ["compared", "nearest"]

Mask = Flags


@kernel
def nearest(
    runs: Rows,
    width: int,
    hashes: Hashes,
    probes: Rows,
    asked: Mask,
    parts: Rows,
    keys: Rows,
    order: Rows,
    slots: Positions,
    backwards: bool,
    strict: bool,
    there: Mask,
    out: Rows,
) -> None:
    """For each probe that is asked about, the row of its key nearest to its place by ``parts``: before it, or after it.

    ``probes`` are in the layout of the runs; rows at the place itself count unless ``strict``. ``there`` says whether
    there is one, and ``out`` has it.
    """
    number = runs.shape[0]
    begin = np.empty(number, np.int64)
    end = np.empty(number, np.int64)
    for i in range(hashes.size):
        there[i] = False
        if not asked[i]:
            continue
        for r in range(number):
            a, b = hash_range(runs, r, hashes[i])
            if b > a:
                rows = view_rows(runs[r, 1], runs[r, 5], width)
                base = runs[r, 2]
                first = a
                if strict == backwards:
                    place = first_from(rows, base, a, b, probes, i, 0, parts)
                else:
                    place = first_after(rows, base, a, b, probes, i, 0, parts)
                if backwards:
                    a = first_from(rows, base, first, place, probes, i, 0, keys)
                    b = place
                else:
                    a = place
                    b = first_after(rows, base, place, b, probes, i, 0, keys)
            begin[r] = a
            end[r] = b
        while True:
            best = behind(runs, width, order, end, begin) if backwards else ahead(runs, width, order, begin, end)
            if best < 0:
                break
            at = end[best] - 1 if backwards else begin[best]
            if backwards:
                _, weight = weigh(runs, width, order, end, begin, best, True, False)
            else:
                _, weight = weigh(runs, width, order, begin, end, best, False, False)
            if weight == 0:
                continue
            rows = view_rows(runs[best, 1], runs[best, 5], width)
            there[i] = True
            for c in range(width):
                out[i, c] = rows[at, c]
            for s in range(slots.size):
                if (out[i, slots[s]] & np.int64(0xFFFFFFFF)) > INLINE:
                    out[i, slots[s] + 1] += runs[best, 2]
            break


@kernel
def compared(rows: Rows, others: Rows, parts: Rows, out: Positions) -> None:
    """Compare rows line by line: negative, zero or positive."""
    for i in range(rows.shape[0]):
        out[i] = ordered(rows, i, 0, others, i, 0, parts)
