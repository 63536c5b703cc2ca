"""Filters: is a hash in a run at all?

A look-up of a key that a run does not have costs two accesses, to the directory and to the hashes, and in a mapped file
either may be a page that has to be fetched. A filter answers "certainly not" from one cache line in a sixtieth of the
memory. It is a Bloom filter in blocks of 64 bytes: a hash belongs to one block, and sets five of its 512 bits. With
eight bits a row one absent key in forty gets through.

The block is given by the top bits of the hash, so filling it from sorted hashes goes through it once from the beginning
to the end. It is part of the format on disk: block ``((x >> 32) * blocks) >> 32`` for the hash ``x``, and in it the
bits that are the five groups of nine from the top of ``x * 0x9E3779B97F4A7C15``.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Hashes
from headwater.kernels.compiled import inlined, kernel

__all__ = ["WORDS", "block_of", "fill_filter", "filter_blocks", "in_filter", "may_hold"]

WORDS = 8
"""How many 64-bit words a block has."""

_ROWS = 64
_BITS = 5
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_NINE = np.uint64(9)
_TOP = np.uint64(55)
_WORD = np.uint64(6)
_LOW = np.uint64(63)
_ONE = np.uint64(1)

Words = Hashes


def filter_blocks(rows: int) -> int:
    """How many blocks a filter for so many rows has.

    >>> filter_blocks(0), filter_blocks(1000)
    (1, 16)
    """
    return max(1, -(-rows // _ROWS))


@inlined
def block_of(x: np.uint64, blocks: int) -> int:
    """The block that a hash belongs to."""
    return np.int64(((x >> _HALF) * np.uint64(blocks)) >> _HALF)  # type: ignore[return-value]


@inlined
def in_filter(words: Words, blocks: int, x: np.uint64) -> bool:
    """False if the hash is certainly not there."""
    first = block_of(x, blocks) * WORDS
    y = x * _GOLDEN
    for _ in range(_BITS):
        bit = y >> _TOP
        if (words[first + np.int64(bit >> _WORD)] >> (bit & _LOW)) & _ONE == np.uint64(0):
            return False
        y <<= _NINE
    return True


@kernel
def fill_filter(hashes: Words, words: Words) -> None:
    """Put all hashes into a filter that has been zeroed."""
    blocks = words.size // WORDS
    for i in range(hashes.size):
        first = block_of(hashes[i], blocks) * WORDS
        y = hashes[i] * _GOLDEN
        for _ in range(_BITS):
            bit = y >> _TOP
            words[first + np.int64(bit >> _WORD)] |= _ONE << (bit & _LOW)
            y <<= _NINE


@kernel
def may_hold(words: Words, hashes: Words, out: Flags) -> None:
    """For each hash: may it be there?"""
    blocks = words.size // WORDS
    for i in range(hashes.size):
        out[i] = in_filter(words, blocks, hashes[i])
