"""From sums to rows: what an aggregate says before and after a change.

`finish` makes the columns that are simple functions of the accumulators, for the old and the new sums of each key;
`changes` then keeps what differs: the old row with weight -1 and the new one with +1, of keys that have rows.

Sums of whole numbers are two limbs of 32 bits (`headwater.kernels.accumulate`). They are carried here. A mean is the
exact sum, rounded to a double once, over the count.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.memory import address_of, copy_words, load, store

__all__ = ["FINISH_AVERAGE", "FINISH_COUNT", "FINISH_SUM", "changes", "finish"]

FINISH_COUNT, FINISH_SUM, FINISH_AVERAGE = 0, 1, 2

_LIMB = np.int64(0xFFFFFFFF)
_SHIFT = 4294967296.0


@inlined
def _double(high: int, low: int) -> float:
    """``high * 2**32 + low``, rounded once: the first term is exact, and so is what was lost in making it."""
    top = np.float64(high)
    return top * _SHIFT + (np.float64(high - np.int64(top)) * _SHIFT + np.float64(low))


@kernel
def finish(touched: Rows, payload: int, old: Rows, recipes: Rows, key_words: int, shift: int, out: Rows) -> int:
    """Fill keys, weights and the columns of ``recipes`` of both halves of ``out``; give -1, or the recipe of a sum that
    does not fit.

    Recipes are (how, accumulator, accumulator of the count, word, null word, null bit). ``old`` are the accumulators
    there were, and the words from ``payload`` on of ``touched`` what is added to them. The words of the key stand
    ``shift`` further on in ``out``.
    """
    n = touched.shape[0]
    width = out.shape[1]
    bits = np.empty(1, np.float64)
    seen = address_of(bits)
    for half in range(2):
        for i in range(n):
            to = address_of(out) + 8 * width * (half * n + i)
            store(to, 0, load(to, 0) | touched[i, 0])
            for k in range(1, key_words):
                store(to, shift + k, touched[i, k])
            store(to, width - 1, 1 if half else -1)
            sums = address_of(old) + 8 * old.shape[1] * i
            change = address_of(touched) + 8 * (touched.shape[1] * i + payload)
            for r in range(recipes.shape[0]):
                how = recipes[r, 0]
                at = recipes[r, 1]
                x = load(sums, at) + (load(change, at) if half else 0)
                if how == FINISH_COUNT:
                    store(to, recipes[r, 3], x)
                    continue
                count = load(sums, recipes[r, 2]) + (load(change, recipes[r, 2]) if half else 0)
                if count == 0:
                    store(to, recipes[r, 4], load(to, recipes[r, 4]) | (np.int64(1) << recipes[r, 5]))
                    continue
                y = load(sums, at + 1) + (load(change, at + 1) if half else 0)
                high = x + (y >> 32)
                low = y & _LIMB
                if how == FINISH_SUM:
                    if (high >> 31) != (high >> 63):
                        return r
                    store(to, recipes[r, 3], (high << 32) | low)
                else:
                    bits[0] = _double(high, low) / np.float64(count)
                    store(to, recipes[r, 3], load(seen, 0))
    return -1


@kernel
def changes(touched: Rows, payload: int, old: Rows, out: Rows) -> int:
    """Keep the rows of ``out`` that say something, and give their number: keys that have rows, whose row differs."""
    n = touched.shape[0]
    width = out.shape[1]
    step = 8 * width
    same = np.zeros(n, np.bool_)
    first = address_of(out)
    to = first
    for i in range(n):
        before = first + step * i
        if old[i, 0] <= 0:
            continue
        if old[i, 0] + touched[i, payload] > 0:
            after = before + step * n
            differs = np.int64(0)
            for k in range(width - 1):
                differs |= load(before, k) ^ load(after, k)
            if differs == 0:
                same[i] = True
                continue
        if to != before:
            copy_words(to, before, width)
        to += step
    for i in range(n):
        if same[i] or old[i, 0] + touched[i, payload] <= 0:
            continue
        after = first + step * (n + i)
        if to != after:
            copy_words(to, after, width)
        to += step
    return (to - first) // step
