"""Rows as words: how a row is laid out, when two are equal, and which comes first.

A row is ``width`` 64-bit words in one piece of memory, so that fetching a row costs one cache miss however many columns
it has. First come the payload's words, then one or more *weights*. In an ordinary Z-set there is one weight; a linear
aggregate has a vector of them. Two rows are equal iff their payloads are.

A column is one word (numbers, dates, timestamps, booleans; floats by their bits), two (decimals of more than 18 digits:
high, then low with its sign bit flipped) or a **slot** of two words (strings, bytes, and nested values in their
encoding)::

    word 0    bits 0-31 the length in bytes, bits 32-63 the first four bytes
    word 1    length <= 12: the bytes 4..11, zero padded; else where the whole string begins

Where a long string begins is an address in rows that flow through a circuit, and a distance from the run's heap in a
run; ``base`` is what has to be added, so it is 0 for rows that flow. Null bits are words of the payload, and the words
of a null are zero.

**Parts** are a matrix of (word, kind, mask), and compare rows one part after the other: kind 0 is a signed word, of
which the bits of the mask count; 1 is a slot by its bytes; 2 a slot by its bytes, descending.

`compare_at` and `equal_at` take addresses of rows; `compare` and `equal_parts` the same for rows of matrices.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Rows
from headwater.kernels.compiled import inlined, shared
from headwater.kernels.memory import address_of, byte, load, swapped, word

__all__ = ["INLINE", "compare", "compare_at", "compare_slots", "equal_at", "equal_parts", "equal_slots", "slot_length"]

INLINE = 12
_LENGTH = np.int64(0xFFFFFFFF)


@inlined
def slot_length(first: int) -> int:
    return first & _LENGTH


@inlined
def _slot_byte(first: int, second: int, base: int, length: int, i: int) -> int:
    if length > INLINE:
        return np.int64(byte(second + base + i))
    if i < 4:
        return (first >> (32 + 8 * i)) & 255
    return (second >> (8 * (i - 4))) & 255


@shared
def equal_slots(a0: int, a1: int, a_base: int, b0: int, b1: int, b_base: int) -> bool:
    """Are two slots the same bytes? The first words tell most of them apart."""
    if a0 != b0:
        return False
    length = a0 & _LENGTH
    if length <= INLINE:
        return a1 == b1
    a = a1 + a_base
    b = b1 + b_base
    if a == b:
        return True
    i = np.int64(4)
    while i + 8 <= length:
        if word(a + i) != word(b + i):
            return False
        i += 8
    while i < length:
        if byte(a + i) != byte(b + i):
            return False
        i += 1
    return True


@shared
def compare_slots(a0: int, a1: int, a_base: int, b0: int, b1: int, b_base: int) -> int:
    """Negative, zero or positive, as the bytes of one come before, equal or after those of the other.

    What a short string has no bytes for is zero in its words, so words decide, and where they are alike the lengths do.
    """
    if a0 >> 32 != b0 >> 32:
        return -1 if swapped(a0 >> 32) < swapped(b0 >> 32) else 1
    a_length = a0 & _LENGTH
    b_length = b0 & _LENGTH
    shorter = min(a_length, b_length)
    if max(a_length, b_length) <= INLINE:
        if a1 != b1:
            return -1 if swapped(a1) < swapped(b1) else 1
    else:
        i = np.int64(4)
        if shorter > INLINE:
            while i + 8 <= shorter:
                eight = np.int64(word(a1 + a_base + i))
                others = np.int64(word(b1 + b_base + i))
                if eight != others:
                    return -1 if swapped(eight) < swapped(others) else 1
                i += 8
        while i < shorter:
            x = _slot_byte(a0, a1, a_base, a_length, i)
            y = _slot_byte(b0, b1, b_base, b_length, i)
            if x != y:
                return -1 if x < y else 1
            i += 1
    if a_length == b_length:
        return 0
    return -1 if a_length < b_length else 1


@inlined
def compare_at(a: int, a_base: int, b: int, b_base: int, parts: int, count: int) -> int:
    """Negative, zero or positive: the row at ``a`` against that at ``b``, by ``count`` parts at an address."""
    for k in range(count):
        at = load(parts, 3 * k)
        kind = load(parts, 3 * k + 1)
        if kind == 0:
            mask = load(parts, 3 * k + 2)
            x = load(a, at) & mask
            y = load(b, at) & mask
            if x != y:
                return -1 if x < y else 1
        else:
            found = compare_slots(load(a, at), load(a, at + 1), a_base, load(b, at), load(b, at + 1), b_base)
            if found != 0:
                return found if kind == 1 else -found
    return 0


@inlined
def equal_at(a: int, a_base: int, a_parts: int, b: int, b_base: int, b_parts: int, count: int) -> bool:
    """Are the given parts of two rows equal? The parts may stand at different words, but are of the same kinds."""
    for k in range(count):
        x = load(a_parts, 3 * k)
        y = load(b_parts, 3 * k)
        if load(a_parts, 3 * k + 1) == 0:
            if (load(a, x) ^ load(b, y)) & load(a_parts, 3 * k + 2):
                return False
        elif not equal_slots(load(a, x), load(a, x + 1), a_base, load(b, y), load(b, y + 1), b_base):
            return False
    return True


@inlined
def compare(a: Rows, i: int, a_base: int, b: Rows, j: int, b_base: int, order: Rows) -> int:
    """Negative, zero or positive: row ``i`` of ``a`` against row ``j`` of ``b``."""
    x = address_of(a) + 8 * a.shape[1] * i
    y = address_of(b) + 8 * b.shape[1] * j
    return compare_at(x, a_base, y, b_base, address_of(order), order.shape[0])


@inlined
def equal_parts(a: Rows, i: int, a_base: int, a_parts: Rows, b: Rows, j: int, b_base: int, b_parts: Rows) -> bool:
    """Are the given parts of row ``i`` of ``a`` and of row ``j`` of ``b`` equal?"""
    x = address_of(a) + 8 * a.shape[1] * i
    y = address_of(b) + 8 * b.shape[1] * j
    return equal_at(x, a_base, address_of(a_parts), y, b_base, address_of(b_parts), a_parts.shape[0])
