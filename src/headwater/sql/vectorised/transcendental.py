"""Roots, powers, logarithms and angles, by the same functions of C that DuckDB calls, so that not a bit differs.

numpy has its own versions of most of them, which are faster and round otherwise; Arrow calls those of C. What Arrow has
not is left to DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Call
from headwater.sql.types import DOUBLE
from headwater.sql.vectorised.frame import Frame, Kernel, both, count_true
from headwater.sql.vectorised.vector import Mask, Operand, Vector

__all__ = ["OPERATORS"]

Body = Callable[[Any], Any]


def _of_c(name: str) -> Callable[..., Any]:
    function = pc.get_function(name)

    def call(*values: Any) -> Any:
        given = [pa.array(np.ascontiguousarray(v)) if isinstance(v, np.ndarray) else pa.scalar(v) for v in values]
        return np.asarray(function.call(given))

    return call


def _one(body: Body) -> Callable[[Call], Kernel]:
    return lambda _: lambda _, a: Vector(DOUBLE, body(a.values), a.valid)


def _finite(name: str, *, inverse: bool = False) -> Callable[[Call], Kernel]:
    """A function of an angle, and NaN where it is infinite."""
    function = _of_c(name)

    def body(x: Any) -> Any:
        safe = np.isfinite(x)
        found = function(np.where(safe, x, 0.0))
        return np.where(safe, 1.0 / found if inverse else found, np.nan)

    return _one(body)


def _within(name: str) -> Callable[[Call], Kernel]:
    function = _of_c(name)

    def body(x: Any) -> Any:
        inside = np.abs(x) <= 1
        return np.where(inside, function(np.where(inside, x, 0.0)), np.nan)

    return _one(body)


def _logarithm(name: str, divisor: float | None = None) -> Callable[[Call], Kernel]:
    """Null where there is none: of zero and of negative numbers."""
    function = _of_c(name)

    def kernel(_: Frame, a: Operand) -> Operand:
        x = a.values
        none: Mask = x <= 0
        if count_true(none):
            found, valid = function(np.where(none, 1.0, x)), both(a.valid, ~none)
        else:
            found, valid = function(x), a.valid
        return Vector(DOUBLE, found if divisor is None else found / divisor, valid)

    return lambda _: kernel


def _power(_: Call) -> Kernel:
    function = _of_c("power")

    def kernel(_: Frame, a: Operand, b: Operand) -> Operand:
        x, y = a.values, b.values
        found = function(x, y)
        # C says that 1 to any power is 1; Java says so only of numbers that are finite.
        odd = np.isnan(y) | ((np.abs(x) == 1) & np.isinf(y))
        if count_true(odd):
            found = np.where(odd, np.nan, found)
        return Vector(DOUBLE, found, both(a.valid, b.valid))

    return kernel


def _root(_: Call) -> Kernel:
    return lambda _, a: Vector(DOUBLE, np.sqrt(a.values), a.valid)


_LN2 = float(np.asarray(pc.ln(pa.array([2.0])))[0])
OPERATORS = {
    "sqrt": _root,
    "degrees": _one(lambda x: x * 57.29577951308232),
    "radians": _one(lambda x: x * 0.017453292519943295),
    "exp": _one(_of_c("exp")),
    "ln": _logarithm("ln"),
    "log10": _logarithm("log10"),
    "log2": _logarithm("ln", _LN2),
    "pow": _power,
    "sin": _finite("sin"),
    "cos": _finite("cos"),
    "tan": _finite("tan"),
    "sec": _finite("cos", inverse=True),
    "asin": _within("asin"),
    "acos": _within("acos"),
    "atan": _one(_of_c("atan")),
    "sinh": _one(_of_c("sinh")),
    "cosh": _one(_of_c("cosh")),
    "tanh": _one(_of_c("tanh")),
}
