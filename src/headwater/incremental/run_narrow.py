"""Narrow rows: the rows of a run in as few bytes as their words need, because a refresh waits for every byte that it
writes.

A row is words of 64 bits, and most of them hold small numbers: a key, an amount, a weight of 1 or -1, flags that are
all zero. So each word is stored as its distance from the least value that it has in the run, in as many bytes as the
largest distance takes. Long strings are compressed: rows of a key lie together, and repeat it. What can be computed
from the rows (hashes, directory, filter) is left out, and computed again by whoever opens the file. Measured on the
state of a join and its aggregate: a fifth of the bytes.

That takes some 0.1 s for a million rows, so larger runs are stored as they are and mapped, which takes the same time
whatever the size.

The section of rows in a file of format version 2 or 3 (`run_file`), little-endian: for each word of a row its least
value (8, signed) and its width (8: 0 to 8 bytes; in version 2 only 0, 1, 2, 4 and 8); then for each word its column, a
distance of that width for each row. The section of the heap, in version 3, if there are long strings: its length (8),
and its bytes compressed by Zstandard.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from headwater.incremental.packing import Rows

__all__ = ["compressed", "decompressed", "is_narrowed", "narrowed", "shortest", "widened"]

_FEWEST, _MOST = 256, 1 << 20
_HEAD = 16
_WIDEST = 8
_LENGTH = struct.Struct("<Q")
_CODEC = pa.Codec("zstd", 1)


def is_narrowed(rows: int) -> bool:
    """Whether a run of so many rows is stored so: it is not tiny, and small enough to be held in memory."""
    return _FEWEST <= rows <= _MOST


def shortest(width: int) -> int:
    """How many bytes there are at least for rows of so many words."""
    return _HEAD * width


def narrowed(rows: Rows) -> bytes:
    """The bytes of rows, of which there is at least one.

    >>> rows = np.array([[7, -300], [9, 300]], dtype=np.int64)
    >>> len(narrowed(rows)) - shortest(2), widened(narrowed(rows), 2, 2).tolist()
    (6, [[7, -300], [9, 300]])
    """
    head: list[tuple[int, int]] = []
    parts: list[bytes] = []
    for word in range(rows.shape[1]):
        column = np.ascontiguousarray(rows[:, word])
        least = int(column.min())
        distances = (column - np.int64(least)).view(np.uint64)  # which may exceed what is signed
        size = (int(distances.max()).bit_length() + 7) // 8
        head.append((least, size))
        if size:
            parts.append(_bytes_of(distances, size))
    return b"".join([np.array(head, dtype="<i8").tobytes(), *parts])


def _bytes_of(distances: npt.NDArray[np.uint64], size: int) -> bytes:
    if size in (1, 2, 4, 8):
        return distances.astype(f"<u{size}").tobytes()
    return distances.astype("<u8").view(np.uint8).reshape(len(distances), _WIDEST)[:, :size].tobytes()


def _from_bytes(data: Any, rows: int, size: int, at: int) -> npt.NDArray[np.uint64]:
    if size in (1, 2, 4, 8):
        return np.frombuffer(data, dtype=f"<u{size}", count=rows, offset=at).astype(np.uint64)
    whole = np.zeros((rows, _WIDEST), dtype=np.uint8)
    whole[:, :size] = np.frombuffer(data, dtype=np.uint8, count=rows * size, offset=at).reshape(rows, size)
    return whole.reshape(-1).view("<u8").astype(np.uint64)


def widened(data: Any, rows: int, width: int) -> Rows | None:
    """The rows that `narrowed` made these bytes of; None if that cannot be."""
    if len(data) < shortest(width):
        return None
    head = np.frombuffer(data, dtype="<i8", count=2 * width).reshape(width, 2).tolist()
    if any(not 0 <= w <= _WIDEST for _, w in head) or len(data) != shortest(width) + rows * sum(w for _, w in head):
        return None
    out = np.empty((rows, width), dtype=np.int64)
    at = shortest(width)
    for word, (least, size) in enumerate(head):
        if size:
            column = _from_bytes(data, rows, size, at)
            out[:, word] = (column + np.uint64(least % (1 << 64))).view(np.int64)
            at += rows * size
        else:
            out[:, word] = least
    return out


def compressed(heap: npt.NDArray[np.uint8]) -> bytes:
    """The bytes of a heap, of which there is at least one.

    >>> heap = np.frombuffer(b"a long string, a long string", dtype=np.uint8)
    >>> decompressed(compressed(heap)).tobytes()
    b'a long string, a long string'
    """
    packed: bytes = _CODEC.compress(np.ascontiguousarray(heap), asbytes=True)
    return _LENGTH.pack(heap.size) + packed


def decompressed(data: Any) -> npt.NDArray[np.uint8] | None:
    """The heap that `compressed` made these bytes of, which can be written to; None if that cannot be."""
    if len(data) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack_from(data)
    try:
        found = _CODEC.decompress(data[_LENGTH.size :], decompressed_size=size)
    except (OSError, pa.ArrowException, MemoryError, OverflowError):
        return None
    return np.frombuffer(found, dtype=np.uint8).copy() if len(found) == size else None
