"""Operators in DataFusion: comparisons and logic, arithmetic that raises as ANSI Spark does, LIKE.

Integers wrap here. Up to 32 bits they are computed in bigint and cast back, which raises; bigints go by way of decimals
of 38 digits, which hold every product of two. Decimals whose result has all 38 digits are computed in 76. A quotient of
decimals is cut here, and rounded half up in Spark: it is taken with one digit more, and the cast rounds that one.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.sql.binding import is_small
from headwater.sql.datafusion.casts import cast_form
from headwater.sql.datafusion.spelling import lazy, one_nan, raise_form, type_name, witness
from headwater.sql.functions.function import Form
from headwater.sql.nodes import Call, Literal
from headwater.sql.quoting import literal_sql
from headwater.sql.types import BOOLEAN, LONG, digits_of, family

__all__ = ["FORMS", "STOPS", "logic_form", "wide_integer"]

_WIDEST = 76
_EXTRA_DIGITS = 4  # what Arrow's division adds to the scale of the dividend


def wide_integer(x: str, dtype: pa.DataType) -> str:
    """An integer in a type that sums and products of two do not overflow."""
    return f"CAST({x} AS {'DECIMAL(19,0)' if dtype == LONG else 'BIGINT'})"


def _arithmetic(op: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        kind, name = family(node.dtype), type_name(node.dtype)
        if kind == "float":
            return one_nan(f"({a[0]} {op} {a[1]})", node.dtype)
        if kind == "integer":
            wide = f" {op} ".join(wide_integer(x, node.dtype) for x in a)
            return f"CAST({wide} AS {name})"
        sides = a
        if node.dtype.precision == 38:
            scales = [n.dtype.scale for n in node.args]
            sides = [f"CAST({x} AS DECIMAL({_WIDEST},{s}))" for x, s in zip(a, scales, strict=True)]
        return f"CAST({sides[0]} {op} {sides[1]} AS {name})"

    return form


def _minus(node: Call, a: list[str]) -> str:
    kind = family(node.dtype)
    if kind == "integer":
        return f"CAST(-{wide_integer(a[0], node.dtype)} AS {type_name(node.dtype)})"
    return one_nan(f"(-{a[0]})", node.dtype) if kind == "float" else f"CAST(-{a[0]} AS {type_name(node.dtype)})"


def _divisor(node: Call, a: list[str], why: str) -> str:
    """The right operand, made to raise where it is zero and the left one is not null: NULL / 0 is NULL."""
    right = node.args[1]
    if isinstance(right, Literal) and right.value:
        return a[1]
    stop = raise_form(why, witness(node.args[::-1], a[::-1]), right.dtype)
    zero = f"CAST('0' AS {type_name(right.dtype)})"
    return f"(CASE WHEN {a[1]} = {zero} AND {a[0]} IS NOT NULL THEN {stop} ELSE {a[1]} END)"


def _quotient(node: Call, a: list[str]) -> str:
    bottom = _divisor(node, a, "division by zero")
    if family(node.dtype) == "float":
        return one_nan(f"({a[0]} / {bottom})", node.dtype)
    left, right = (digits_of(n.dtype) for n in node.args)
    assert left is not None and right is not None
    scale = max(left[1], node.dtype.scale + 1 - _EXTRA_DIGITS)
    # NULL / 0 is NULL in Spark and for Arrow, which skips nulls; here it stays a null above the line.
    top = f"CAST({a[0]} AS DECIMAL({_WIDEST},{scale}))"
    return f"CAST({top} / CAST({bottom} AS DECIMAL({_WIDEST},{right[1]})) AS {type_name(node.dtype)})"


def _remainder(node: Call, a: list[str]) -> str:
    bottom = _divisor(node, a, "remainder by zero")
    if family(node.dtype) == "float":
        return one_nan(f"({a[0]} % {bottom})", node.dtype)
    return f"CAST({a[0]} % {bottom} AS {type_name(node.dtype)})"


# The part that decides, whatever the others are.
STOPS = {"and": "FALSE", "or": "TRUE"}


def logic_form(op: str, first: str, rest: str) -> str:
    """AND or OR of two parts, of which the second is tried only where the first leaves the answer open."""
    stop = STOPS[op]
    return lazy([(f"{'NOT ' if stop == 'FALSE' else ''}{first}", stop)], f"({first} {op.upper()} {rest})")


def _case(node: Call, a: list[str]) -> str:
    steps = [(a[i], a[i + 1]) for i in range(0, len(a) - 1, 2)]
    # Of plain booleans the optimiser makes AND and OR, and writes the conditions twice.
    if node.dtype == BOOLEAN and (node.fallible or not all(map(is_small, node.args))):
        return lazy(steps, a[-1])
    return "(CASE " + " ".join(f"WHEN {c} THEN {v}" for c, v in steps) + f" ELSE {a[-1]} END)"


def _like(node: Call, a: list[str]) -> str:
    pattern, escape = node.args[1], node.args[2]
    assert isinstance(pattern, Literal) and isinstance(escape, Literal) and isinstance(escape.value, str)
    if not isinstance(pattern.value, str):
        return f"({a[0]} LIKE {a[1]})"
    return f"({a[0]} LIKE {literal_sql(_with_backslashes(pattern.value, escape.value))})"


def _with_backslashes(pattern: str, escape: str) -> str:
    """The pattern with a backslash, the only escape known here, in place of its own."""
    out, at = [], 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            out.append(pattern[at] if pattern[at] not in "%_\\" else "\\" + pattern[at])
        else:
            out.append("\\\\" if pattern[at] == "\\" else pattern[at])
        at += 1
    return "".join(out)


def _pmod(node: Call, a: list[str]) -> str:
    left, right = (wide_integer(x, node.dtype) for x in a)
    name = type_name(node.dtype)
    return f"(CASE WHEN {a[0]} < 0 THEN CAST(({left} + {right}) % {right} AS {name}) ELSE {a[0]} END)"


FORMS: dict[str, Form] = {
    "=": "({} = {})",
    "!=": "({} <> {})",
    "<": "({} < {})",
    "<=": "({} <= {})",
    ">": "({} > {})",
    ">=": "({} >= {})",
    "<=>": "({} IS NOT DISTINCT FROM {})",
    "not": "(NOT {})",
    "is null": "({} IS NULL)",
    "is not null": "({} IS NOT NULL)",
    "in": lambda _, a: f"({a[0]} IN ({', '.join(a[1:])}))",
    "like": _like,
    "and": lambda _, a: f"({' AND '.join(a)})",
    "or": lambda _, a: f"({' OR '.join(a)})",
    "case": _case,
    "cast": lambda node, a: cast_form(a[0], node.args[0], node.dtype),
    "try_cast": lambda node, a: cast_form(a[0], node.args[0], node.dtype, word="TRY_CAST"),
    "+": _arithmetic("+"),
    "-": _arithmetic("-"),
    "*": _arithmetic("*"),
    "/": _quotient,
    "%": _remainder,
    "minus": _minus,
    "div": lambda node, a: f"({a[0]} / {_divisor(node, a, 'division by zero')})",
    "pmod": _pmod,
    "&": "CAST({} & {} AS {type})",
    "|": "CAST({} | {} AS {type})",
    "^": "CAST({} ^ {} AS {type})",
    "~": "CAST({} ^ CAST(-1 AS {type}) AS {type})",
    "bit_count": "CAST(bit_count({}) AS {type})",
}
