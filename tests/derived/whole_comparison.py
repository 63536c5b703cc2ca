"""The oracle of comparisons: both sides whole, in memory, with no hash and no digest.

Rows are compared as multisets, bit for bit. What is left over is sorted on both sides by the columns that are not floats and then by the floats,
and rows that come together are a pair if the former are equal and the latter agree within a billionth.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.change import ChangeBatch

TOLERANCE = 1e-9


def compare_whole(expected: pa.Table, actual: pa.Table) -> tuple[ChangeBatch, ChangeBatch]:
    """The rows that are missing, and those that are too many."""
    difference = ChangeBatch.diff(expected, actual)
    missing, extra = difference.deleted(), difference.inserted()
    floats = [f.name for f in expected.schema if pa.types.is_floating(f.type)]
    if difference.num_rows and floats:
        left, right = _unmatched(missing, extra, floats)
        missing, extra = rowkey.take_rows(missing, left), rowkey.take_rows(extra, right)
    return ChangeBatch.from_rows(missing).consolidate(), ChangeBatch.from_rows(extra).consolidate()


def _unmatched(missing: pa.Table, extra: pa.Table, floats: list[str]) -> tuple[npt.NDArray[np.int64], ...]:
    plain = [n for n in missing.schema.names if n not in floats]
    rows = missing.num_rows
    both = pa.concat_tables([missing, extra.cast(missing.schema)])
    group = rowkey.row_codes(both.select(plain)).ids if plain else np.zeros(both.num_rows, dtype=np.int64)
    numbers = [_numbers(both[name]) for name in floats]
    order = np.lexsort((*reversed(numbers), group))
    left, right = order[order < rows].tolist(), order[order >= rows].tolist()
    alone = np.ones(both.num_rows, dtype=bool)
    by_group: dict[int, list[int]] = {}
    for row in right:
        by_group.setdefault(int(group[row]), []).append(row)
    for queue in by_group.values():
        queue.reverse()
    for row in left:
        queue = by_group.get(int(group[row]), [])
        if queue:
            partner = queue.pop()
            if all(close(float(n[row]), float(n[partner])) for n in numbers):
                alone[row] = alone[partner] = False
    return np.flatnonzero(alone[:rows]), np.flatnonzero(alone[rows:])


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    plain = column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(column.is_null().to_numpy(zero_copy_only=False), -1.2345678e-300, plain)


def close(a: float, b: float) -> bool:
    """Whether two floats are the same but for their last digits."""
    if a == b or (np.isnan(a) and np.isnan(b)):
        return True
    with np.errstate(over="ignore"):
        return bool(np.isfinite(a) and np.isfinite(b) and abs(a - b) <= TOLERANCE * max(abs(a), abs(b)))
