"""Intervals out of numbers, and what is computed with their microseconds and months.

Java rounds a quotient half away from zero; a double that is no number, or too large, is an error; decimals are computed
with 38 digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import Form, Function
from headwater.sql.functions.typing import argument
from headwater.sql.interval_types import DAY_UNITS, interval_named
from headwater.sql.intervals.texts import Unreadable, interval_of_text, text_of_interval
from headwater.sql.intervals.values import made, whole
from headwater.sql.nodes import Literal, Node
from headwater.sql.types import INT, LONG, NULL, STRING, family
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_OVERFLOW = "a number does not fit its type (overflow)"
_SECONDS = pa.decimal128(18, 6)
_JAVA, _EXACT = Context(prec=38, rounding=ROUND_HALF_UP), Context(prec=120)


def _fitting(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise Failed(_OVERFLOW)
    return value


def _half_up(value: float) -> int:
    if not math.isfinite(value):
        raise Failed("an interval times or through a number that is none, or has no end")
    near = round(value)  # to the even one of two neighbours
    return _fitting(int(value + math.copysign(0.5, value)) if abs(value - near) == 0.5 else near)


def _rounded(value: Decimal) -> int:
    return _fitting(int(value.quantize(Decimal(1), ROUND_HALF_UP, _EXACT)))


def _times(number: int, factor: str) -> int:
    return _rounded(_JAVA.multiply(Decimal(number), Decimal(factor)))


def _through(number: int, divisor: str) -> int:
    by = Decimal(divisor)
    if not by:
        raise Failed("division by zero")
    return _rounded(_EXACT.divide(Decimal(number), by))


def _text(number: int, name: str) -> str:
    return text_of_interval(number, interval_named(name))


def _of_text(text: str, name: str) -> int:
    try:
        return interval_of_text(text, interval_named(name))
    except Unreadable as unreadable:
        raise Failed(str(unreadable)) from None


_SIGNED = "(CASE WHEN ({0} < 0) <> ({1} < 0) THEN -1 ELSE 1 END)"
_A, _B = "abs(CAST({0} AS HUGEINT))", "abs(CAST({1} AS HUGEINT))"
_FORMS: dict[str, Form] = {
    "half up": f"{define('half_up', 'DOUBLE', LONG, _half_up)}({{0}})",
    "half up /": (
        f"(CASE WHEN {{0}} IS NULL THEN NULL WHEN {{1}} = 0 THEN {raise_form('division by zero')} "
        f"ELSE CAST({_SIGNED} * ((2 * {_A} + {_B}) // (2 * {_B})) AS BIGINT) END)"
    ),
    "interval * decimal": f"{define('interval_times', 'BIGINT VARCHAR', LONG, _times)}({{0}}, {{1}})",
    "interval / decimal": f"{define('interval_through', 'BIGINT VARCHAR', LONG, _through)}({{0}}, {{1}})",
    "interval text": f"{define('interval_text', 'BIGINT VARCHAR', STRING, _text)}({{0}}, {{1}})",
    "interval of text": f"{define('interval_of_text', 'VARCHAR VARCHAR', LONG, _of_text)}({{0}}, {{1}})",
}


def _days(args: Sequence[Node]) -> Node:
    total: Node = Literal(0, LONG)
    for arg, unit in zip(args, ("day", "hour", "minute"), strict=False):
        count = cast(argument("i", arg, "make_dt_interval"), LONG)
        total = whole("+", total, whole("*", count, Literal(DAY_UNITS[unit], LONG)))
    if len(args) == 4:
        total = whole("+", _micros(args[3]), total)
    return made(total, of_days=True)


def _micros(node: Node) -> Node:
    from headwater.sql.operators import arithmetic

    given = cast(argument("i", node, "make_dt_interval"), INT) if node.dtype == NULL else node
    if family(given.dtype) not in ("integer", "decimal"):
        given = argument("d", given, "make_dt_interval")
    wide = cast(cast(given, _SECONDS), pa.decimal128(25, 6))  # DuckDB multiplies in the width of the wider side
    return cast(arithmetic("*", wide, Literal(DAY_UNITS["second"], INT)), LONG)


def _months(args: Sequence[Node]) -> Node:
    total: Node = Literal(0, LONG)
    for arg, size in zip(args, (12, 1), strict=False):
        count = cast(argument("i", arg, "make_ym_interval"), LONG)
        total = whole("+", total, whole("*", count, Literal(size, LONG)))
    return made(total, of_days=False)


FUNCTIONS: tuple[Function, ...] = (
    Function("make_dt_interval", "datetime", _days, 0, 4, _FORMS, note="days, hours, minutes, seconds"),
    Function("make_ym_interval", "datetime", _months, 0, 2, note="years, months"),
)
