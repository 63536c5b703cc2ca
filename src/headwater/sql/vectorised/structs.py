"""Structs: taking a field out, which is null where the struct is, and making one."""

from __future__ import annotations

import pyarrow as pa

from headwater.sql.nodes import Call
from headwater.sql.vectorised.frame import Frame, Kernel
from headwater.sql.vectorised.texts import literal
from headwater.sql.vectorised.vector import Operand, Vector, dense, inner, vector_of

__all__ = ["OPERATORS", "field_vector"]


def field_vector(array: pa.StructArray, name: str, dtype: pa.DataType) -> Vector:
    """A field of a column of structs, with the nulls of both.

    >>> field_vector(pa.array([{"a": 1}, None]), "a", pa.int64()).valid.tolist()
    [True, False]
    """
    found = array.flatten()[array.type.get_field_index(name)]
    vector = inner(vector_of(found))
    vector.dtype = dtype
    return vector


def _field(node: Call) -> Kernel | None:
    name, dtype = literal(node.args[1], str), node.dtype
    if name is None or not pa.types.is_struct(node.args[0].dtype):
        return None
    return lambda _, a, __: field_vector(a.values, name, dtype)


def _struct(node: Call) -> Kernel | None:
    fields = list(node.dtype)

    def kernel(frame: Frame, *args: Operand) -> Operand:
        parts = [dense(a, frame.rows).to_arrow() for a in args[1::2]]
        return Vector(node.dtype, pa.StructArray.from_arrays(parts, fields=fields))

    return kernel


OPERATORS = {"field": _field, "named_struct": _struct}
