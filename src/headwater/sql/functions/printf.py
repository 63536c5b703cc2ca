"""format_string and printf: Java's formatter, as far as its directives are simple.

``%s`` prints texts, whole numbers, booleans, doubles and decimals as a cast to string would; ``%d`` and ``%x`` whole
numbers, ``%f`` doubles. A width may stand before the letter, with ``-`` for the left side or ``0`` for zeros before a
number; a precision only before ``f``. A null prints as ``null``. All else (``%e``, ``%,d``, ``%1$s``, dates, patterns
that are no constants) is refused.

Invariants: a width counts UTF-16 units, as Java does; ``%f`` rounds the digits that Java prints, half up; the few
doubles whose digits depend on the version of Java raise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast
from headwater.sql.functions.function import MANY, Builder, Function
from headwater.sql.functions.typing import constant
from headwater.sql.java_numbers import java_text
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import DOUBLE, STRING, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_DIRECTIVE = re.compile(r"%(?:(%)|([-0]?)([1-9][0-9]{0,2})?(?:\.([0-9]{1,2}))?([sdfxX]))")
_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_WIDE = Context(prec=400)
_HINT = "use %s, %d, %f and %x, with a width such as %5d or %.2f"
_TAKES = {"s": {"string", "integer", "boolean", "float", "decimal"}, "d": {"integer"}, "x": {"integer"}, "f": {"float"}}


@dataclass(frozen=True, slots=True)
class _Directive:
    """One ``%``; ``letter`` is ``%`` for the sign itself."""

    letter: str
    flag: str = ""
    width: int = 0
    precision: int = 6


@lru_cache(maxsize=256)
def _parsed(pattern: str) -> tuple[str | _Directive, ...]:
    """Texts and directives in turn."""
    parts: list[str | _Directive] = []
    at = 0
    for match in _DIRECTIVE.finditer(pattern):
        parts.append(pattern[at : match.start()])
        sign, flag, width, precision, letter = match.groups()
        if (flag and (not width or (flag == "0" and letter == "s"))) or (precision and letter != "f"):
            raise Refused(f"the directive `{match[0]}`", _HINT)
        wide, places = int(width or 0), 6 if precision is None else int(precision)
        parts.append(_Directive("%") if sign else _Directive(letter, flag or "", wide, places))
        at = match.end()
    parts.append(pattern[at:])
    if any(isinstance(p, str) and "%" in p for p in parts):
        raise Refused(f"the pattern {pattern!r}", _HINT)
    return tuple(parts)


def _fixed(value: float, places: int) -> str:
    text = java_text(value)
    if text is None:
        raise Failed(f"the digits of {value!r} depend on the version of Java")
    if not math.isfinite(value):
        return text
    return format(Decimal(text).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _WIDE), "f")


def _written(directive: _Directive, value: object, bits: int) -> str:
    letter, zeros = directive.letter, directive.flag == "0"
    if value is None:
        text = "null"[: directive.precision] if letter == "f" else "null"
        zeros = False
    elif letter == "f":
        assert isinstance(value, float)
        text, zeros = _fixed(value, directive.precision), zeros and math.isfinite(value)
    elif letter in "xX":
        assert isinstance(value, int)
        text = format(value % (1 << bits), "x")
    else:
        text = str(value)
    if letter == "X":
        text = text.upper()
    missing = directive.width - len(text.encode("utf-16-le")) // 2
    if missing <= 0:
        return text
    if zeros:
        sign = "-" if text.startswith("-") else ""
        return sign + "0" * missing + text[len(sign) :]
    return text + " " * missing if directive.flag == "-" else " " * missing + text


def _printer(bits: Sequence[int]) -> Callable[..., str]:
    def print_(pattern: str, *values: object) -> str:
        out, at = [], 0
        for part in _parsed(pattern):
            if isinstance(part, str):
                out.append(part)
            elif part.letter == "%":
                out.append("%")
            else:
                out.append(_written(part, values[at], bits[at]))
                at += 1
        return "".join(out)

    return print_


def _format(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        pattern = constant(args[0], name, f"write {name}('%s is %d', a, b)")
        if not isinstance(pattern, str):
            raise Refused(f"{name}() with a pattern of type {name_of(args[0].dtype)}", _HINT)
        wanted = [p.letter.lower() for p in _parsed(pattern) if isinstance(p, _Directive) and p.letter != "%"]
        if len(wanted) > len(args) - 1:
            raise Refused(f"{name}() with {len(args) - 1} values for {len(wanted)} directives", "give a value for each")
        values = []
        for letter, value in zip(wanted, args[1:], strict=False):
            kind = family(value.dtype)
            if kind not in _TAKES[letter]:
                raise Refused(f"%{letter} of {name_of(value.dtype)}", "cast it to a string and print it with %s")
            if kind == "decimal" and value.dtype.scale > 6:
                raise Refused(f"%s of {name_of(value.dtype)}", "cast it to a string first")
            values.append(cast(value, STRING) if letter == "s" else cast(value, DOUBLE) if letter == "f" else value)
        return call("format_string", (Literal(pattern, STRING), *values), STRING, fallible=True)

    return build


def _format_form(node: Call, a: list[str]) -> str:
    types = [v.dtype for v in node.args]
    signature = "_".join(duckdb_type(t).lower() for t in types[1:])
    body = _printer([_BITS.get(t, 0) for t in types[1:]])
    parameters = " ".join(map(duckdb_type, types))
    name = define(f"format_string_{signature}", parameters, STRING, body, strict=False)
    return f"{name}({', '.join(a)})"


_NOTE = "of %s, %d, %f and %x with widths"
FUNCTIONS: tuple[Function, ...] = (
    Function("format_string", "string", _format("format_string"), 1, MANY, {"format_string": _format_form}, note=_NOTE),
    Function("printf", "string", _format("printf"), 1, MANY, note=_NOTE),
)
