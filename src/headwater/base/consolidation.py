"""Consolidation of a table that is at hand: each row once, with its weights added up, and none of weight zero.

This is the Z-set's normal form, and what `ChangeBatch` is compared, applied and handed on in. Rows are numbered by
their exact values (`rowkey`: bit for bit, so 0.0 is not -0.0, NaN is NaN, null is null, at any depth), and the weights
of a number are summed. It takes a few times the memory of the table.

Three things are called consolidation in this code base, and they stay three because they work on different things:

- tables in memory: here, with numpy and Arrow alone, since `base` starts no engine;
- streams of Arrow batches of any size: `lake/consolidation.py`, which uses this for what fits in memory and DuckDB,
  which spills to disk, for the rest; a property test holds both to the same plain Python answer;
- the circuit's Z-sets (`incremental/zset.py`): rows packed into 64-bit words. Their consolidation also sorts by (hash
  of the key, key, order, rest) and fills the directory of a run, in one compiled pass, because runs are merged and
  searched in that order. Sorting an Arrow table by packing it first would cost more than numbering its rows, and would
  need the compiled kernels where today nothing but Arrow is loaded.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.errors import ConstraintError

__all__ = ["consolidate_table"]

Weights = npt.NDArray[np.int64]


def consolidate_table(table: pa.Table) -> pa.Table:
    """``table``, whose last column is the weight (int64, without nulls), consolidated, in order of first appearance.

    >>> consolidate_table(pa.table({"x": [0.0, -0.0, 0.0, 1.0, 1.0], "w": [1, 1, 2, 1, -1]})).to_pylist()
    [{'x': 0.0, 'w': 3}, {'x': -0.0, 'w': 1}]
    """
    last = table.num_columns - 1
    weights: Weights = table.column(last).to_numpy()
    rows = table.remove_column(last)
    codes = rowkey.row_codes(rows)
    totals = weights if codes.all_distinct else _sum_by_code(codes, weights)
    keep = totals != 0
    if codes.all_distinct and keep.all():
        return table
    kept = rowkey.take_rows(rows, codes.first_rows()[keep])
    return pa.Table.from_arrays([*kept.columns, pa.array(totals[keep])], schema=table.schema)


def _sum_by_code(codes: rowkey.Codes, weights: Weights) -> Weights:
    totals = np.zeros(codes.bound, dtype=np.int64)
    largest = max(abs(int(weights.max(initial=0))), abs(int(weights.min(initial=0))))
    if largest * len(weights) < 1 << 63:
        np.add.at(totals, codes.ids, weights)
        return totals
    # Some sum might overflow, so add the upper and lower halves apart: neither can, for fewer than 2**31 rows.
    high = np.zeros(codes.bound, dtype=np.int64)
    np.add.at(high, codes.ids, weights >> 32)
    np.add.at(totals, codes.ids, weights & 0xFFFF_FFFF)
    high += totals >> 32
    if (high > 0x7FFF_FFFF).any() or (high < -0x8000_0000).any():
        raise ConstraintError.weight_overflow()
    return (high << 32) | (totals & 0xFFFF_FFFF)
