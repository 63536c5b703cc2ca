"""Selecting by rank: the row at a place of a key's order, walking from where the last answer was.

Of each key the **anchor** is known: a row, and how many rows were before it at the last step. The rows of this step
that are before it (they are in the last run) say how many are now. From there it is as many rows to the wanted place as
the place has moved, which is no more than rows changed; so a median of a million rows is kept with a walk of a few. A
key without an anchor is walked from its beginning.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, return-value, unreachable, var-annotated"

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Hashes, Positions, Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.memory import address_of, copy_words, load
from headwater.kernels.walk import gallop, next_alive, set_out
from headwater.kernels.words import compare_at

__all__ = ["select"]


@kernel
def select(  # noqa: C901
    runs: Rows,
    width: int,
    hashes: Hashes,
    anchors: Rows,
    anchored: Flags,
    before: Positions,
    key_parts: Rows,
    order: Rows,
    lower: Positions,
    upper: Positions,
    low_rows: Rows,
    high_rows: Rows,
    found: Flags,
) -> None:
    """Fill ``low_rows`` and ``high_rows`` with the rows at the places ``lower`` and ``upper`` (the same or the next),
    counted from 0.

    ``anchors`` are rows with at least the keys; ``before`` is how many rows are before each anchor without those of the
    last run, and is set to the number before the lower row. A negative place is not looked for. Rows have no long
    strings.
    """
    number = runs.shape[0]
    last = number - 1
    at = np.empty(number, np.int64)
    left = np.empty(number, np.int64)
    parts = address_of(order)
    for i in range(hashes.size):
        found[i] = False
        if lower[i] < 0:
            before[i] = 0
            continue
        key = address_of(anchors) + 8 * width * i
        step = np.int64(8 * width)
        passed = np.int64(0)
        if anchored[i]:
            passed = before[i]
            set_out(runs, last, step, hashes[i], key, 0, key_parts, key, 0, key_parts, at, left)
            if left[last] > 0:
                changed = gallop(at[last], runs[last, 2], left[last], step, key, 0, parts, order.shape[0])
                for k in range(changed):
                    passed += load(at[last] + step * k, width - 1)
        backwards = lower[i] < passed
        if backwards:
            step = -step
        for r in range(number):
            set_out(runs, r, step, hashes[i], key, 0, key_parts, key, 0, order if anchored[i] else key_parts, at, left)
        row = np.int64(0)
        weight = np.int64(0)
        base = np.int64(0)
        while True:
            row, base, weight = next_alive(runs, width, step, key_parts, order, at, left)
            if row == 0:
                break
            if backwards:
                if compare_at(row, base, key, 0, parts, order.shape[0]) == 0:  # the anchor itself
                    continue
                passed -= weight
                if lower[i] >= passed:
                    break
            else:
                if lower[i] < passed + weight:
                    break
                passed += weight
        if row == 0:
            before[i] = 0
            continue
        copy_words(address_of(low_rows) + 8 * width * i, row, width)
        copy_words(address_of(high_rows) + 8 * width * i, row, width)
        before[i] = passed
        found[i] = True
        if upper[i] < passed + weight:
            continue
        if backwards:  # begin at the row, and go over it
            for r in range(number):
                set_out(runs, r, -step, hashes[i], key, 0, key_parts, row, base, order, at, left)
            next_alive(runs, width, -step, key_parts, order, at, left)
        row, base, weight = next_alive(runs, width, np.int64(8 * width), key_parts, order, at, left)
        if row != 0:
            copy_words(address_of(high_rows) + 8 * width * i, row, width)
