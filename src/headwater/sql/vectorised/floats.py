"""Doubles and floats: ``+ - * / %``, minus, abs, sign and roots, by the rules of IEEE 754;
only a division by zero is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headwater.sql.nodes import Call
from headwater.sql.vectorised.frame import Frame, Kernel, both, count_true
from headwater.sql.vectorised.vector import Operand, Vector

__all__ = ["float_kernel"]

_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}
_DIVIDING: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "/": (np.divide, "division by zero"),
    "%": (np.fmod, "remainder by zero"),
}
_ONE: dict[str, Callable[[Any], Any]] = {"minus": np.negative, "abs": np.abs}


def float_kernel(node: Call) -> Kernel | None:
    """The kernel of an operator on floats of one type."""
    dtype, op = node.dtype, node.op
    if op in _TWO:
        two = _TWO[op]

        def kernel(_: Frame, a: Operand, b: Operand) -> Operand:
            return Vector(dtype, two(a.values, b.values), both(a.valid, b.valid))

        return kernel
    if op in _DIVIDING:
        divide, reason = _DIVIDING[op]

        def dividing(frame: Frame, a: Operand, b: Operand) -> Operand:
            valid, y = both(a.valid, b.valid), b.values
            if not isinstance(y, float) or y == 0:
                bad = y == 0
                if count_true(bad):
                    frame.check(np.broadcast_to(bad, frame.rows), valid, reason)
            return Vector(dtype, divide(a.values, y), valid)

        return dividing
    if op in _ONE:
        one = _ONE[op]
        return lambda _, a: Vector(dtype, one(a.values), a.valid)
    return None
