"""Functions of numbers in DataFusion, and choices among values: greatest, least, coalesce."""

from __future__ import annotations

from headwater.sql.datafusion.spelling import lazy, one_nan, raise_form, refusal, type_name, witness
from headwater.sql.functions.function import Form
from headwater.sql.nodes import Call, Literal
from headwater.sql.types import BOOLEAN, family

__all__ = ["FORMS"]


def _whole(function: str) -> Form:
    """ceil and floor: of a double a bigint, of a decimal a decimal without a fraction."""
    return lambda node, a: f"CAST({function}({a[0]}) AS {type_name(node.dtype)})"


def _extreme(node: Call, a: list[str]) -> str:
    whole = f"{node.op}({', '.join(a)})"
    if family(node.dtype) != "float":
        return whole
    # -0.0 and 0.0 are one value in Spark, which keeps the first of them.
    zero = f"CAST('0' AS {type_name(node.dtype)})"
    first = ", ".join(f"CASE WHEN {x} = {zero} THEN {x} END" for x in a)
    return f"(CASE WHEN {whole} = {zero} THEN coalesce({first}) ELSE {whole} END)"


def _round(node: Call, a: list[str]) -> str:
    # Spark rounds the decimal digits that a double prints, half up. Beyond 15 digits that is not promised here.
    x, places = a[0], node.args[1]
    assert isinstance(places, Literal) and isinstance(places.value, int)
    if not 0 <= places.value <= 12:
        raise refusal(f"round() to {places.value} places")
    limit, whole = (f"CAST('{text}' AS DOUBLE)" for text in (f"1e{15 - places.value}", "4503599627370496"))
    digits = f"CAST(CAST(CAST({x} AS VARCHAR) AS DECIMAL(38,22)) AS DECIMAL(38,{places.value}))"
    why = raise_form("round() of a double with more than 15 digits", witness(node.args, a), node.dtype)
    return (
        f"(CASE WHEN {x} IS NULL THEN CAST(NULL AS DOUBLE) WHEN isnan({x}) OR abs({x}) >= {whole} THEN {x} "
        f"WHEN abs({x}) < {limit} THEN CAST({digits} AS DOUBLE) ELSE {why} END)"
    )


def _coalesce(node: Call, a: list[str]) -> str:
    if node.dtype == BOOLEAN and node.fallible:
        return lazy([(f"{x} IS NOT NULL", x) for x in a[:-1]], a[-1])
    return f"coalesce({', '.join(a)})"


def _double(body: str) -> Form:
    return lambda node, a: one_nan(body.format(*a), node.dtype)


def _positive(body: str) -> Form:
    """Logarithms: null where there is none."""
    zero, none = "CAST('0' AS DOUBLE)", "CAST(NULL AS DOUBLE)"

    def form(node: Call, a: list[str]) -> str:
        outside = " OR ".join(f"{x} <= {zero}" for x in a)
        return one_nan(f"(CASE WHEN {outside} THEN {none} ELSE {body.format(*a)} END)", node.dtype)

    return form


_ZERO, _NAN = "CAST('0' AS DOUBLE)", "CAST('NaN' AS DOUBLE)"
FORMS: dict[str, Form] = {
    "abs": "abs({})",
    "isnan": "coalesce(isnan({}), FALSE)",
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _round,
    "sqrt": _double(f"(CASE WHEN {{0}} < {_ZERO} THEN {_NAN} ELSE sqrt({{0}}) END)"),
    "sign": _double(
        f"(CASE WHEN isnan({{0}}) THEN {{0}} WHEN {{0}} > {_ZERO} THEN CAST('1' AS DOUBLE) "
        f"WHEN {{0}} < {_ZERO} THEN CAST('-1' AS DOUBLE) ELSE {{0}} END)"
    ),
    "exp": _double("exp({0})"),
    "ln": _positive("ln({0})"),
    "log base": _positive("ln({1}) / ln({0})"),
    "log10": _positive("log10({0})"),
    "log2": _positive("ln({0}) / ln(CAST('2' AS DOUBLE))"),
    "degrees": _double("degrees({0})"),
    "radians": _double("radians({0})"),
    "greatest": _extreme,
    "least": _extreme,
    "coalesce": _coalesce,
}
