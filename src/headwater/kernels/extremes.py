"""The first or last value of each key after a change, where values are one or two words.

The old answers are among the accumulators of an aggregate: a word that says whether there is one, and two limbs of 32
bits for each word of it, so that they can be kept by adding changes. A key whose changed values all lie behind the old
answer keeps it: that is nearly every key, and costs one look-up in what is staged. Otherwise a walk begins at the
earlier of the two.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrange import order_words_at
from headwater.kernels.arrays import Hashes, Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.memory import address_of, load, store
from headwater.kernels.walk import next_alive, set_out
from headwater.kernels.words import compare_at

__all__ = ["extremes"]

_LIMB = np.int64(0xFFFFFFFF)


@inlined
def _answer(out: Rows, i: int, targets: Rows, there: bool, row: int, word: int, words: int) -> None:
    """Write an answer to its columns: (word, null word, null bit)."""
    for t in range(targets.shape[0]):
        if there:
            for k in range(words):
                out[i, targets[t, 0] + k] = load(row, word + k)
        else:
            out[i, targets[t, 1]] |= np.int64(1) << targets[t, 2]


@kernel
def extremes(
    runs: Rows,
    staged: bool,
    width: int,
    hashes: Hashes,
    touched: Rows,
    payload: int,
    key_moves: Rows,
    key_mask: int,
    old: Rows,
    at_accumulator: int,
    word: int,
    words: int,
    makings: Rows,
    start_parts: Rows,
    key_parts: Rows,
    order: Rows,
    backwards: bool,
    out: Rows,
    targets: Rows,
) -> None:
    """Write old and new answers to the first and second half of ``out``, and the change of their accumulators to
    ``touched``.

    ``runs`` are those of the values, the last being what is staged. The accumulators begin at ``at_accumulator`` in
    ``old``, and at ``payload`` plus that in ``touched``. ``key_moves`` make a row of the values' layout of a row
    touched; ``word`` is where the value stands there. ``targets`` are the columns of ``out``, which is zeroed.
    """
    number = runs.shape[0]
    last = number - 1
    at = np.empty(max(number, 1), np.int64)
    left = np.empty(max(number, 1), np.int64)
    step = np.int64(-8 * width if backwards else 8 * width)
    start = np.zeros(width, np.int64)
    key = address_of(start)
    n = hashes.size
    for i in range(n):
        there = old[i, at_accumulator] != 0
        store(key, 0, touched[i, 0] & key_mask)
        for k in range(key_moves.shape[0]):
            store(key, key_moves[k, 1], touched[i, key_moves[k, 0]])
        for k in range(words):
            high = old[i, at_accumulator + 1 + 2 * k]
            store(key, word + k, (high << 32) + old[i, at_accumulator + 2 + 2 * k])
        order_words_at(key, makings)
        _answer(out, i, targets, there, key, word, words)
        row = key if there else np.int64(0)
        if staged:
            set_out(runs, last, step, hashes[i], key, 0, key_parts, key, 0, key_parts, at, left)
            if left[last] > 0:
                x = at[last]
                x_base = runs[last, 2]
                c = np.int64(-1)
                if there:
                    c = compare_at(x, x_base, key, 0, address_of(start_parts), start_parts.shape[0])
                    c = -c if backwards else c
                if c <= 0:
                    for r in range(number):
                        set_out(runs, r, step, hashes[i], key, 0, key_parts, x, x_base, start_parts, at, left)
                    row, _, _ = next_alive(runs, width, step, key_parts, order, at, left)
        _answer(out, n + i, targets, row != 0, row, word, words)
        to = payload + at_accumulator
        touched[i, to] = (1 if row != 0 else 0) - old[i, at_accumulator]
        for k in range(words):
            new = load(row, word + k) if row != 0 else np.int64(0)
            touched[i, to + 1 + 2 * k] = (new >> 32) - old[i, at_accumulator + 1 + 2 * k]
            touched[i, to + 2 + 2 * k] = (new & _LIMB) - old[i, at_accumulator + 2 + 2 * k]
