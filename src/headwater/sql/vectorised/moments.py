"""Timestamps: clock parts, truncation, steps of months and microseconds, counts of seconds since 1970, all in UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headwater.sql.nodes import Call, Literal
from headwater.sql.types import INT, LONG, TIMESTAMP, TIMESTAMP_NTZ, family
from headwater.sql.vectorised.calendar import days_of_months, months_of_days, truncated_days
from headwater.sql.vectorised.frame import OVERFLOW, Frame, Kernel, both
from headwater.sql.vectorised.integers import outside, quotient
from headwater.sql.vectorised.moment_casts import DAY
from headwater.sql.vectorised.vector import Operand, Vector

__all__ = ["OPERATORS"]

_MOST = (1 << 63) - 1
_FARTHEST_DAY = _MOST // DAY
_MOST_DAYS = (1 << 31) - 2
_SECOND = np.int64(1_000_000)
_FINE = {
    "day": DAY,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_CLOCK = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}


def _is_endless(micros: Any) -> Any:
    """DuckDB takes these two for infinities, and refuses them."""
    return np.abs(micros) == _MOST


def _clock(node: Call) -> Kernel:
    unit, cycle = _CLOCK[node.op]
    return lambda _, a: Vector(INT, a.values // unit % cycle, a.valid)


def _second(node: Call) -> Kernel:
    dtype = node.dtype
    return lambda _, a: Vector(dtype, a.values % 60_000_000, a.valid)


def _truncated(node: Call) -> Kernel | None:
    unit = node.args[1]
    if not isinstance(unit, Literal) or not isinstance(unit.value, str):
        return None
    if unit.value in _FINE:
        size = _FINE[unit.value]
        if size == 1:
            return lambda _, a, __: a
        return lambda _, a, __: Vector(TIMESTAMP_NTZ, a.values // size * size, a.valid)
    body = truncated_days(unit.value)
    return lambda _, a, __: Vector(TIMESTAMP_NTZ, body(a.values // DAY) * DAY, a.valid)


def _months_later(days: Any, count: Any) -> Any:
    months = months_of_days(days)
    day = days - days_of_months(months)
    first = days_of_months(months + count)
    last = days_of_months(months + count + 1) - first - 1
    return first + np.minimum(day, last)


def _add_months(node: Call) -> Kernel:
    dtype, date = node.dtype, family(node.dtype) == "date"
    most = _MOST_DAYS if date else _FARTHEST_DAY - 1

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        given = np.full(frame.rows, a.values) if isinstance(a.values, np.int64) else a.values
        days = given if date else given // DAY
        found = _months_later(days, b.values)
        frame.check(outside(found, -most, most), valid, OVERFLOW)
        return Vector(dtype, found if date else found * DAY + given % DAY, valid)

    return kernel


def _add_micros(node: Call) -> Kernel:
    dtype = node.dtype

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid, x, y = both(a.valid, b.valid), a.values, b.values
        found = x + y
        frame.check((((x ^ found) & (y ^ found)) < 0) | _is_endless(found), valid, OVERFLOW)
        return Vector(dtype, found, valid)

    return kernel


def _difference(_: Call) -> Kernel:
    def kernel(frame: Frame, a: Operand, b: Operand, size: Operand) -> Operand:
        valid, x, y = both(a.valid, b.valid), b.values, a.values
        gone = x - y
        frame.check(((x ^ y) & (x ^ gone)) < 0, valid, OVERFLOW)
        return Vector(LONG, quotient(gone, size.values), valid)

    return kernel


def _floored(unit: int) -> Callable[[Call], Kernel]:
    return lambda _: lambda _, a: Vector(LONG, a.values // unit if unit > 1 else a.values, a.valid)


def _seconds(_: Call) -> Kernel:
    # Unlike unix_seconds, this cuts towards 1970.
    return lambda _, a: Vector(LONG, quotient(a.values, _SECOND), a.valid)


def _from_count(unit: int) -> Callable[[Call], Kernel | None]:
    most = _MOST // unit

    def build(node: Call) -> Kernel | None:
        if family(node.args[0].dtype) != "integer":
            return None

        def kernel(frame: Frame, a: Operand) -> Operand:
            frame.check(outside(a.values, -most, most) if unit > 1 else _is_endless(a.values), a.valid, OVERFLOW)
            return Vector(TIMESTAMP, a.values * unit, a.valid)

        return kernel

    return build


OPERATORS = {
    **dict.fromkeys(_CLOCK, _clock),
    "second with fraction": _second,
    "trunc time": _truncated,
    "add months": _add_months,
    "add micros": _add_micros,
    "timestampdiff": _difference,
    "unix_seconds": _floored(1_000_000),
    "unix_millis": _floored(1_000),
    "unix_micros": _floored(1),
    "unix_timestamp": _seconds,
    "timestamp_seconds": _from_count(1_000_000),
    "timestamp_millis": _from_count(1_000),
    "timestamp_micros": _from_count(1),
}
