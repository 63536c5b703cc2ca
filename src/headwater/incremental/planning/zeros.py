"""Zeros: nested values as keys, with -0.0 made 0.0 inside of them, as Spark makes it before it compares keys.

Plain floats are made so by the operators themselves. A nested value is bytes to them, and different bytes are different
keys.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.types import has_float
from headwater.sql.vectorised import Program, Vector
from headwater.sql.vectorised.frame import Columns

__all__ = ["ZeroFree", "is_normal", "zero_free"]


def is_normal(dtype: pa.DataType) -> bool:
    """Are equal values of a nested type the same bytes? Plain types are looked after elsewhere.

    >>> is_normal(pa.list_(pa.int8())), is_normal(pa.struct([("x", pa.float64())])), is_normal(pa.float64())
    (True, False, True)
    """
    return not pa.types.is_nested(dtype) or not has_float(dtype)


def zero_free(array: pa.Array) -> pa.Array:
    """The same values without negative zeros.

    >>> zero_free(pa.array([[1.0, -0.0], None])).to_pylist()
    [[1.0, 0.0], None]
    """
    dtype = array.type
    if pa.types.is_floating(dtype):
        return pc.add(array, pa.scalar(0.0, dtype))
    if is_normal(dtype):
        return array
    nulls = pa.array(np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), dtype=np.bool_))
    if pa.types.is_struct(dtype):
        parts = [zero_free(array.field(i)) for i in range(dtype.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(dtype), mask=nulls)
    lists = array
    if pa.types.is_map(dtype):
        lists = array.cast(pa.list_(pa.struct([dtype.key_field, dtype.item_field])))
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, dtype=np.int32)
    offsets[1:] = np.cumsum(sizes)
    values = zero_free(lists.flatten())
    if not pa.types.is_map(dtype):
        return pa.ListArray.from_arrays(pa.array(offsets), values, type=dtype, mask=nulls)
    starts = pa.array(offsets, mask=np.append(nulls.to_numpy(zero_copy_only=False), False))
    return pa.MapArray.from_arrays(starts, values.field(0), values.field(1), type=dtype)


class ZeroFree(Program):
    """A program whose values have no negative zeros."""

    def run(self, columns: Columns, rows: int) -> Vector:
        found = super().run(columns, rows)
        return Vector(self.dtype, zero_free(found.to_arrow()), None)
