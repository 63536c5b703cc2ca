"""Spark's two hashes of values, bit by bit: Murmur3 of 32 bits (``hash``) and XXH64 (``xxhash64``).

Both begin with the seed 42 and take the columns one after the other, each hash being the seed of the next; a null
leaves the seed as it is. A whole number of up to 32 bits is hashed as four bytes, a longer one as eight, a text as its
UTF-8. Spark's Murmur3 differs from the published one in the last bytes of a text: it mixes each of them as a signed
whole number.
"""

from __future__ import annotations

import struct

__all__ = ["murmur_bytes", "murmur_int", "murmur_long", "xx_bytes"]

_M32, _M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotated32(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & _M32


def _rotated64(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) & _M64


def _mixed(seed: int, word: int) -> int:
    word = _rotated32((word * 0xCC9E2D51) & _M32, 15) * 0x1B873593 & _M32
    return (_rotated32(seed ^ word, 13) * 5 + 0xE6546B64) & _M32


def _finished(seed: int, length: int) -> int:
    seed ^= length
    seed = ((seed ^ (seed >> 16)) * 0x85EBCA6B) & _M32
    seed = ((seed ^ (seed >> 13)) * 0xC2B2AE35) & _M32
    seed ^= seed >> 16
    return seed - (1 << 32) if seed >> 31 else seed


def murmur_int(value: int, seed: int) -> int:
    """The hash of four bytes.

    >>> murmur_int(1, 42)
    -559580957
    """
    return _finished(_mixed(seed & _M32, value & _M32), 4)


def murmur_long(value: int, seed: int) -> int:
    """The hash of eight bytes."""
    return _finished(_mixed(_mixed(seed & _M32, value & _M32), (value >> 32) & _M32), 8)


def murmur_bytes(data: bytes, seed: int) -> int:
    """The hash of a text or a binary."""
    whole = len(data) - len(data) % 4
    seed &= _M32
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _mixed(seed, word)
    for (byte,) in struct.iter_unpack("<b", data[whole:]):
        seed = _mixed(seed, byte & _M32)
    return _finished(seed, len(data))


def xx_bytes(data: bytes, seed: int) -> int:
    """XXH64 of bytes; four and eight of them stand for whole numbers, lowest byte first.

    >>> xx_bytes((1).to_bytes(4, "little"), 42)
    -6698625589789238999
    """
    seed &= _M64
    length, at = len(data), 0
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _M64, (seed + _P2) & _M64, seed, (seed - _P1) & _M64]
        while at + 32 <= length:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [
                _rotated64((lane + word * _P2) & _M64, 31) * _P1 & _M64 for lane, word in zip(lanes, words, strict=True)
            ]
            at += 32
        total = sum(_rotated64(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _M64
        for lane in lanes:
            total ^= _rotated64(lane * _P2 & _M64, 31) * _P1 & _M64
            total = (total * _P1 + _P4) & _M64
    else:
        total = (seed + _P5) & _M64
    total = (total + length) & _M64
    while at + 8 <= length:
        (word,) = struct.unpack_from("<Q", data, at)
        total = (_rotated64(total ^ (_rotated64(word * _P2 & _M64, 31) * _P1 & _M64), 27) * _P1 + _P4) & _M64
        at += 8
    if at + 4 <= length:
        (word,) = struct.unpack_from("<I", data, at)
        total = (_rotated64(total ^ (word * _P1 & _M64), 23) * _P2 + _P3) & _M64
        at += 4
    for byte in data[at:]:
        total = _rotated64(total ^ (byte * _P5 & _M64), 11) * _P1 & _M64
    total = (total ^ (total >> 33)) * _P2 & _M64
    total = (total ^ (total >> 29)) * _P3 & _M64
    total ^= total >> 32
    return total - (1 << 64) if total >> 63 else total
