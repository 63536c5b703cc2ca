"""Partial sums: fewer rows for the same counts and sums, so that the rows of a hot key need not all move.

Whoever only counts rows and adds whole numbers up cannot tell Z-sets apart that have the same counts and sums. So the
rows of a group (equal in every column but those that are added) become a few: with a column ``v`` whose least value is
``base`` and whose greatest is ``base + most``, ``N`` rows with the sum ``N * base + U`` are

    (base + most) * q,   (base + r) * 1,   base * (N - 1 - q)      where U = q * most + r,  0 <= r < most

and with several columns one row more for each. Values whose upper 32 bits differ are in groups of their own: sums are
kept in limbs of 32 bits (`headwater.kernels.accumulate`), and so even the limbs add up to what they would.

Nothing is gained where hardly any rows share a key. A histogram of hashes finds the keys that have many, and only their
rows are added up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.incremental.layout import Layout, Placed
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels.hash import hash_rows

__all__ = ["can_add", "summed"]

Words = npt.NDArray[np.int64]
_BUCKET_BITS = 16
_HOT_ROWS = 32
_MOST_WEIGHT = 1 << 29
_LIMB = 32


def can_add(layout: Layout, column: str) -> bool:
    """Whether values of a column are whole numbers in one word."""
    placed = layout.columns[layout.schema.get_field_index(column)]
    signed = pa.types.is_signed_integer(placed.dtype) or pa.types.is_decimal(placed.dtype)
    return bool(placed.kind == "word" and signed)


def summed(rows: ZSet, keys: Collection[str], added: Sequence[str]) -> ZSet:
    """Rows with the same counts and sums of the columns ``added``, in each group of equal other columns.

    ``keys`` are some of the other columns: who has many rows of one key gets fewer.

    >>> table = pa.table({"k": [1] * 100, "v": range(100)})
    >>> few = summed(ZSet.from_arrow(table), ["k"], ["v"])
    >>> few.to_arrow().sort_by("v").to_pydict()["v"][0], len(few) <= 3, int(few.weights.sum())
    (0, True, 100)
    """
    layout = rows.layout
    if len(rows) < _HOT_ROWS or layout.weights != 1 or int(np.abs(rows.weights).sum()) > _MOST_WEIGHT:
        return rows
    hot = _hot(rows, keys)
    if 2 * np.count_nonzero(hot) < _HOT_ROWS:
        return rows
    columns = [layout.columns[layout.schema.get_field_index(name)] for name in added]
    few = _added_up(rows.filtered(np.flatnonzero(hot)), columns)
    if 2 * len(few) > np.count_nonzero(hot):
        return rows
    return concatenate([rows.filtered(np.flatnonzero(~hot)), few], layout)


def _hot(rows: ZSet, keys: Collection[str]) -> npt.NDArray[np.bool_]:
    """Which rows are of keys with many rows, or share a bucket with such."""
    layout = rows.layout
    parts = [part for column in layout.columns if column.name in keys for part in column.parts]
    if not parts:
        return np.ones(len(rows), dtype=np.bool_)
    hashes = hash_rows(rows.rows, np.array(parts, dtype=np.int64).reshape(len(parts), 3))
    buckets = (hashes >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)
    counts = np.bincount(buckets, minlength=1 << _BUCKET_BITS)
    found: npt.NDArray[np.bool_] = counts[buckets] >= max(_HOT_ROWS, 8 * len(rows) >> _BUCKET_BITS)
    return found


def _added_up(rows: ZSet, columns: Sequence[Placed]) -> ZSet:
    layout = rows.layout
    wide = Layout(layout.schema, weights=1 + len(columns))
    assert wide.payload == layout.payload, "the words of the columns stand where they stood"
    weights = rows.weights
    words = np.empty((len(rows), wide.width), dtype=np.int64)
    words[:, : layout.payload] = rows.rows[:, : layout.payload]
    words[:, layout.payload] = weights
    for i, column in enumerate(columns):
        value = rows.rows[:, column.word]
        base = np.maximum(value >> _LIMB << _LIMB, _least(column))
        words[:, column.word] = base = np.where(_is_null(column, rows.rows), value, base)
        words[:, layout.payload + 1 + i] = weights * (value - base)
    groups = ZSet(wide, words, rows.owners).consolidate()
    return ZSet(layout, _few(groups.rows, layout, columns), rows.owners).consolidate()


def _few(groups: Words, layout: Layout, columns: Sequence[Placed]) -> Words:
    """The rows that stand for groups, with the least values of columns, and what is to be added."""
    plain = np.ascontiguousarray(groups[:, : layout.width])
    rest = plain.copy()  # in the end: the row of the remainders
    count = plain[:, layout.payload].copy()
    out = []
    for i, column in enumerate(columns):
        base = plain[:, column.word]
        most = np.minimum(base | ((1 << _LIMB) - 1), _greatest(column)) - base
        total = groups[:, layout.payload + 1 + i]
        times = np.where(most > 0, total // np.maximum(most, 1), 0)
        rest[:, column.word] = base + (total - times * most)
        large = plain.copy()
        large[:, column.word] = base + most
        large[:, layout.payload] = times
        count -= times
        out.append(large)
    rest[:, layout.payload] = 1
    plain[:, layout.payload] = count - 1
    whole = np.concatenate([rest, plain, *out])
    found: Words = whole[whole[:, layout.payload] != 0]
    return found


def _is_null(column: Placed, rows: Words) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (rows[:, column.null_word] >> column.null_bit) & 1 != 0
    return found


def _greatest(column: Placed) -> int:
    if pa.types.is_decimal(column.dtype):
        return int(10**column.dtype.precision) - 1
    return int((1 << (column.dtype.bit_width - 1)) - 1)


def _least(column: Placed) -> int:
    return -_greatest(column) - (not pa.types.is_decimal(column.dtype))
