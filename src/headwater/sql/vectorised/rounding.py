"""round, ceil, floor and rint.

Spark rounds the decimal digits that a double prints, not its binary value: 2.675 becomes 2.68. A scaled double is
within one unit in the last place of those digits, so wherever it is not next to a half, the nearest whole number is the
answer; the few rows next to a half are asked of the Python function that DuckDB's path calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.functions.numeric import half_up
from headwater.sql.nodes import Call, Literal
from headwater.sql.types import DOUBLE, LONG, family
from headwater.sql.udfs import Failed
from headwater.sql.vectorised.frame import Frame, Kernel, RowFailed, count_true
from headwater.sql.vectorised.vector import Operand, Vector

__all__ = ["OPERATORS"]

_LIMIT = 9e18
_WHOLE = 4503599627370496.0
_MARK = "headwater!"


def _whole(op: str) -> Callable[[Call], Kernel | None]:
    body: Callable[[Any], Any] = np.ceil if op == "ceil" else np.floor

    def build(node: Call) -> Kernel | None:
        given = node.args[0].dtype
        if given == DOUBLE and node.dtype == LONG:

            def of_double(frame: Frame, a: Operand) -> Operand:
                bad = ~(np.abs(a.values) <= _LIMIT)
                if count_true(bad):
                    frame.check(bad, a.valid, f"{op}() of a number outside bigint")
                return Vector(LONG, body(a.values).astype(np.int64), a.valid)

            return of_double
        if not pa.types.is_decimal(given):
            return None
        unit, dtype = 10**given.scale, node.dtype

        def of_decimal(_: Frame, a: Operand) -> Operand:
            x = a.values if unit < 1 << 63 else a.values.astype(object)
            return Vector(dtype, -(-x // unit) if op == "ceil" else x // unit, a.valid)

        return of_decimal

    return build


def _round(node: Call) -> Kernel | None:
    places = node.args[1]
    if node.dtype != DOUBLE or not isinstance(places, Literal) or not isinstance(places.value, int):
        return None
    count = places.value
    if not 0 <= count <= 12:
        return None
    unit, bound = 10.0**count, 10.0 ** (15 - count)

    def kernel(frame: Frame, a: Operand, _: Operand) -> Operand:
        x = a.values
        size = np.abs(x)
        scaled = size * unit
        floor = np.floor(scaled)
        gone = scaled - floor
        found = np.copysign((floor + (gone > 0.5)) / unit, x) + 0.0
        # Twice the error of the product and of the digits that are printed, and a little for what is denormal.
        near = np.abs(gone - 0.5) <= scaled * 2**-50 + 1e-300
        near |= ~(size < bound)
        if count_true(near):
            counted = frame.counted(a.valid)
            found = _asked(found, x, near if counted is None else near & counted, count)
        return Vector(DOUBLE, found, a.valid)

    return kernel


def _asked(found: Any, x: Any, near: Any, places: int) -> Any:
    for row in np.flatnonzero(near).tolist():
        value = float(x[row])
        if value != value or abs(value) >= _WHOLE:
            found[row] = value
            continue
        try:
            found[row] = half_up(value, places)
        except Failed as failed:
            raise RowFailed(row, str(failed).removeprefix(_MARK)) from None
    return found


def _rint(_: Call) -> Kernel:
    return lambda _, a: Vector(DOUBLE, np.rint(a.values), a.valid)


def _sign(node: Call) -> Kernel | None:
    def kernel(_: Frame, a: Operand) -> Operand:
        x = a.values
        return Vector(DOUBLE, np.where(x > 0, 1.0, np.where(x < 0, -1.0, x)), a.valid)

    return kernel if family(node.args[0].dtype) == "float" else None


OPERATORS = {"ceil": _whole("ceil"), "floor": _whole("floor"), "round": _round, "rint": _rint, "sign": _sign}
