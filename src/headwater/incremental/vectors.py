"""Columns of rows as expressions take them, and their results back into words.

A column of fixed width is a view of the rows' words, strided and without a copy; one of variable length becomes an
Arrow array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.incremental.packing import pack_column, unpack_column
from headwater.sql.vectorised.vector import Vector

if TYPE_CHECKING:
    from headwater.incremental.layout import Placed
    from headwater.incremental.packing import Rows

__all__ = ["put_vector", "vector_at"]

_NAN = np.float64(np.nan).view(np.int64)


def vector_at(rows: Rows, placed: Placed) -> Vector:
    """One column of the rows."""
    if placed.words == 2:
        return Vector(placed.dtype, unpack_column(placed, rows), None)
    valid = None
    if placed.nullable:
        nulls = (rows[:, placed.null_word] >> placed.null_bit) & 1
        valid = nulls == 0 if nulls.any() else None
    words = rows[:, placed.word]
    if placed.kind == "bool":
        return Vector(placed.dtype, words != 0, valid)
    if placed.kind == "double":
        return Vector(placed.dtype, words.view(np.float64), valid)
    if placed.kind == "float":
        return Vector(placed.dtype, words.view(np.float64).astype(np.float32), valid)
    return Vector(placed.dtype, words, valid)


def put_vector(rows: Rows, placed: Placed, vector: Vector, owners: list[object]) -> None:
    """Fill the words of one column, which are zero, from a result of its type."""
    values = vector.values
    if isinstance(values, pa.Array) or placed.words == 2:
        pack_column(rows, placed, vector.to_arrow(), owners)
        return
    if placed.kind in {"double", "float"}:
        doubles = values.astype(np.float64)
        words = doubles.view(np.int64)
        nan = doubles != doubles
        if nan.any():
            words[nan] = _NAN
        rows[:, placed.word] = words
    else:
        rows[:, placed.word] = values
    if vector.valid is not None:
        nulls = ~vector.valid
        rows[nulls, placed.word] = 0
        rows[:, placed.null_word] |= nulls.astype(np.int64) << placed.null_bit
