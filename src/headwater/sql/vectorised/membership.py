"""IN (list): by one search in a sorted table for numbers, by Arrow's hash for texts, item by item where an item is no
constant.

A value that is not found is null if one of the items is; a null value is null.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Call, Literal
from headwater.sql.types import BOOLEAN, family
from headwater.sql.vectorised.comparison import comparing, logical_values
from headwater.sql.vectorised.frame import Frame, Kernel
from headwater.sql.vectorised.vector import (
    Constant,
    Mask,
    Operand,
    Vector,
    constant_of,
    dense,
    is_wide,
    nulls,
    validity,
)

__all__ = ["OPERATORS"]

_FEW = 3


def _answered(found: Mask, valid: Mask | None, any_null: bool) -> Vector:
    if any_null:
        return Vector(BOOLEAN, found, found if valid is None else found & valid)
    return Vector(BOOLEAN, found, valid)


def _few(values: list[Any], dtype: pa.DataType, any_null: bool) -> Kernel | None:
    same = comparing("=", dtype)
    if same is None:
        return None
    compare = same

    def kernel(_: Frame, a: Operand, *__: Operand) -> Operand:
        found = compare(a.values, values[0])
        for value in values[1:]:
            found = found | compare(a.values, value)
        return _answered(found, a.valid, any_null)

    return kernel


def _table(values: list[Any], dtype: pa.DataType, any_null: bool) -> Kernel:
    floats = family(dtype) == "float"
    has_nan = floats and any(math.isnan(v) for v in values)
    kept = [v for v in values if not (floats and math.isnan(v))]
    kind = np.float32 if dtype == pa.float32() else np.float64 if floats else np.int64
    table = np.unique(np.array(kept, kind))

    def kernel(_: Frame, a: Operand, *__: Operand) -> Operand:
        found = table.take(table.searchsorted(a.values), mode="clip") == a.values
        if has_nan:
            found |= np.isnan(a.values)
        return _answered(found, a.valid, any_null)

    return kernel


def _texts(values: list[Any], dtype: pa.DataType, any_null: bool) -> Kernel:
    options = pc.SetLookupOptions(value_set=pa.array([v.as_py() for v in values], dtype), skip_nulls=True)
    is_in, equal = pc.get_function("is_in"), pc.get_function("equal")

    def kernel(_: Frame, a: Operand, *__: Operand) -> Operand:
        array = equal.call([a.values, values[0]]) if len(values) == 1 else is_in.call([a.values], options)
        return _answered(logical_values(array).values, validity(a), any_null)

    return kernel


def _one_by_one(dtype: pa.DataType) -> Kernel | None:
    same = comparing("=", dtype)
    if same is None and family(dtype) not in ("string", "binary"):
        return None
    arrow = pc.get_function("equal")

    def kernel(frame: Frame, a: Operand, *items: Operand) -> Operand:
        if a.values is None:
            return nulls(BOOLEAN, frame.rows)
        a = dense(a, frame.rows)
        true, maybe = np.zeros(frame.rows, np.bool_), np.zeros(frame.rows, np.bool_)
        for item in items:
            if isinstance(item, Constant) and item.values is None:
                maybe |= True
                continue
            if same is not None:
                found, valid = same(a.values, item.values), validity(item)
            else:
                compared = logical_values(arrow.call([a.values, item.values]))
                found, valid = compared.values, compared.valid
            true |= found if valid is None else found & valid
            if valid is not None:
                maybe |= ~valid
        valid = validity(a)
        known = true | ~maybe
        return Vector(BOOLEAN, true, known if valid is None else known & valid)

    return kernel


def _build(node: Call) -> Kernel | Constant | None:
    value, *items = node.args
    dtype = value.dtype
    if dtype == pa.null():
        return Constant(BOOLEAN, None)
    if isinstance(value, Literal) and value.value is None:
        return Constant(BOOLEAN, None)
    if not all(isinstance(i, Literal) for i in items):
        return _one_by_one(dtype)
    given = [constant_of(i.value, dtype).values for i in items if isinstance(i, Literal)]
    values = [v for v in given if v is not None]
    any_null = len(values) < len(given)
    kind = family(dtype)
    if not values:
        return Constant(BOOLEAN, None)
    if kind in ("string", "binary"):
        return _texts(values, dtype, any_null)
    if len(values) <= _FEW or kind == "boolean" or is_wide(dtype):
        return _few(values, dtype, any_null)
    return None if kind == "nested" else _table(values, dtype, any_null)


OPERATORS = {"in": _build}
