"""Values of rows, computed for all rows before the search: what fails is marked, and fails when it is asked for.

A condition may divide by the price of rows that no way of the search ever comes to. Spark would compute it for none of
them, so an error here is only a mark at the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.sql.matching.rows import SortedRows, columns_seen, seen_from
from headwater.sql.nodes import Node
from headwater.sql.vectorised import Program, Vector, compile_expression, vector_of

__all__ = ["FINE", "NO_VALUE", "UNKNOWN", "RowValue"]

FINE, NO_VALUE, UNKNOWN = 0, 1, 2
_BLOCK = 4096


@dataclass(frozen=True)
class RowValue:
    """An expression of one row and its neighbours, compiled."""

    program: Program
    schema: pa.Schema
    read: frozenset[tuple[int, str]]

    @classmethod
    def of(cls, node: Node, dtypes: dict[str, pa.DataType]) -> RowValue:
        """``node`` holds values of rows near one row; ``dtypes`` has the types of the columns."""
        plain, read = seen_from(node)
        names = columns_seen(_nothing(dtypes), read, np.zeros(0, np.int64))
        schema = pa.schema([(name, column.type) for name, column in names.items()])
        return cls(compile_expression(plain, schema), schema, read)

    def run(self, rows: SortedRows) -> tuple[Any, npt.NDArray[np.uint8]]:
        """A value for each row, and one more for "no row"; beside it whether it is fine, null or unknown.

        Values of types that fit a word come as numpy arrays, others as an Arrow array.
        """
        places = np.append(np.arange(len(rows)), -1)
        found = columns_seen(rows, self.read, places)
        columns = [vector_of(found[name]) for name in self.schema.names]
        try:
            vector = self.program.run(columns, len(places))
            unknown = np.zeros(0, np.int64)
        except ExpressionError:
            vector, unknown = self._in_blocks(columns, len(places))
        marks = np.zeros(len(places), np.uint8)
        if isinstance(vector.values, pa.Array):
            marks[vector.values.is_null().to_numpy(zero_copy_only=False)] = NO_VALUE
        if vector.valid is not None:
            marks[~vector.valid] = NO_VALUE
        marks[unknown] = UNKNOWN
        return vector.values, marks

    def _in_blocks(self, columns: list[Vector], rows: int) -> tuple[Vector, npt.NDArray[np.int64]]:
        """Block by block: from the first row that fails, all of a block's rows are unknown."""
        pieces, unknown = [], []
        for start in range(0, rows, _BLOCK):
            end = min(start + _BLOCK, rows)
            stop = end
            try:
                pieces.append(self._part(columns, start, end))
                continue
            except ExpressionError as error:
                stop = start + int(error.row or 0)
            if stop > start:
                pieces.append(self._part(columns, start, stop))
            pieces.append(pa.nulls(end - stop, self.program.dtype))
            unknown.append(np.arange(stop, end))
        return vector_of(pa.concat_arrays(pieces)), np.concatenate(unknown)

    def _part(self, columns: list[Vector], start: int, end: int) -> pa.Array:
        cut = [Vector(v.dtype, v.values[start:end], None if v.valid is None else v.valid[start:end]) for v in columns]
        return self.program.run(cut, end - start).to_arrow()


def _nothing(dtypes: dict[str, pa.DataType]) -> SortedRows:
    table = pa.table({name: pa.array([], dtype) for name, dtype in dtypes.items()})
    return SortedRows(table, np.zeros(1, np.int64))
