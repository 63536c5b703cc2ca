"""Row keys: 128 bits that stand for a row, so that a row can be found again without being kept.

A view has to know where each of its rows lies, and keeping the rows themselves for that would double its state. Two hashes of 64 bits take
their place. They have to be independent, or there would be only one: the first folds the words of a row from the left, the second
from the right; and since the hash of a text is one word of either, the second takes each text with a byte put before it, which
moves all of its words.

A row may be there several times. Its copies are numbered from 0, and the key of a copy is that of the row, moved by the number. With n rows the
chance that any two keys agree is about n²/2¹²⁹: 10⁻²³ for a hundred million rows.

Format (it is a part of the state on disk): version 1, over `headwater.kernels.hash.HASH_VERSION` 1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.incremental.layout import Layout, Placed
from headwater.incremental.packing import pack, unpack_column
from headwater.incremental.zset import ZSet
from headwater.kernels.hash import hash_rows

__all__ = ["VERSION", "Keys", "copies_of", "expanded", "row_keys", "sorted_keys"]

VERSION = 1
Keys = npt.NDArray[np.uint64]
"""A matrix with a line of two words for each row."""

_STEP = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
_PREFIX = b"\x01"


def row_keys(zset: ZSet) -> Keys:
    """The key of each row, whatever its weight.

    >>> z = ZSet.from_arrow(pa.table({"id": [1, 2, 1], "name": ["a", None, "a"]}))
    >>> keys = row_keys(z)
    >>> bool((keys[0] == keys[2]).all()), bool((keys[0] == keys[1]).any())
    (True, False)
    """
    layout, rows = zset.layout, zset.rows
    out = np.empty((len(rows), 2), dtype=np.uint64)
    if not len(rows):
        return out
    parts, words, texts = _plan(layout)
    out[:, 0] = hash_rows(rows, parts)
    if not texts:
        out[:, 1] = hash_rows(rows, words)
        return out
    moved, owners = _moved(rows, texts, hash_rows(rows, words))
    out[:, 1] = hash_rows(moved, _all_parts(len(texts)))
    del owners  # the texts were needed until here
    return out


@lru_cache(maxsize=64)
def _plan(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[Placed]]:
    """What is hashed from the left, what from the right, and the columns of texts."""
    nulls = [(w, 0, -1) for w in range(max(1, -(-len(layout.columns) // 64)))]
    parts = [part for column in layout.columns for part in column.parts] + nulls
    words = [part for column in layout.columns if not column.is_slot for part in column.parts] + nulls
    return _matrix(parts), _matrix(words[::-1]), [column for column in layout.columns if column.is_slot]


def _moved(
    rows: npt.NDArray[np.int64], texts: list[Placed], others: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], tuple[object, ...]]:
    """The texts of rows, each with a byte before it, behind the hash of the other columns."""
    columns: list[pa.Array] = [pa.array(others.view(np.int64))]
    for column in texts:
        plain = Placed(
            column.name, pa.binary(), column.nullable, "slot", column.word, column.null_word, column.null_bit
        )
        array = unpack_column(plain, rows)
        columns.append(pc.binary_join_element_wise(pa.scalar(_PREFIX), array, pa.scalar(b"", pa.binary())))
    return pack(_text_layout(len(texts)), columns, len(rows))


def _text_layout(texts: int) -> Layout:
    fields = [pa.field("others", pa.int64(), nullable=False)]
    return Layout(pa.schema([*fields, *(pa.field(f"t{i}", pa.binary()) for i in range(texts))]))


def _all_parts(texts: int) -> npt.NDArray[np.int64]:
    return _matrix([part for column in _text_layout(texts).columns for part in column.parts])


def _matrix(parts: list[tuple[int, int, int]]) -> npt.NDArray[np.int64]:
    return np.array(parts, dtype=np.int64).reshape(len(parts), 3)


def expanded(
    keys: Keys, first: npt.NDArray[np.int64], count: npt.NDArray[np.int64]
) -> tuple[Keys, npt.NDArray[np.int64]]:
    """The keys of the copies ``first … first + count - 1`` of each row, and which row each of them is of."""
    if (count == 1).all():
        return copies_of(keys, first), np.arange(len(keys), dtype=np.int64)
    which = np.repeat(np.arange(len(keys), dtype=np.int64), count)
    starts = np.cumsum(count) - count
    number = np.arange(len(which), dtype=np.int64) - starts[which] + first[which]
    return copies_of(keys[which], number), which


def copies_of(keys: Keys, number: npt.NDArray[np.int64]) -> Keys:
    """The keys of one copy of each row.

    >>> keys = np.array([[5, 7]], dtype=np.uint64)
    >>> bool((copies_of(keys, np.array([0])) == keys).all()), bool((copies_of(keys, np.array([1])) == keys).any())
    (True, False)
    """
    if not number.any():
        return keys
    return keys + number.astype(np.uint64)[:, None] * _STEP


def sorted_keys(keys: Keys) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """An order in which equal keys come together, and where in it another key begins.

    >>> order, new = sorted_keys(np.array([[9, 1], [2, 5], [9, 1]], dtype=np.uint64))
    >>> order.tolist(), new.tolist()
    ([1, 0, 2], [True, True, False])
    """
    order = np.argsort(keys[:, 0], kind="stable")
    ordered = keys[order]
    high = ordered[1:, 0] != ordered[:-1, 0]
    differs = high | (ordered[1:, 1] != ordered[:-1, 1])
    if (differs & ~high).any():  # two rows share one hash of the two, which hardly ever happens
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        differs = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order.astype(np.int64, copy=False), np.concatenate([np.ones(min(1, len(keys)), dtype=bool), differs])
