"""What a record of an online table looks like to kernels; the format is specified in `headwater.serving.record_file`.

A record is a fixed number of bytes: the key, the values, and one bit for each value that may be null, after a first bit
that says that the key was deleted. What has no fixed width lies behind a *slot* of sixteen bytes: a length, then up to
twelve bytes, or a note of four bytes and a place in the heap. A key that has no fixed width is a slot that may be
longer.

`shape` describes a record::

    shape[WIDTH]       bytes of a record
    shape[KEY]         bytes of the key where it has a fixed width, else 0
    shape[INLINE]      bytes of a key that fit into its slot
    shape[NULLS]       where the null bits begin

The hash of a key is seeded, so that nobody can choose keys that collide. Its upper half chooses the slot of the index,
its lower half is the fingerprint there, and chooses the part. It is part of the format on disk: another hash is another
version of the file (`headwater.serving.record_file.VERSION`).
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Positions
from headwater.kernels.compiled import inlined
from headwater.kernels.hash import mix
from headwater.kernels.memory import byte, half, prefetch_at, word

__all__ = [
    "GOLDEN",
    "INLINE",
    "KEY",
    "NULLS",
    "SLOT_INLINE",
    "WIDTH",
    "ask_for_entry",
    "entry_of",
    "equal_bytes",
    "hash_bytes",
    "key_address",
    "key_length",
]

WIDTH = 0
KEY = 1
INLINE = 2
NULLS = 3
SLOT_INLINE = 12

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_THIRTY_TWO = np.uint64(32)


@inlined
def entry_of(h: np.uint64, entries: int) -> int:
    """Where in an index the search for a key begins."""
    return np.int64(((h >> _THIRTY_TWO) * np.uint64(entries)) >> _THIRTY_TWO)


@inlined
def ask_for_entry(index: int, at: int) -> None:
    """Ask for the line of an entry, and for that of the fourth one after it.

    In an index that is half full a search that begins near the end of a line often goes on in the next one. To wait
    for that one then took as long as all hashing.
    """
    prefetch_at(index + 8 * at)
    prefetch_at(index + 8 * at + 32)


@inlined
def hash_bytes(at: int, length: int, seed: np.uint64) -> np.uint64:
    """The hash of the bytes of a key."""
    h = seed ^ (np.uint64(length) * GOLDEN)
    if length == 0:
        return mix(h)
    if length > 8 and length < 16:  # as below, without a loop
        return mix((mix(h ^ word(at)) + GOLDEN) ^ word(at + length - 8))
    k = np.int64(0)
    while k + 8 <= length:
        h = mix(h ^ word(at + k)) + GOLDEN
        k += 8
    if k < length:
        if length >= 8:  # the last eight bytes, some of them for the second time
            rest = word(at + length - 8)
        else:
            rest = np.uint64(0)
            shift = np.uint64(0)
            while k < length:
                rest |= byte(at + k) << shift
                shift += np.uint64(8)
                k += 1
        h = mix(h ^ rest)
    return h


@inlined
def equal_bytes(a: int, b: int, length: int) -> bool:
    """Whether the bytes at two addresses are the same."""
    if length >= 8 and length <= 16:
        return ((word(a) ^ word(b)) | (word(a + length - 8) ^ word(b + length - 8))) == np.uint64(0)
    if length >= 8:
        k = np.int64(0)
        while k + 8 <= length:
            if word(a + k) != word(b + k):
                return False
            k += 8
        return word(a + length - 8) == word(b + length - 8)
    k = np.int64(0)
    while k < length:
        if byte(a + k) != byte(b + k):
            return False
        k += 1
    return True


@inlined
def key_length(record: int, shape: Positions) -> int:
    """How many bytes the key of a record has."""
    if shape[KEY] > 0:
        return shape[KEY]
    return np.int64(half(record))


@inlined
def key_address(record: int, shape: Positions, heap: int) -> int:
    """Where the bytes of the key of a record lie."""
    if shape[KEY] > 0:
        return record
    if np.int64(half(record)) <= shape[INLINE]:
        return record + 4
    return heap + np.int64(word(record + 8))
