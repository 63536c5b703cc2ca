"""Numbers as texts in other bases and with separators: bin, conv, format_number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from headwater.base.schema import duckdb_type
from headwater.sql.functions.function import Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.java_numbers import java_text
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import STRING, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WIDE = Context(prec=400)
_UNSIGNED = 1 << 64


def _binary(value: int) -> str:
    return format(value % _UNSIGNED, "b")


def _converted(text: str, source: int, target: int) -> str | None:
    if not 2 <= source <= 36 or not 2 <= abs(target) <= 36:
        return None
    text = text.strip(" ")
    if not text:
        return None
    negative = text.startswith("-")
    value = 0
    for char in text[negative:]:
        digit = _DIGITS.find(char.upper()) if char.isascii() else -1
        if not 0 <= digit < source:
            break
        value = value * source + digit
        if value >= _UNSIGNED:
            raise Failed("conv() of a number beyond 64 bits")
    # Spark holds the number in a signed long, with what follows from that.
    above = value >= _UNSIGNED >> 1
    if negative and target > 0:
        value = (-1 if above else -value) % _UNSIGNED
    elif target < 0 and above:
        value, negative = _UNSIGNED - value, True
    out = ""
    while value:
        value, digit = divmod(value, abs(target))
        out = _DIGITS[digit] + out
    return ("-" if negative and target < 0 else "") + (out or "0")


def _separated(value: Any, places: int) -> str | None:
    if places < 0:
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        text = java_text(value)
        if text is None:
            raise Failed(f"the digits of {value!r} depend on the version of Java")
        # The digits that are printed, and zeros after them; rounding looks at the exact value.
        known = Decimal(text)
        exponent = known.as_tuple().exponent
        value = value if isinstance(exponent, int) and places < -exponent else known
    number = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN, _WIDE)
    return format(number, f",.{places}f")


_BIN = define("bin", "BIGINT", STRING, _binary)
_CONV = define("conv", "VARCHAR INTEGER INTEGER", STRING, _converted)


def _format_number(args: Sequence[Node]) -> Node:
    value = args[0]
    if family(value.dtype) not in ("integer", "float", "decimal"):
        raise Refused(f"format_number() of {name_of(value.dtype)}", "cast it to a number first")
    if family(args[1].dtype) != "integer":
        raise Refused("format_number() with a pattern", "give the number of decimal places")
    if isinstance(args[1], Literal) and not isinstance(args[1].value, int):
        raise Refused("format_number() to a null", "give the number of decimal places")
    return call("format_number", (value, argument("i", args[1], "format_number")), STRING, fallible=True)


def _format_form(node: Call, a: list[str]) -> str:
    given = node.args[0].dtype
    name = duckdb_type(given)
    signature = name.lower().replace("(", "_").replace(")", "").replace(",", "_")
    body: Callable[..., Any] = _separated
    return f"{define(f'format_number_{signature}', f'{name} INTEGER', STRING, body)}({a[0]}, {a[1]})"


_FORM: Form = _format_form
FUNCTIONS: tuple[Function, ...] = (
    simple("bin", "numeric", "l", STRING, f"{_BIN}({{0}})"),
    simple("conv", "numeric", "sii", STRING, f"{_CONV}({{0}}, {{1}}, {{2}})", fallible=True),
    Function("format_number", "string", _format_number, 2, 2, {"format_number": _FORM}),
)
