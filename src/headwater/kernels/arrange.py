"""Moving rows from one layout to another: words, null bits, and the order words that are made of them."""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Positions, Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.memory import address_of, copy_words, load, store

__all__ = ["arrange", "fill_order_words", "float_rank", "move_at", "order_words_at", "rearrange", "take"]


_MAGNITUDE = np.int64((1 << 63) - 1)
_INFINITY = np.int64(0x7FF0000000000000)


@inlined
def float_rank(bits: int) -> int:
    """A number that sorts as the double of these bits does in Spark: zeros are equal, NaN is the greatest."""
    if (bits & _MAGNITUDE) == 0:
        return np.int64(0)
    if (bits & _MAGNITUDE) > _INFINITY:
        return _MAGNITUDE
    return bits if bits >= 0 else bits ^ _MAGNITUDE


@inlined
def order_words_at(row: int, makings: Rows) -> None:
    """Fill the derived words of one row; see `fill_order_words`."""
    for k in range(makings.shape[0]):
        null = (load(row, makings[k, 4]) >> makings[k, 5]) & 1
        how = makings[k, 2]
        if how == 0:
            store(row, makings[k, 0], (1 - null) if makings[k, 6] else null)
            continue
        x = load(row, makings[k, 1])
        if how == 2:
            x = float_rank(x)
        if null:
            x = np.int64(0)
        store(row, makings[k, 0], ~x if makings[k, 3] else x)


@inlined
def move_at(row: int, to: int, moves: Rows, bits: Rows) -> None:
    """Move the words and null bits of one row to another, which is zero where they go."""
    pairs = address_of(moves)
    carried = address_of(bits)
    for k in range(moves.shape[0]):
        store(to, load(pairs, 2 * k + 1), load(row, load(pairs, 2 * k)))
    for k in range(bits.shape[0]):
        bit = (load(row, load(carried, 4 * k)) >> load(carried, 4 * k + 1)) & 1
        at = load(carried, 4 * k + 2)
        store(to, at, load(to, at) | (bit << load(carried, 4 * k + 3)))


@kernel
def arrange(rows: Rows, moves: Rows, bits: Rows, out: Rows) -> None:
    """Copy words by (from, to) pairs, and null bits by (word, bit, to word, to bit); ``out`` has been zeroed."""
    for i in range(rows.shape[0]):
        move_at(address_of(rows) + 8 * rows.shape[1] * i, address_of(out) + 8 * out.shape[1] * i, moves, bits)


@kernel
def rearrange(rows: Rows, moves: Rows, bits: Rows, makings: Rows, out: Rows) -> None:
    """The same into ``out`` as it is, and make the order words."""
    for i in range(rows.shape[0]):
        to = address_of(out) + 8 * out.shape[1] * i
        for k in range(out.shape[1]):
            store(to, k, 0)
        move_at(address_of(rows) + 8 * rows.shape[1] * i, to, moves, bits)
        order_words_at(to, makings)


@kernel
def fill_order_words(rows: Rows, makings: Rows) -> None:
    """Fill derived words: (to, from, how, descending, null word, null bit, nulls first).

    ``how``: 0 rank of nulls, 1 a word, 2 a double's bits.
    """
    for i in range(rows.shape[0]):
        order_words_at(address_of(rows) + 8 * rows.shape[1] * i, makings)


@kernel
def take(rows: Rows, positions: Positions, out: Rows) -> None:
    """``out[k] = rows[positions[k]]``."""
    to = address_of(out)
    step = 8 * rows.shape[1]
    for k in range(positions.size):
        copy_words(to, address_of(rows) + step * positions[k], rows.shape[1])
        to += step
