"""Ties: rows of a partition that are equal by the order, put in the order of their other columns.

What a match gives must not depend on which engine sorted the rows, or how. To let engines sort by all columns would
double the price of the sort for the few rows that tie, so they sort by the partition and the order, and ties are put in
order here: ascending, column by column, nulls first and NaN last. Rows that are equal in all columns that are read are
interchangeable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Column, Node, call
from headwater.sql.types import is_comparable
from headwater.sql.vectorised import Vector, compile_expression, vector_of

__all__ = ["decides_here", "differing", "untied"]


def decides_here(dtype: pa.DataType) -> bool:
    """Whether values of a type are put in order here; nested ones that compare are left to the engines."""
    return bool(is_comparable(dtype)) and not pa.types.is_nested(dtype)


def differing(table: pa.Table, keys: Sequence[Node]) -> npt.NDArray[np.bool_]:
    """For each row but the first whether it differs from the one before in one of these columns, as Spark compares."""
    differs: Any = np.zeros(max(table.num_rows - 1, 0), bool)
    for key in keys:
        assert isinstance(key, Column) and len(key.path) == 1
        column = table.column(key.path[0])
        schema = pa.schema([("a", key.dtype), ("b", key.dtype)])
        same = call("<=>", (Column(None, ("a",), key.dtype), Column(None, ("b",), key.dtype)), pa.bool_())
        sides: list[Vector] = [vector_of(column.slice(0, len(differs))), vector_of(column.slice(1))]
        differs |= ~compile_expression(same, schema).run(sides, len(differs)).values
    found: npt.NDArray[np.bool_] = differs
    return found


def untied(table: pa.Table, keys: Sequence[Node]) -> pa.Table:
    """Sorted rows with those that agree in all ``keys`` in the order of their other columns.

    >>> rows = pa.table({"t": [1, 2, 2, 3], "v": [5, 7, 6, 1]})
    >>> untied(rows, [Column(None, ("t",), pa.int64())])["v"].to_pylist()
    [5, 6, 7, 1]
    """
    given = {key.path[0] for key in keys if isinstance(key, Column)}
    others = [f.name for f in table.schema if f.name not in given and decides_here(f.type) and f.name[0] != "\0"]
    if not others or table.num_rows < 2:
        return table
    same = ~differing(table, keys)
    if not same.any():
        return table
    tied = np.concatenate([same, [False]]) | np.concatenate([[False], same])
    at = np.flatnonzero(tied)
    group = np.cumsum(np.concatenate([[True], ~same]))[at]
    columns = {"group": pa.array(group)}
    for number, column in enumerate(table.select(others).take(pa.array(at)).columns):
        if column.null_count:
            columns[f"there {number}"] = column.is_valid()  # so that nulls come first
        columns[f"value {number}"] = column
    order = [(name, "ascending") for name in columns]
    places = np.arange(table.num_rows)
    places[at] = at[pc.sort_indices(pa.table(columns), order).to_numpy()]
    return table.take(pa.array(places))
