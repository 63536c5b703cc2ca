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

__all__ = ["HASH_VERSION", "hash_all", "hash_part", "hash_rows", "mix"]

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
def hash_part(h: np.uint64, rows: Rows, i: int, parts: Rows, part: int) -> np.uint64:
    """Fold one part of row ``i`` into ``h``."""
    at = parts[part, 0]
    if parts[part, 2] != -1:  # null bits: a key without nulls has the same hash where it may have some and where not
        bits = rows[i, at] & parts[part, 2]
        return h if bits == 0 else mix((h * _GOLDEN) ^ (np.uint64(bits) + _GOLDEN))
    if parts[part, 1] == 0:
        return mix((h * _GOLDEN) ^ (np.uint64(rows[i, at]) + _GOLDEN))
    return mix((h * _GOLDEN) ^ _hash_slot(rows[i, at], rows[i, at + 1], 0))


@shared
def hash_all(rows: Rows, parts: Rows, out: Hashes) -> None:
    """Write the hash of the ``parts`` of each row to ``out``."""
    n = rows.shape[0]
    if parts.shape[0] == 2 and parts[0, 1] == 0 and parts[1, 2] != -1:  # one word, and its null bit
        row = address_of(rows)
        step = 8 * rows.shape[1]
        for i in range(n):
            h = mix(np.uint64(load(row, parts[0, 0])) + _GOLDEN)
            bits = load(row, parts[1, 0]) & parts[1, 2]
            out[i] = h if bits == 0 else mix((h * _GOLDEN) ^ (np.uint64(bits) + _GOLDEN))
            row += step
        return
    for i in range(n):
        h = np.uint64(0)
        for part in range(parts.shape[0]):
            h = hash_part(h, rows, i, parts, part)
        out[i] = h


@kernel
def hash_rows(rows: Rows, parts: Rows) -> Hashes:
    """The hash of the ``parts`` of each row."""
    out = np.empty(rows.shape[0], np.uint64)
    hash_all(rows, parts, out)
    return out
