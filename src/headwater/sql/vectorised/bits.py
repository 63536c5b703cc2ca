"""Bits of whole numbers: ``& | ^ ~``, shifts modulo the width as in Java, and bit_count."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from headwater.sql.nodes import Call
from headwater.sql.types import INT, LONG
from headwater.sql.vectorised.frame import Kernel, both
from headwater.sql.vectorised.vector import Vector

__all__ = ["OPERATORS"]

# The sign of a narrow number fills its int64, so these need not know the width.
_TWO: dict[str, Callable[[Any, Any], Any]] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


def _two(node: Call) -> Kernel:
    body, dtype = _TWO[node.op], node.dtype
    return lambda _, a, b: Vector(dtype, body(a.values, b.values), both(a.valid, b.valid))


def _inverted(node: Call) -> Kernel:
    dtype = node.dtype
    return lambda _, a: Vector(dtype, ~a.values, a.valid)


def _counted(_: Call) -> Kernel:
    def count(values: Any) -> Any:
        return np.bitwise_count(values.astype(np.uint64)).astype(np.int64)

    return lambda _, a: Vector(INT, count(a.values), a.valid)


def _shift(node: Call) -> Kernel:
    op, dtype = node.op, node.dtype
    wide = dtype == LONG
    mask = 63 if wide else 31

    def shifted(x: Any, count: Any) -> Any:
        by = count & mask
        if op == "shiftright":
            return x >> by
        if op == "shiftleft":
            found = x << by
        elif wide:
            return (np.asarray(x).astype(np.uint64) >> np.asarray(by).astype(np.uint64)).view(np.int64)
        else:
            found = (x & 0xFFFFFFFF) >> by
        return found if wide else found.astype(np.int32).astype(np.int64)

    return lambda _, a, b: Vector(dtype, shifted(a.values, b.values), both(a.valid, b.valid))


OPERATORS = {
    **dict.fromkeys(_TWO, _two),
    "~": _inverted,
    "bit_count": _counted,
    **dict.fromkeys(("shiftleft", "shiftright", "shiftrightunsigned"), _shift),
}
