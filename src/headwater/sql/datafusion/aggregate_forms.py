"""Aggregates and window functions in DataFusion.

A sum of bigints would wrap: it is taken in decimals, and the cast back raises. A sum of decimals has ten digits more
here as in Spark, and where 38 do not suffice for them it is taken in 76. Averages of decimals are cut here, and rounded
half up in Spark: the quotient is taken with one digit more, and the cast rounds that one.
"""

from __future__ import annotations

from headwater.sql.datafusion.spelling import one_nan, refusal, type_name
from headwater.sql.functions.function import AggregateForm, Apply
from headwater.sql.nodes import AggregateCall, Literal, WindowCall
from headwater.sql.types import DOUBLE, INT, LONG, family

__all__ = ["FORMS"]

_Many = AggregateCall | WindowCall


def _count(node: _Many, a: list[str], apply: Apply) -> str:
    constant = len(a) == 1 and isinstance(node.args[0], Literal) and node.args[0].value is not None
    if not a or (constant and not node.distinct):
        return apply("count", "*")
    if len(a) == 1:
        return apply("count", a[0])
    # Rows with a null among the values are not counted.
    nulls = " OR ".join(f"({x} IS NULL)" for x in a)
    return apply("count", f"CASE WHEN {nulls} THEN NULL ELSE struct({', '.join(a)}) END")


def _total(node: _Many, x: str, apply: Apply) -> str:
    """A sum that does not wrap, in whatever type has the room."""
    given = node.args[0].dtype
    if given == LONG:
        return apply("sum", f"CAST({x} AS DECIMAL(19,0))")
    if family(given) == "integer":
        return apply("sum", f"CAST({x} AS BIGINT)")
    if family(given) == "decimal" and given.precision > 28:
        return apply("sum", f"CAST({x} AS DECIMAL(66,{given.scale}))")
    return apply("sum", x)


def _sum(node: _Many, a: list[str], apply: Apply) -> str:
    total = _total(node, a[0], apply)
    return one_nan(total, node.dtype) if node.dtype == DOUBLE else f"CAST({total} AS {type_name(node.dtype)})"


def _avg(node: _Many, a: list[str], apply: Apply) -> str:
    if node.dtype == DOUBLE:
        if not node.distinct:
            return one_nan(apply("avg", a[0]), node.dtype)
        return one_nan(f"({apply('sum', a[0])} / CAST(nullif({apply('count', a[0])}, 0) AS DOUBLE))", node.dtype)
    # Arrow's quotient has four digits more than the dividend; one more than those four is asked for.
    scale = node.dtype.scale + 1 - 4
    total = f"CAST({_total(node, a[0], apply)} AS DECIMAL(76,{scale}))"
    count = f"nullif({apply('count', a[0])}, 0)"
    return f"CAST({total} / CAST({count} AS DECIMAL(76,0)) AS {type_name(node.dtype)})"


def _plain(function: str) -> AggregateForm:
    return lambda _, a, apply: apply(function, *a)


def _extreme(function: str) -> AggregateForm:
    def form(node: _Many, a: list[str], apply: Apply) -> str:
        if family(node.dtype) == "nested":
            raise refusal(f"{function}() of arrays and structs")
        if family(node.dtype) == "boolean":
            # Of integers, since not every kind of group can do it of booleans.
            return f"CAST({apply(function, f'CAST({a[0]} AS INT)')} AS BOOLEAN)"
        if family(node.dtype) != "float":
            return apply(function, a[0])
        return _float_extreme(function, node, a[0], apply)

    return form


def _float_extreme(function: str, node: _Many, x: str, apply: Apply) -> str:
    """min and max of floats: NaN is the largest, which groups here do not know,
    nor that there is more than the largest finite.
    """
    name = type_name(node.dtype)
    largest = "1.7976931348623157e308" if node.dtype == DOUBLE else "3.4028234663852886e38"
    finite = apply(function, f"CASE WHEN abs({x}) <= CAST('{largest}' AS {name}) THEN {x} END")
    nan, up, down = (f"CAST('{text}' AS {name})" for text in ("NaN", "Infinity", "-Infinity"))
    # The equality of floats knows NaN.
    found = {value: f"WHEN {apply('bool_or', f'({x} = {value})')} THEN {value}" for value in (nan, up, down)}
    if function == "max":
        return f"(CASE {found[nan]} {found[up]} ELSE coalesce({finite}, CASE {found[down]} END) END)"
    return f"(CASE {found[down]} ELSE coalesce({finite}, CASE {found[up]} {found[nan]} END) END)"


def _double(function: str) -> AggregateForm:
    return lambda node, a, apply: one_nan(apply(function, *a), node.dtype)


def _typed(function: str) -> AggregateForm:
    return lambda node, a, apply: f"CAST({apply(function, *a)} AS {type_name(node.dtype)})"


def _count_if(_: _Many, a: list[str], apply: Apply) -> str:
    return apply("count", f"CASE WHEN {a[0]} THEN 1 END")


def _picked(function: str) -> AggregateForm:
    return lambda _, a, apply: apply(function, a[0])


def _picked_value(function: str) -> AggregateForm:
    """first and last of the rows that have a value."""

    def form(node: _Many, a: list[str], apply: Apply) -> str:
        if isinstance(node, WindowCall):
            raise refusal(f"{function}() of values that are not null, over a window,")
        return apply(function, a[0], only=f"{a[0]} IS NOT NULL")

    return form


def _list(node: _Many, a: list[str], apply: Apply) -> str:
    if isinstance(node, WindowCall):
        raise refusal("collect_list() over a window")
    kept = apply("array_agg", a[0], only=f"{a[0]} IS NOT NULL")
    return f"coalesce({kept}, CAST(make_array() AS {type_name(node.dtype)}))"


def _by(word: str) -> AggregateForm:
    def form(node: _Many, a: list[str], apply: Apply) -> str:
        if isinstance(node, WindowCall) or node.distinct:
            raise refusal(f"{node.op}() over a window or of distinct values")
        # Of rows with a value to order by, the one with the extreme value, even where what it gives is null.
        return apply("first_value", f"{a[0]} ORDER BY {a[1]} {word}", only=f"{a[1]} IS NOT NULL")

    return form


def _rank(node: _Many, a: list[str], apply: Apply) -> str:
    return f"CAST({apply(node.op, *a)} AS {type_name(INT if node.dtype != DOUBLE else DOUBLE)})"


def _neighbour(node: _Many, a: list[str], apply: Apply) -> str:
    return apply(node.op, *a)


FORMS: dict[str, AggregateForm] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "stddev_samp": _double("stddev_samp"),
    "stddev_pop": _double("stddev_pop"),
    "var_samp": _double("var_samp"),
    "var_pop": _double("var_pop"),
    "bool_and": _plain("bool_and"),
    "bool_or": _plain("bool_or"),
    "count_if": _count_if,
    "bit_and": _typed("bit_and"),
    "bit_or": _typed("bit_or"),
    "bit_xor": _typed("bit_xor"),
    "first": _picked("first_value"),
    "last": _picked("last_value"),
    "first ignore nulls": _picked_value("first_value"),
    "last ignore nulls": _picked_value("last_value"),
    "collect_list": _list,
    "max_by": _by("DESC"),
    "min_by": _by("ASC"),
    "row_number": _rank,
    "rank": _rank,
    "dense_rank": _rank,
    "percent_rank": _rank,
    "cume_dist": _rank,
    "ntile": _rank,
    "lag": _neighbour,
    "lead": _neighbour,
    "nth_value": _neighbour,
}
