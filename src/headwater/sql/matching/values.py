"""Values of rows, computed for all rows before the search: what fails is marked, and fails when it is asked for.

A condition may divide by the price of rows that no way of the search ever comes to. Spark would compute it for none of
them, so an error here is only a mark at the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.sql.matching.rows import THERE, SortedRows, seen_from, shifted_name
from headwater.sql.nodes import Node
from headwater.sql.vectorised import Program, Vector, compile_expression, vector_of
from headwater.sql.vectorised.vector import is_arrow

__all__ = ["FINE", "NO_VALUE", "UNKNOWN", "RowValue"]

FINE, NO_VALUE, UNKNOWN = 0, 1, 2
_BLOCK = 4096


@dataclass(frozen=True)
class RowValue:
    """An expression of one row and its neighbours, compiled."""

    program: Program
    schema: pa.Schema
    read: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, node: Node, dtypes: dict[str, pa.DataType]) -> RowValue:
        """``node`` holds values of rows near one row; ``dtypes`` has the types of the columns."""
        plain, found = seen_from(node)
        read = tuple(sorted(found))
        types = [(shifted_name(shift, name), pa.bool_() if name == THERE else dtypes[name]) for shift, name in read]
        schema = pa.schema(types)
        return cls(compile_expression(plain, schema), schema, read)

    def run(self, rows: SortedRows) -> tuple[Any, npt.NDArray[np.uint8]]:
        """A value for each row, and one more for "no row"; beside it whether it is fine, null or unknown.

        Values of types that fit a word come as numpy arrays, others as an Arrow array.
        """
        columns = [rows.seen(shift, name) for shift, name in self.read]
        try:
            vector = self.program.run(columns, len(rows))
            unknown = np.zeros(0, np.int64)
        except ExpressionError:
            vector, unknown = self._in_blocks(columns, len(rows))
        nobody, no_mark = self._of_no_row
        marks = np.zeros(len(rows) + 1, np.uint8)
        marks[-1] = no_mark
        if isinstance(vector.values, pa.Array):
            if vector.values.null_count:
                marks[:-1][vector.values.is_null().to_numpy(zero_copy_only=False)] = NO_VALUE
            values: Any = pa.concat_arrays([vector.values, nobody])
        else:
            values = np.append(vector.values, np.zeros(1, vector.values.dtype) if no_mark else nobody)
        if vector.valid is not None:
            marks[:-1][~vector.valid] = NO_VALUE
        marks[unknown] = UNKNOWN
        return values, marks

    @cached_property
    def _of_no_row(self) -> tuple[Any, int]:
        """The value where there is no row, in the form of `run`, and its mark."""
        columns = [
            vector_of(pa.array([False])) if name == THERE else vector_of(pa.nulls(1, f.type))
            for f, (_, name) in zip(self.schema, self.read, strict=True)
        ]
        try:
            vector = self.program.run(columns, 1)
        except ExpressionError:
            return np.zeros(1, np.int64) if not is_arrow(self.program.dtype) else pa.nulls(
                1, self.program.dtype
            ), UNKNOWN
        array = vector.to_arrow()
        mark = NO_VALUE if array.null_count else FINE
        return (vector.values, mark)

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
