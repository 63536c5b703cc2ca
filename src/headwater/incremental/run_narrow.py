"""Narrow rows: the rows of a small run in as few bytes as their words need, because a refresh waits for every byte that it writes.

A row is words of 64 bits, and most of them hold small numbers: a key, an amount, a weight of 1 or -1, flags that are all zero. So each word is
stored as its distance from the least value that it has in the run, in as many bytes as the largest distance takes. What can be computed
from the rows (hashes, directory, filter) is left out, and computed again by whoever opens the file. Measured on the state of a join and its
aggregate: a fifth of the bytes.

The section of rows in a file of format version 2 (`run_file`), little-endian: for each word of a row its least value (8, signed) and its width (8: 0, 1,
2, 4 or 8 bytes); then for each word its column, a distance of that width for each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headwater.incremental.packing import Rows
    from headwater.incremental.run import Run

__all__ = ["is_narrowed", "narrowed", "shortest", "widened"]

_FEWEST, _MOST = 256, 1 << 18
_HEAD = 16
_WIDTHS = (0, 1, 2, 4, 8)


def is_narrowed(run: Run) -> bool:
    """Whether a run is stored so: it is not tiny, small enough to be held in memory, and has no texts, whose bytes lie elsewhere."""
    return _FEWEST <= len(run) <= _MOST and not len(run.layout.slots)


def shortest(width: int) -> int:
    """How many bytes there are at least for rows of so many words."""
    return _HEAD * width


def narrowed(rows: Rows) -> bytes:
    """The bytes of rows, of which there is at least one.

    >>> rows = np.array([[7, -300], [9, 300]], dtype=np.int64)
    >>> len(narrowed(rows)) - shortest(2), widened(narrowed(rows), 2, 2).tolist()
    (6, [[7, -300], [9, 300]])
    """
    columns = np.ascontiguousarray(rows.T)
    least = columns.min(axis=1)
    distances = (columns - least[:, None]).view(np.uint64)  # which may exceed what is signed
    largest = distances.max(axis=1).tolist()
    widths = [next(w for w in _WIDTHS if far < 1 << 8 * w) for far in largest]
    head = np.array([least, widths], dtype="<i8").T
    parts = [column.astype(f"<u{w}") for column, w in zip(distances, widths, strict=True) if w]
    return b"".join([head.tobytes(), *parts])


def widened(data: Any, rows: int, width: int) -> Rows | None:
    """The rows that `narrowed` made these bytes of; None if that cannot be."""
    if len(data) < shortest(width):
        return None
    head = np.frombuffer(data, dtype="<i8", count=2 * width).reshape(width, 2).tolist()
    if any(w not in _WIDTHS for _, w in head) or len(data) != shortest(width) + rows * sum(w for _, w in head):
        return None
    out = np.empty((rows, width), dtype=np.int64)
    at = shortest(width)
    for word, (least, size) in enumerate(head):
        if size:
            column = np.frombuffer(data, dtype=f"<u{size}", count=rows, offset=at).astype(np.uint64)
            out[:, word] = (column + np.uint64(least % (1 << 64))).view(np.int64)
            at += rows * size
        else:
            out[:, word] = least
    return out
