"""Keyed 128-bit hashes of rows, column by column, and their sums by partition.

A row's hash is two *lanes* of 64 bits. A column is folded into the lanes of all rows at once: a lane is combined with
the value's word and a key, and mixed by a bijection in which every bit depends on every other (the finalisers of
MurmurHash3 for the first lane and of SplitMix64 for the second). Whoever calls draws the keys at random, one set for
each column, so nobody can prepare rows that collide.

`fold_words` takes values of up to 64 bits, `fold_bytes` strings, `fold_lists` the lanes of the items of lists, and
`fold_cells` floats that are rounded first. `add_lanes` sums the lanes of the rows of each partition. Sums do not depend
on the order of rows.

``keys`` are four words: two for values and two for nulls. ``nulls`` is empty where a column has none.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import GivenBytes, GivenFlags, GivenHashes, GivenPositions, Hashes, Lanes, Positions
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.hash import mix
from headwater.kernels.memory import address_of, byte, word

__all__ = ["CELL_BITS", "add_lanes", "fold_bytes", "fold_cells", "fold_lists", "fold_words"]

CELL_BITS = 22
"""Bits of a double's significand that rounding drops: 30 stay,
and numbers of one cell differ by less than 2^-30 of either.
"""

_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xBF58476D1CE4E5B9)
_THIRD = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S27, _S29, _S30, _S31, _S32 = (np.uint64(s) for s in (27, 29, 30, 31, 32))
_S52 = np.uint64(52)
_EXPONENT = np.uint64(0x7FF)
_SIGN = np.uint64(1 << 63)
_INFINITY = np.uint64(0x7FF0000000000000)
_NAN = np.uint64(0x7FFFFFFFFFFFFFFF)
_KEPT = np.uint64(0xFFFFFFFFFFFFFFFF ^ ((1 << CELL_BITS) - 1))


@inlined
def _mix_second(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _S30)) * _SECOND
    x = (x ^ (x >> _S27)) * _THIRD
    return x ^ (x >> _S31)


@inlined
def _fold(lanes: Lanes, i: int, first: np.uint64, second: np.uint64, a: np.uint64, b: np.uint64) -> None:
    lanes[i, 0] = mix((lanes[i, 0] ^ first) + a)
    lanes[i, 1] = _mix_second((lanes[i, 1] ^ second) + b)


@kernel
def fold_words(words: GivenHashes, nulls: GivenFlags, lanes: Lanes, keys: Hashes) -> None:
    """Fold a column of words."""
    a, b = keys[0], keys[1]
    if len(nulls) == 0:
        for i in range(len(words)):
            _fold(lanes, i, words[i], words[i], a, b)
        return
    for i in range(len(words)):
        if nulls[i]:
            _fold(lanes, i, np.uint64(0), np.uint64(0), keys[2], keys[3])
        else:
            _fold(lanes, i, words[i], words[i], a, b)


@inlined
def _cell(bits: np.uint64, offset: np.uint64) -> np.uint64:
    """What stands for a double and the numbers next to it; zeros are one, NaNs are one,
    and what is too small to round is itself.
    """
    magnitude = bits & ~_SIGN
    if magnitude == np.uint64(0):
        return np.uint64(0)
    if magnitude > _INFINITY:
        return _NAN
    exponent = magnitude >> _S52
    if exponent == np.uint64(0) or exponent >= _EXPONENT - np.uint64(1):
        return bits
    return (bits & _SIGN) | ((magnitude + offset) & _KEPT)


@kernel
def fold_cells(bits: GivenHashes, nulls: GivenFlags, lanes: Lanes, keys: Hashes, offset: int) -> None:
    """Fold a column of doubles, given by their bits and rounded to cells;
    ``offset`` moves the borders between cells.
    """
    a, b, by = keys[0], keys[1], np.uint64(offset)
    for i in range(len(bits)):
        if len(nulls) != 0 and nulls[i]:
            _fold(lanes, i, np.uint64(0), np.uint64(0), keys[2], keys[3])
        else:
            cell = _cell(bits[i], by)
            _fold(lanes, i, cell, cell, a, b)


@kernel
def fold_bytes(offsets: GivenPositions, data: GivenBytes, nulls: GivenFlags, lanes: Lanes, keys: Hashes) -> None:
    """Fold a column of strings: the bytes of row ``i`` are those from ``offsets[i]`` until ``offsets[i + 1]``."""
    base = address_of(data)
    for i in range(len(offsets) - 1):
        if len(nulls) != 0 and nulls[i]:
            _fold(lanes, i, np.uint64(0), np.uint64(0), keys[2], keys[3])
            continue
        at, end = base + offsets[i], base + offsets[i + 1]
        a = keys[0] + np.uint64(end - at) * _GOLDEN
        b = keys[1] + np.uint64(end - at) * _THIRD
        while at + 8 <= end:
            piece = word(at)
            a = (a ^ piece) * _FIRST
            a ^= a >> _S32
            b = (b ^ piece) * _SECOND
            b ^= b >> _S29
            at += 8
        rest, shift = np.uint64(0), np.uint64(0)
        while at < end:
            rest |= byte(at) << shift
            shift += np.uint64(8)
            at += 1
        a = (a ^ rest) * _FIRST
        b = (b ^ rest) * _SECOND
        _fold(lanes, i, a ^ (a >> _S32), b ^ (b >> _S29), keys[0], keys[1])


@kernel
def fold_lists(offsets: GivenPositions, items: Lanes, nulls: GivenFlags, lanes: Lanes, keys: Hashes) -> None:
    """Fold a column of lists, whose items have lanes of their own."""
    for i in range(len(offsets) - 1):
        if len(nulls) != 0 and nulls[i]:
            _fold(lanes, i, np.uint64(0), np.uint64(0), keys[2], keys[3])
            continue
        length = np.uint64(offsets[i + 1] - offsets[i])
        _fold(lanes, i, length, length, keys[0], keys[1])
        for j in range(offsets[i], offsets[i + 1]):
            _fold(lanes, i, items[j, 0], items[j, 1], keys[0], keys[1])


@kernel
def add_lanes(places: Lanes, lanes: Lanes, bits: int, counts: Positions, sums: Lanes) -> None:
    """Add the lanes of each row to those of its partition, which is named by the first ``bits`` of ``places``."""
    shift = np.uint64(64 - bits)
    for i in range(len(lanes)):
        part = np.int64(0) if bits == 0 else np.int64(places[i, 0] >> shift)
        counts[part] += 1
        sums[part, 0] += lanes[i, 0]
        sums[part, 1] += lanes[i, 1]
