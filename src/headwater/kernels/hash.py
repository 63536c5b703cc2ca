"""The hash of a key: where a row stands in a run, and on which shard.

It is part of the format on disk, so it is written here and has a version; libraries change theirs. A word is mixed by
two multiplications and three shifts, a bijection, so different single-word keys never collide. A slot is its length and
bytes, eight at a time. Several parts are folded one after the other. A key with a null part is like any other: its word
is zero and its null bit is a part of the key.

Invariants: the hash of a key does not depend on where its words stand in the row, nor on where a long string is
kept. Keys that are equal have equal hashes; keys with equal hashes are compared.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Hashes, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.memory import address_of, byte, load, word
from headwater.kernels.words import INLINE

__all__ = ["HASH_VERSION", "hash_all", "hash_rows", "mix"]

HASH_VERSION = 1

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)
_EIGHT = np.uint64(8)


@inlined
def mix(x: np.uint64) -> np.uint64:
    """A bijection of 64-bit words in which every bit of the result depends on every bit of ``x``."""
    x ^= x >> _SHIFT
    x *= _FIRST
    x ^= x >> _SHIFT
    x *= _SECOND
    x ^= x >> _SHIFT
    return x


@inlined
def _hash_slot(first: int, second: int, base: int) -> np.uint64:
    length = first & np.int64(0xFFFFFFFF)
    h = mix(np.uint64(first) + _GOLDEN)
    if length <= INLINE:
        return mix(h ^ (np.uint64(second) * _GOLDEN))
    begin = second + base
    i = 0
    while i + 8 <= length:
        h = (h ^ word(begin + i)) * _FIRST
        h ^= h >> _SHIFT
        i += 8
    rest = np.uint64(0)
    shift = np.uint64(0)
    while i < length:
        rest |= byte(begin + i) << shift
        shift += _EIGHT
        i += 1
    return mix((h ^ rest) * _GOLDEN)


@inlined
def _with_nulls(h: np.uint64, bits: int) -> np.uint64:
    """Fold the null bits of a key into its hash."""
    return h if bits == 0 else mix((h * _GOLDEN) ^ (np.uint64(bits) + _GOLDEN))


@inlined
def _folded(h: np.uint64, bits: int) -> np.uint64:
    """Fold a word into a hash."""
    return mix((h * _GOLDEN) ^ (np.uint64(bits) + _GOLDEN))


@inlined
def _hash_words(row: int, step: int, n: int, parts: Rows, count: int, null_word: int, nulls: int, out: Hashes) -> None:
    """Hashes of keys of one to three words: rows are independent, so that the multiplications of several overlap."""
    a = parts[0, 0]
    if count == 1:
        for i in range(n):
            h = mix(np.uint64(load(row, a)) + _GOLDEN)
            out[i] = _with_nulls(h, load(row, null_word) & nulls)
            row += step
        return
    b = parts[1, 0]
    if count == 2:
        for i in range(n):
            h = _folded(mix(np.uint64(load(row, a)) + _GOLDEN), load(row, b))
            out[i] = _with_nulls(h, load(row, null_word) & nulls)
            row += step
        return
    c = parts[2, 0]
    for i in range(n):
        h = _folded(_folded(mix(np.uint64(load(row, a)) + _GOLDEN), load(row, b)), load(row, c))
        out[i] = _with_nulls(h, load(row, null_word) & nulls)
        row += step


@shared
def hash_all(rows: Rows, parts: Rows, out: Hashes) -> None:
    """Write the hash of the ``parts`` of each row to ``out``."""
    n = rows.shape[0]
    number = parts.shape[0]
    row = address_of(rows)
    step = 8 * rows.shape[1]
    words = np.int64(0)  # which come first
    while words < number and parts[words, 1] == 0 and parts[words, 2] == -1:
        words += 1
    if 1 <= words <= 3 and words == number:
        _hash_words(row, step, n, parts, words, 0, 0, out)
        return
    if 1 <= words <= 3 and words + 1 == number and parts[words, 1] == 0:
        _hash_words(row, step, n, parts, words, parts[words, 0], parts[words, 2], out)
        return
    table = address_of(parts)
    for i in range(n):
        h = np.uint64(0)
        part = table
        for _ in range(number):
            at = load(part, 0)
            mask = load(part, 2)
            if mask != -1:
                h = _with_nulls(h, load(row, at) & mask)
            elif load(part, 1) == 0:
                h = _folded(h, load(row, at))
            else:
                h = mix((h * _GOLDEN) ^ _hash_slot(load(row, at), load(row, at + 1), 0))
            part += 24
        out[i] = h
        row += step


@kernel
def hash_rows(rows: Rows, parts: Rows) -> Hashes:
    """The hash of the ``parts`` of each row."""
    out = np.empty(rows.shape[0], np.uint64)
    hash_all(rows, parts, out)
    return out
