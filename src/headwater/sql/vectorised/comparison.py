"""Comparisons: ``= != < <= > >= <=>``, with NaN equal to itself and greater than all, and zeros without a sign.

numpy says of NaN that every comparison but ``!=`` is false. Against a constant the negated comparison says it right
(``a > c`` is ``not a <= c``), between columns the NaNs are looked for. Texts and binaries are compared by their bytes,
which is the order of their characters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Call
from headwater.sql.types import BOOLEAN, family
from headwater.sql.vectorised.frame import Frame, Kernel, both
from headwater.sql.vectorised.vector import Constant, Operand, Vector, is_arrow, nulls, unpacked, validity

__all__ = ["OPERATORS", "comparing", "logical_values"]

Body = Callable[[Any, Any], Any]
_PLAIN: dict[str, Body] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARROW = {
    op: pc.get_function(name)
    for op, name in {
        "=": "equal",
        "!=": "not_equal",
        "<": "less",
        "<=": "less_equal",
        ">": "greater",
        ">=": "greater_equal",
    }.items()
}


def logical_values(array: pa.Array) -> Vector:
    """An Arrow array of booleans as a vector."""
    rows = len(array)
    bitmap, data = array.buffers()
    valid = None if array.null_count == 0 else unpacked(bitmap, array.offset, rows)
    return Vector(BOOLEAN, unpacked(data, array.offset, rows), valid)


def _less(x: Any, y: Any) -> Any:
    if isinstance(y, float):
        return x < y if y == y else x == x
    if isinstance(x, float):
        return ~(y <= x) if x == x else np.zeros(len(y), np.bool_)
    return ~(x >= y) & (x == x)


def _at_most(x: Any, y: Any) -> Any:
    if isinstance(y, float):
        return x <= y if y == y else np.ones(len(x), np.bool_)
    if isinstance(x, float):
        return ~(y < x) if x == x else y != y
    return (x <= y) | (y != y)


def _same(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        x, y = y, x
    if isinstance(y, float):
        return x == y if y == y else x != x
    return (x == y) | ((x != x) & (y != y))


_FLOAT: dict[str, Body] = {
    "=": _same,
    "!=": lambda x, y: ~_same(x, y),
    "<": _less,
    "<=": _at_most,
    ">": lambda x, y: _less(y, x),
    ">=": lambda x, y: _at_most(y, x),
}


def _single(value: Any) -> Any:
    # float32 constants are numpy's; as Python's floats they are told from columns, and compare exactly all the same.
    return float(value) if isinstance(value, np.float32) else value


def comparing(op: str, dtype: pa.DataType) -> Body | None:
    """The comparison of the values of two operands of one type, for types that are numpy arrays."""
    if is_arrow(dtype):
        return None
    if dtype == pa.float32():
        body = _FLOAT[op]
        return lambda x, y: body(_single(x), _single(y))
    return _FLOAT[op] if family(dtype) == "float" else _PLAIN[op]


def _kernel(op: str, dtype: pa.DataType) -> Kernel | None:
    body = comparing(op, dtype)
    if body is not None:
        compare = body
        return lambda _, a, b: Vector(BOOLEAN, compare(a.values, b.values), both(a.valid, b.valid))
    if dtype == pa.null():
        return lambda frame, *_: nulls(BOOLEAN, frame.rows)
    if family(dtype) not in ("string", "binary"):
        return None
    function = _ARROW[op]
    return lambda _, a, b: logical_values(function.call([a.values, b.values]))


def _safe_kernel(dtype: pa.DataType) -> Kernel | None:
    equal = _kernel("=", dtype)
    if equal is None:
        return None
    compare = equal

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        none = [x for x in (a, b) if isinstance(x, Constant) and x.values is None]
        if none:
            other = b if none[0] is a else a
            if isinstance(other, Constant):
                return Constant(BOOLEAN, other.values is None)
            valid = validity(other)
            return Vector(BOOLEAN, np.zeros(frame.rows, np.bool_) if valid is None else ~valid)
        found = compare(frame, a, b)
        if found.valid is None:
            return found
        left, right = validity(a), validity(b)
        both_null = None if left is None or right is None else ~(left | right)
        same = found.values & found.valid
        return Vector(BOOLEAN, same if both_null is None else same | both_null)

    return kernel


def _build(node: Call) -> Kernel | None:
    return _kernel(node.op, node.args[0].dtype)


OPERATORS = {**dict.fromkeys(_PLAIN, _build), "<=>": lambda node: _safe_kernel(node.args[0].dtype)}
