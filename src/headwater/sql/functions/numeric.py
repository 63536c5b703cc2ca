"""Numbers: rounding, roots, logarithms and signs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import arithmetic
from headwater.sql.types import BOOLEAN, DOUBLE, INT, LONG, family, name_of

__all__ = ["FUNCTIONS"]


def _abs(args: Sequence[Node]) -> Node:
    kind = family(args[0].dtype)
    if kind not in ("integer", "float", "decimal"):
        raise Refused(f"abs() of {name_of(args[0].dtype)}", "pass a number")
    return call("abs", (args[0],), args[0].dtype, fallible=kind == "integer")


def _isnan(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) != "float":
        raise Refused(f"isnan() of {name_of(args[0].dtype)}", "pass a float or a double")
    return call("isnan", (args[0],), BOOLEAN)


def _whole(op: str) -> Builder:
    """ceil and floor: of a double a bigint, of a decimal a decimal without a fraction."""

    def build(args: Sequence[Node]) -> Node:
        value = argument("n", args[0], op)
        if family(value.dtype) == "integer":
            return cast(value, LONG)
        if family(value.dtype) == "float":
            return call(op, (cast(value, DOUBLE),), LONG, fallible=True)
        if value.dtype.scale == 0:
            return value
        digits = min(38, value.dtype.precision - value.dtype.scale + 1)
        return call(op, (value,), pa.decimal128(digits, 0))

    return build


def _whole_form(function: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        if node.dtype != LONG:
            return f"CAST({function}({a[0]}) AS {duckdb_type(node.dtype)})"
        why = raise_form(f"{function}() of a number outside bigint")
        return f"(CASE WHEN NOT {a[0]} BETWEEN -9e18 AND 9e18 THEN {why} ELSE CAST({function}({a[0]}) AS BIGINT) END)"

    return form


def _round(args: Sequence[Node]) -> Node:
    value = argument("n", args[0], "round")
    places = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else 0 if len(args) == 1 else None
    if not isinstance(places, int) or isinstance(places, bool) or not 0 <= places <= 12:
        raise Refused("round() to a number of places that is not a constant from 0 to 12", "write round(x, 2)")
    kind = family(value.dtype)
    if kind == "integer":
        return value
    if kind == "float":
        if value.dtype != DOUBLE:
            raise Refused("round() of float", "cast it to double first")
        return call("round", (value, Literal(places, INT)), DOUBLE, fallible=True)
    precision, scale = value.dtype.precision, value.dtype.scale
    kept = min(scale, places)
    return cast(value, pa.decimal128(min(38, precision - scale + 1 + kept), kept))


def _round_form(node: Call, a: list[str]) -> str:
    # Spark rounds the decimal digits that a double prints, half up. Beyond 15 digits that is not promised here.
    x, places = a[0], node.args[1]
    assert isinstance(places, Literal) and isinstance(places.value, int)
    limit = f"1e{15 - places.value}"
    digits = f"CAST(CAST(CAST({x} AS VARCHAR) AS DECIMAL(38,22)) AS DECIMAL(38,{places.value}))"
    why = raise_form("round() of a double with more than 15 digits")
    return (
        f"(CASE WHEN {x} IS NULL THEN NULL WHEN isnan({x}) OR abs({x}) >= 4503599627370496 THEN {x} "
        f"WHEN abs({x}) < {limit} THEN CAST({digits} AS DOUBLE) ELSE {why} END)"
    )


def _positive(body: str) -> Form:
    """Logarithms: null where there is none."""
    return lambda _, a: f"(CASE WHEN {a[0]} <= 0 THEN NULL ELSE {body.format(*a)} END)"


def _log(args: Sequence[Node]) -> Node:
    if len(args) == 1:
        return call("ln", (argument("d", args[0], "log"),), DOUBLE)
    return call("log base", tuple(argument("d", a, "log") for a in args), DOUBLE)


def _pmod(args: Sequence[Node]) -> Node:
    if any(family(a.dtype) != "integer" for a in args):
        raise Refused("pmod() of other numbers than whole ones", "use % and add the divisor")
    first = arithmetic("%", args[0], args[1])
    assert isinstance(first, Call)
    return call("pmod", (first, first.args[1]), first.dtype, fallible=True)


_LAST_DIGIT = "the last digit of a double may differ, as between versions of Java"
_PMOD = "(CASE WHEN {0} < 0 THEN CAST(({0} + {1}) % {1} AS {type}) ELSE {0} END)"
_SIGN = "(CASE WHEN isnan({0}) THEN {0} WHEN {0} > 0 THEN 1e0 WHEN {0} < 0 THEN -1e0 ELSE {0} END)"
_LOG_BASE = "(CASE WHEN {0} <= 0 OR {1} <= 0 THEN NULL ELSE ln({1}) / ln({0}) END)"
FUNCTIONS: tuple[Function, ...] = (
    Function("abs", "numeric", _abs, 1, 1, {"abs": "abs({})"}),
    Function("isnan", "numeric", _isnan, 1, 1, {"isnan": "coalesce(isnan({}), FALSE)"}),
    Function("mod", "numeric", lambda args: arithmetic("%", args[0], args[1]), 2, 2),
    Function("pmod", "numeric", _pmod, 2, 2, {"pmod": _PMOD}),
    Function("ceil", "numeric", _whole("ceil"), 1, 1, {"ceil": _whole_form("ceil")}),
    Function("ceiling", "numeric", _whole("ceil"), 1, 1),
    Function("floor", "numeric", _whole("floor"), 1, 1, {"floor": _whole_form("floor")}),
    Function("round", "numeric", _round, 1, 2, {"round": _round_form}, note="doubles of more than 15 digits raise"),
    simple("sqrt", "numeric", "d", DOUBLE, "(CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END)"),
    simple("sign", "numeric", "d", DOUBLE, _SIGN),
    simple("signum", "numeric", "d", DOUBLE, None, op="sign"),
    simple("exp", "numeric", "d", DOUBLE, "exp({0})", note=_LAST_DIGIT),
    simple("ln", "numeric", "d", DOUBLE, _positive("ln({0})"), note=_LAST_DIGIT),
    Function("log", "numeric", _log, 1, 2, {"log base": _LOG_BASE}, note=_LAST_DIGIT),
    simple("log10", "numeric", "d", DOUBLE, _positive("log10({0})"), note=_LAST_DIGIT),
    simple("log2", "numeric", "d", DOUBLE, _positive("ln({0}) / ln(2e0)"), note=_LAST_DIGIT),
    simple("degrees", "numeric", "d", DOUBLE, "degrees({0})", note=_LAST_DIGIT),
    simple("radians", "numeric", "d", DOUBLE, "radians({0})", note=_LAST_DIGIT),
)
