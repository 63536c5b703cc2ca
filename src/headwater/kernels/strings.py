"""Strings between Arrow's buffers and slots.

Short strings are copied into their slots. Long ones stay where they are: the slot takes the address of the bytes, and the caller
keeps Arrow's buffer alive.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernels.compiled import kernel
from headwater.kernels.memory import byte, view_bytes, view_i32
from headwater.kernels.words import INLINE

__all__ = ["pack_slots", "slot_offsets", "unpack_slots"]

Rows = npt.NDArray[np.int64]


@kernel
def pack_slots(offsets: int, data: int, rows: Rows, at: int, null_word: int, null_bit: int) -> None:
    """Fill the slots at word ``at`` from Arrow's 32-bit offsets and bytes, given by address; nulls are zero."""
    n = rows.shape[0]
    ends = view_i32(offsets, n + 1)
    for i in range(n):
        if (rows[i, null_word] >> null_bit) & 1:
            rows[i, at] = 0
            rows[i, at + 1] = 0
            continue
        begin = data + np.int64(ends[i])
        length = np.int64(ends[i + 1]) - np.int64(ends[i])
        first = np.uint64(length)
        for k in range(min(length, 4)):
            first |= byte(begin + k) << np.uint64(32 + 8 * k)
        second = np.int64(0)
        if length <= INLINE:
            rest = np.uint64(0)
            for k in range(4, length):
                rest |= byte(begin + k) << np.uint64(8 * (k - 4))
            second = np.int64(rest)
        else:
            second = begin
        rows[i, at] = np.int64(first)
        rows[i, at + 1] = second


@kernel
def slot_offsets(rows: Rows, at: int, offsets: npt.NDArray[np.int32]) -> int:
    """Fill Arrow's offsets from the slots' lengths; give the number of bytes, or -1 if they do not fit 32 bits."""
    total = np.int64(0)
    offsets[0] = 0
    for i in range(rows.shape[0]):
        total += rows[i, at] & np.int64(0xFFFFFFFF)
        if total > 0x7FFFFFFF:
            return -1
        offsets[i + 1] = total
    return total


@kernel
def unpack_slots(rows: Rows, at: int, offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> None:
    """Copy the bytes of the slots to where the offsets say."""
    for i in range(rows.shape[0]):
        length = rows[i, at] & np.int64(0xFFFFFFFF)
        to = np.int64(offsets[i])
        if length > INLINE:
            source = view_bytes(rows[i, at + 1], length)
            for k in range(length):
                data[to + k] = source[k]
        else:
            for k in range(min(length, 4)):
                data[to + k] = (rows[i, at] >> (32 + 8 * k)) & 255
            for k in range(4, length):
                data[to + k] = (rows[i, at + 1] >> (8 * (k - 4))) & 255
