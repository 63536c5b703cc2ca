"""Aggregates: one value of many rows. Each is also a window function, over its frame.

Types are Spark's: a sum of integers is a bigint, of decimals a decimal of ten more digits; both raise when they do not
fit. Averages of integers are doubles, of decimals decimals of four more digits, rounded half up. Sums of doubles are
added in any order, in every engine: their last digits are nobody's promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast
from headwater.sql.decimals import scaled_form, whole_form
from headwater.sql.functions.function import MANY, AggregateForm, Apply, Builder, ByOrder, Function
from headwater.sql.interval_types import DAY_TO_SECOND, YEAR_TO_MONTH, IntervalType, is_interval
from headwater.sql.nested_order import null_or_key
from headwater.sql.nodes import AggregateCall, Literal, Node, Refused, WindowCall
from headwater.sql.types import BOOLEAN, DOUBLE, LONG, NULL, STRING, family, has_float, is_comparable, name_of

__all__ = ["FUNCTIONS", "aggregate_function", "average", "average_form", "several_by_form"]

_Many = AggregateCall | WindowCall
_Type = Callable[[pa.DataType], pa.DataType]


def _number(node: Node, name: str) -> Node:
    if node.dtype in (NULL, STRING):
        return cast(node, DOUBLE)
    if family(node.dtype) not in ("integer", "float", "decimal"):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "cast it to a number first")
    return node


def _count(args: Sequence[Node]) -> Node:
    return AggregateCall("count", tuple(args), LONG)


def _count_form(_: _Many, a: list[str], apply: Apply) -> str:
    if not a:
        return apply("count", "*")
    if len(a) == 1:
        return apply("count", a[0])
    # Rows with a null among the values are not counted.
    nulls = " OR ".join(f"({x} IS NULL)" for x in a)
    return apply("count", f"CASE WHEN {nulls} THEN NULL ELSE row({', '.join(a)}) END")


def _sum(args: Sequence[Node]) -> Node:
    if is_interval(args[0].dtype):
        return AggregateCall("sum", (args[0],), args[0].dtype)
    value = _number(args[0], "sum")
    kind = family(value.dtype)
    if kind == "integer":
        return AggregateCall("sum", (value,), LONG)
    if kind == "float":
        return AggregateCall("sum", (cast(value, DOUBLE),), DOUBLE)
    dtype = pa.decimal128(min(38, value.dtype.precision + 10), value.dtype.scale)
    return AggregateCall("sum", (value,), dtype)


def _sum_form(node: _Many, a: list[str], apply: Apply) -> str:
    return f"CAST({apply('sum', a[0])} AS {duckdb_type(node.dtype)})"


def average(args: Sequence[Node]) -> Node:
    """avg(): of decimals a decimal of four more digits, of intervals one of all units, of everything else a double."""
    if isinstance(args[0].dtype, IntervalType):
        return AggregateCall("avg", (args[0],), DAY_TO_SECOND if args[0].dtype.of_days else YEAR_TO_MONTH)
    value = _number(args[0], "avg")
    if family(value.dtype) != "decimal":
        return AggregateCall("avg", (cast(value, DOUBLE),), DOUBLE)
    precision, scale = value.dtype.precision, value.dtype.scale
    if precision + 4 > 38:
        hint = "cast it to a decimal of at most 34 digits"
        raise Refused(f"avg() of {name_of(value.dtype)}, whose digits do not suffice,", hint)
    return AggregateCall("avg", (value,), pa.decimal128(precision + 4, scale + 4))


def average_form(node: _Many, a: list[str], apply: Apply) -> str:
    """avg() in DuckDB; decimals are divided in whole numbers."""
    if node.dtype == DOUBLE:
        return apply("avg", a[0])
    given = node.args[0].dtype
    total = whole_form(
        f"CAST({apply('sum', a[0])} AS DECIMAL({min(38, given.precision + 10)},{given.scale}))",
        (
            min(38, given.precision + 10),
            given.scale,
        ),
    )
    count = f"CAST({apply('count', a[0])} AS HUGEINT)"
    rounded = f"((20000 * abs({total}) + {count}) // (2 * {count}))"
    signed = f"(CASE WHEN {total} < 0 THEN -{rounded} ELSE {rounded} END)"
    whole = f"(CASE WHEN {count} = 0 THEN NULL ELSE {signed} END)"
    return scaled_form(whole, node.dtype.precision, node.dtype.scale)


def _try_average(args: Sequence[Node]) -> Node:
    if is_interval(args[0].dtype):
        raise Refused("try_avg() of intervals", "use avg()")
    return average(args)


def _try_sum(args: Sequence[Node]) -> Node:
    if is_interval(args[0].dtype):
        raise Refused("try_sum() of intervals", "use sum()")
    found = _sum(args)
    assert isinstance(found, AggregateCall)
    return AggregateCall("try_sum", found.args, found.dtype)


def _try_sum_form(node: _Many, a: list[str], apply: Apply) -> str:
    return f"TRY_CAST({apply('sum', a[0])} AS {duckdb_type(node.dtype)})"


def _extreme(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        if not is_comparable(args[0].dtype):
            raise Refused(f"{name}() of {name_of(args[0].dtype)}", "compare its fields one by one")
        return AggregateCall(name, (args[0],), args[0].dtype)

    return build


def _extreme_form(function: str) -> AggregateForm:
    def form(node: _Many, a: list[str], apply: Apply) -> str:
        dtype = node.args[0].dtype
        if node.within:  # the first value that is not null
            return _chosen_form(node, apply, "any_value", a, f"{a[0]} IS NOT NULL")
        if family(dtype) != "nested":
            return apply(function, a[0])
        return apply(f"arg_{function}", a[0], null_or_key(a[0], dtype))

    return form


def _chosen_form(node: _Many, apply: Apply, function: str, a: list[str], only: str) -> str:
    """The first row in order. What DuckDB chooses of nested values has lost the sign of its zeros;
    their list has not.
    """
    if node.within and pa.types.is_nested(node.dtype) and has_float(node.dtype):
        return f"({apply('list', a[0], only=only)})[1]"
    return apply(function, *a, only=only)


def _plain(function: str) -> AggregateForm:
    return lambda _, a, apply: apply(function, *a)


def _typed(function: str) -> AggregateForm:
    return lambda node, a, apply: f"CAST({apply(function, *a)} AS {duckdb_type(node.dtype)})"


def _truths(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        if args[0].dtype not in (BOOLEAN, NULL, STRING):
            raise Refused(f"{name}() of {name_of(args[0].dtype)}", "pass a condition")
        return AggregateCall(name, (cast(args[0], BOOLEAN),), BOOLEAN)

    return build


def _count_if(args: Sequence[Node]) -> Node:
    if args[0].dtype not in (BOOLEAN, NULL, STRING):
        raise Refused(f"count_if() of {name_of(args[0].dtype)}", "pass a condition")
    return AggregateCall("count_if", (cast(args[0], BOOLEAN),), LONG)


def _bits(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        if family(args[0].dtype) != "integer":
            raise Refused(f"{name}() of {name_of(args[0].dtype)}", "pass a whole number")
        return AggregateCall(name, (args[0],), args[0].dtype)

    return build


def _picked(op: str) -> Builder:
    """first, last, any_value: of all rows, or (with TRUE) of those that have a value."""

    def build(args: Sequence[Node]) -> Node:
        skip = False
        if len(args) == 2:
            if not isinstance(args[1], Literal) or not isinstance(args[1].value, bool):
                raise Refused(f"{op}() with a second argument that is no TRUE or FALSE", "write TRUE to skip nulls")
            skip = args[1].value
        return AggregateCall(op + (" ignore nulls" if skip else ""), (args[0],), args[0].dtype)

    return build


def _list(args: Sequence[Node]) -> Node:
    return AggregateCall("collect_list", (args[0],), pa.list_(pa.field("element", args[0].dtype)))


def _list_form(node: _Many, a: list[str], apply: Apply) -> str:
    kept = apply("list", a[0], only=f"{a[0]} IS NOT NULL")
    return f"coalesce({kept}, CAST([] AS {duckdb_type(node.dtype)}))"


def _set(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) in ("float", "nested"):
        raise Refused(
            f"collect_set() of {name_of(args[0].dtype)}", "NaN and -0.0 have no agreed place in a set; use collect_list"
        )
    return AggregateCall("collect_set", (args[0],), pa.list_(pa.field("element", args[0].dtype)))


def _set_form(node: _Many, a: list[str], apply: Apply) -> str:
    kept = apply("list", a[0], only=f"{a[0]} IS NOT NULL")
    return f"coalesce(list_sort(list_distinct({kept})), CAST([] AS {duckdb_type(node.dtype)}))"


def _listagg(args: Sequence[Node]) -> Node:
    """Texts joined; a third argument and its direction are WITHIN GROUP (ORDER BY …)."""
    text = args[0]
    if family(text.dtype) not in ("string", "null"):
        raise Refused(f"listagg() of {name_of(text.dtype)}", "cast it to a string first")
    mark = args[1] if len(args) > 1 else Literal("", STRING)
    if not isinstance(mark, Literal) or not isinstance(mark.value, str):
        raise Refused("listagg() with a separator that is no constant text", "write listagg(x, ',')")
    order = () if len(args) > 2 and isinstance(args[2], Literal) else args[2:]  # by a constant nothing is ordered
    return AggregateCall("listagg", (cast(text, STRING), mark, *order), STRING)


def _listagg_form(node: _Many, a: list[str], apply: Apply) -> str:
    if len(a) == 2 or node.within:
        return apply("string_agg", *a[:2])
    descending, nulls_first = (isinstance(n, Literal) and n.value for n in node.args[3:])
    order = f"{a[2]} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
    return apply("string_agg", a[0], f"{a[1]} ORDER BY {order}")


def _several_by(op: str, args: Sequence[Node]) -> Node:
    """max_by(x, y, k): what the k rows with the greatest y give, the greatest first."""
    count = args[2]
    if not isinstance(count, Literal) or not isinstance(count.value, int) or not 1 <= count.value <= 100_000:
        raise Refused(f"{op}() of another number of rows than 1 to 100,000", f"write {op}(x, y, 3)")
    return AggregateCall(f"{op} of several", (*args[:2], count), pa.list_(pa.field("element", args[0].dtype)))


def several_by_form(direction: str) -> AggregateForm:
    """The first of the rows that have a value to order by; rows that tie are in the order of their values."""

    def form(_: _Many, a: list[str], apply: Apply) -> str:
        value, key, count = a
        rows = apply("list", f"{{'k': {key}, 'v': {value}}}", only=f"{key} IS NOT NULL")
        kept = f"list_sort({rows}, '{direction}')[:{count}]"
        return f"list_transform({kept}, lambda e: e.v)"

    return form


def _by(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        if len(args) == 3:
            return _several_by(op, args)
        if family(args[1].dtype) == "nested":
            raise Refused(f"{op}() by {name_of(args[1].dtype)}", "order by a plain column")
        return AggregateCall(op, tuple(args), args[0].dtype)

    return build


def _by_form(function: str) -> AggregateForm:
    # Of rows with a value to order by, the one with the extreme value, even where what it gives is null.
    return lambda node, a, apply: _chosen_form(node, apply, function, a, f"{a[1]} IS NOT NULL")


def aggregate_function(
    name: str,
    build: Builder,
    form: AggregateForm,
    *,
    most: int = 1,
    least: int = 1,
    note: str = "",
    by_order: ByOrder = "no",
    empty: object = None,
) -> Function:
    """The record of an aggregate."""
    return Function(
        name,
        "aggregate",
        build,
        least,
        most,
        kind="aggregate",
        aggregate_form=form,
        note=note,
        by_order=by_order,
        empty=empty,
    )


_ORDER = "the rows' order decides; without one, any row may be first"
_WITHIN = "in the order of WITHIN GROUP (ORDER BY …); without it, in any order"
_DIGITS = "the last digits of a double depend on the order of the rows, in every engine"
FUNCTIONS = (
    aggregate_function("count", _count, _count_form, least=0, most=MANY, empty=0),
    aggregate_function("sum", _sum, _sum_form, note=_DIGITS),
    aggregate_function("avg", average, average_form, note=_DIGITS),
    aggregate_function("mean", average, average_form, note=_DIGITS),
    aggregate_function("min", _extreme("min"), _extreme_form("min"), by_order="extreme"),
    aggregate_function("max", _extreme("max"), _extreme_form("max"), by_order="extreme"),
    aggregate_function("bool_and", _truths("bool_and"), _plain("bool_and")),
    aggregate_function("every", _truths("bool_and"), _plain("bool_and")),
    aggregate_function("bool_or", _truths("bool_or"), _plain("bool_or")),
    aggregate_function("some", _truths("bool_or"), _plain("bool_or")),
    aggregate_function("any", _truths("bool_or"), _plain("bool_or")),
    aggregate_function(
        "count_if", _count_if, lambda _, a, apply: apply("count", f"CASE WHEN {a[0]} THEN 1 END"), empty=0
    ),
    aggregate_function("bit_and", _bits("bit_and"), _typed("bit_and")),
    aggregate_function("bit_or", _bits("bit_or"), _typed("bit_or")),
    aggregate_function("bit_xor", _bits("bit_xor"), _typed("bit_xor")),
    aggregate_function("first", _picked("first"), _plain("first"), most=2, note=_ORDER, by_order="place"),
    aggregate_function("first_value", _picked("first"), _plain("first"), most=2, note=_ORDER, by_order="place"),
    aggregate_function("any_value", _picked("first"), _plain("first"), most=2, note=_ORDER, by_order="place"),
    aggregate_function("last", _picked("last"), _plain("last"), most=2, note=_ORDER, by_order="place"),
    aggregate_function("last_value", _picked("last"), _plain("last"), most=2, note=_ORDER, by_order="place"),
    aggregate_function("collect_list", _list, _list_form, note=_ORDER, by_order="list", empty=[]),
    aggregate_function("array_agg", _list, _list_form, note=_ORDER, by_order="list", empty=[]),
    aggregate_function(
        "collect_set",
        _set,
        _set_form,
        note="sorted; not of floats",
        by_order="list",
        empty=[],
    ),
    aggregate_function("try_sum", _try_sum, _try_sum_form, note=_DIGITS),
    aggregate_function("try_avg", _try_average, average_form, note=_DIGITS),
    aggregate_function("listagg", _listagg, _listagg_form, least=1, most=5, note=_WITHIN, by_order="list"),
    aggregate_function("string_agg", _listagg, _listagg_form, least=1, most=5, note=_WITHIN, by_order="list"),
    aggregate_function(
        "max_by", _by("max_by"), _by_form("arg_max_null"), least=2, most=3, note=_ORDER, by_order="extreme"
    ),
    aggregate_function(
        "min_by", _by("min_by"), _by_form("arg_min_null"), least=2, most=3, note=_ORDER, by_order="extreme"
    ),
)
