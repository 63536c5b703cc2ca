"""Z-order: an order of rows in which near values of several columns lie near each other.

Sorted by one column, a table's files have narrow bounds for that column only. Along a Z-curve every chosen column
gets a share: a value becomes a number, the numbers' bits are interleaved, most significant first, and rows are
sorted by the result. A file then covers a small box in all the columns, and its minima and maxima let readers skip
it for a condition on any of them.

A column's number is its dense rank (equal values alike, nulls first), stretched over all the bits, so that skewed
values spread evenly. Up to three columns get 20 bits each, more get 16. Invariants: the answer is a permutation; it
depends on the order of the values only, not on their type or scale; rows with equal keys keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, NotFoundError, UnsupportedError

__all__ = ["order"]

_WORD = 64


def order(table: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """The rows' positions along the curve: ``table.take(order(table, columns))`` is the ordered table.

    >>> grid = pa.table({"x": [0, 0, 1, 1, 2, 2, 3, 3], "y": [0, 1, 0, 1, 0, 1, 0, 1]})
    >>> order(grid, ["y", "x"])
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> order(grid, ["x", "y"])
    array([0, 2, 1, 3, 4, 6, 5, 7])
    """
    if not columns:
        raise InputError.bad_argument("columns", list(columns), "at least one column")
    bits = 20 if len(columns) <= 3 else 16
    codes = [_code(table, column, bits) for column in columns]
    words = _interleave(codes, bits)
    if len(words) == 1:
        return np.argsort(words[0], kind="stable").astype(np.int64)
    return np.lexsort(words[::-1]).astype(np.int64)


def _code(table: pa.Table, column: str, bits: int) -> npt.NDArray[np.uint64]:
    """Each row's dense rank, stretched over ``bits`` bits."""
    if column not in table.schema.names:
        raise NotFoundError.column(column, table.schema.names)
    if not table.num_rows:
        return np.zeros(0, dtype=np.uint64)
    rank = _rank(table.column(column), column).astype(np.uint64)
    top = int(rank.max())
    # The first rank is 0 and the last all ones; one value alone has nothing to tell apart.
    return rank * np.uint64((1 << bits) - 1) // np.uint64(max(top, 1))


def _rank(values: pa.ChunkedArray, column: str) -> npt.NDArray[np.uint64]:
    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_null(kind):
        return np.zeros(len(values), dtype=np.uint64)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    try:
        rank = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy().copy()
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        hint = "order by columns of numbers, texts, dates or times"
        raise UnsupportedError.column_type(column, str(kind), hint) from e
    ranks: npt.NDArray[np.uint64] = rank  # they count from one, so zero is free for nulls
    if not values.null_count:
        return ranks - np.uint64(1)
    ranks[values.is_null().to_numpy()] = 0
    return ranks


def _interleave(codes: Sequence[npt.NDArray[np.uint64]], bits: int) -> list[npt.NDArray[np.uint64]]:
    """The codes' bits in turn, the highest first, packed in words that compare from first to last."""
    total = bits * len(codes)
    words = [np.zeros(len(codes[0]), dtype=np.uint64) for _ in range(-(-total // _WORD))]
    for place in range(total):
        level, which = divmod(place, len(codes))
        bit = (codes[which] >> np.uint64(bits - 1 - level)) & np.uint64(1)
        words[place // _WORD] |= bit << np.uint64(_WORD - 1 - place % _WORD)
    return words
