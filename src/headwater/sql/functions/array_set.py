"""Arrays as sets, side by side, in order, and counted out: distinct, union, zip, sort and sequence.

A set keeps the first of equal elements, in the order of the array; a null is an element like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.binding import fresh, let
from headwater.sql.casts import raise_form
from headwater.sql.functions.array import as_array, comparable_elements, null_if_null
from headwater.sql.functions.function import MANY, Builder, Function
from headwater.sql.intervals.constants import Interval
from headwater.sql.nested_order import sorted_form
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import united
from headwater.sql.quoting import literal_sql
from headwater.sql.types import BOOLEAN, LONG, array_of, family, has_float, is_comparable, name_of, tighter

__all__ = ["FUNCTIONS"]

_DAY_MICROS = 86_400_000_000
_BOUNDS = "the bounds of a sequence do not fit its step"


def _distinct_of(xs: str) -> str:
    e, i = fresh(xs), fresh(xs, stem="i")
    return f"list_filter({xs}, lambda {e}, {i}: list_position({xs}, {e}) = {i})"


def _as_set(array: Node, name: str) -> Node:
    """The array, without negative zeros: Spark's sets have none."""
    element = comparable_elements(array, name)
    if family(element) == "float":
        return call("zero free", (array,), array.dtype)
    if family(element) == "nested" and has_float(element):
        raise Refused(f"{name}() of {name_of(array.dtype)}", "use elements without floats inside")
    return array


def _zero_free_form(node: Call, a: list[str]) -> str:
    e = fresh(*a)
    zero = f"CAST(0 AS {duckdb_type(node.dtype.value_type)})"
    return f"list_transform({a[0]}, lambda {e}: CASE WHEN {e} = 0 THEN {zero} ELSE {e} END)"


def _distinct(args: Sequence[Node]) -> Node:
    return call("array_distinct", (_as_set(args[0], "array_distinct"),), args[0].dtype)


def _pair(op: str, dtype: pa.DataType | None = None) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        for arg in args:
            comparable_elements(arg, op)
        if tighter(args[0].dtype, args[1].dtype) is None:
            raise Refused(f"{op}() of {name_of(args[0].dtype)} and {name_of(args[1].dtype)}", "cast one of them")
        same = united(args, f"{op}()", promote_text=False)
        if dtype is None:
            same = tuple(_as_set(a, op) for a in same)
        return call(op, same, dtype if dtype is not None else same[0].dtype)

    return build


def _union_form(_: Call, a: list[str]) -> str:
    def body(xs: str, ys: str) -> str:
        return null_if_null([xs, ys], let([f"list_concat({xs}, {ys})"], _distinct_of))

    return let(a, body)


def _kept_form(node: Call, a: list[str]) -> str:
    test = "IS NULL" if node.op == "array_except" else "IS NOT NULL"

    def body(xs: str, ys: str) -> str:
        e = fresh(xs, ys)
        kept = f"list_filter({_distinct_of(xs)}, lambda {e}: list_position({ys}, {e}) {test})"
        return null_if_null([xs, ys], kept)

    return let(a, body)


def _overlap_form(_: Call, a: list[str]) -> str:
    def body(xs: str, ys: str) -> str:
        found = f"WHEN list_has_any({xs}, {ys}) THEN TRUE"
        hole = f"(list_position({xs}, NULL) IS NOT NULL OR list_position({ys}, NULL) IS NOT NULL)"
        maybe = f"WHEN len({xs}) > 0 AND len({ys}) > 0 AND {hole} THEN NULL"
        return null_if_null([xs, ys], "FALSE", found, maybe)

    return let(a, body)


def _zip(args: Sequence[Node]) -> Node:
    """Names and arrays in turn, as the reader gives them."""
    names = [str(a.value) for a in args[::2] if isinstance(a, Literal)]
    arrays = [as_array(a, "arrays_zip") for a in args[1::2]]
    if len({n.lower() for n in names}) != len(arrays):
        raise Refused("arrays_zip() of arrays of one name", "give them different names in a subquery")
    dtype = pa.struct([pa.field(n, a.dtype.value_type) for n, a in zip(names, arrays, strict=True)])
    return call("arrays_zip", tuple(args), array_of(dtype))


def _zip_form(node: Call, a: list[str]) -> str:
    names = [f.name for f in node.dtype.value_type]

    def body(*arrays: str) -> str:
        e = fresh(*arrays)
        fields = ", ".join(f"{literal_sql(n)}: {x}[{e}]" for n, x in zip(names, arrays, strict=True))
        longest = f"greatest({', '.join(f'len({x})' for x in arrays)})" if len(arrays) > 1 else f"len({arrays[0]})"
        return null_if_null(arrays, f"list_transform(range(1, {longest} + 1), lambda {e}: {{{fields}}})")

    return let(a[1::2], body)


def _sorted(args: Sequence[Node]) -> Node:
    if not is_comparable(as_array(args[0], "sort_array").dtype):
        raise Refused(f"sort_array() of {name_of(args[0].dtype)}", "maps cannot be compared")
    if len(args) == 2 and not (isinstance(args[1], Literal) and isinstance(args[1].value, bool)):
        raise Refused("sort_array() in an order that is no constant", "write true or false")
    up = args[1] if len(args) == 2 else Literal(True, BOOLEAN)
    return call("sort_array", (args[0], up), args[0].dtype)


def _sort_form(node: Call, a: list[str]) -> str:
    down = not (isinstance(node.args[1], Literal) and node.args[1].value)
    return sorted_form(a[0], node.dtype.value_type, descending=down, nulls_last=down)


# --- sequence


def _sequence(args: Sequence[Node]) -> Node:
    step = args[2] if len(args) == 3 else None
    if family(args[0].dtype) == "integer":
        same = united(args, "sequence()", promote_text=False)
        if family(same[0].dtype) != "integer":
            raise Refused(f"sequence() of {name_of(same[0].dtype)}", "count with whole numbers")
        return call("sequence", same, array_of(same[0].dtype), fallible=True)
    start, stop = args[0], args[1]
    kind = family(start.dtype)
    if kind not in ("date", "timestamp", "timestamp_ntz") or start.dtype != stop.dtype:
        what = f"sequence() of {name_of(start.dtype)} and {name_of(stop.dtype)}"
        raise Refused(what, "give two numbers, dates or timestamps of one type")
    interval = Interval(days=1)
    if step is not None:
        if not isinstance(step, Literal) or not isinstance(step.value, Interval):
            raise Refused("sequence() of dates with this step", "write the step as INTERVAL '1' DAY")
        interval = step.value
        if interval == Interval() or (kind == "date" and interval.micros):
            raise Refused("sequence() with this interval", "use an interval of days or months for dates, and not of 0")
    micros = interval.days * _DAY_MICROS + interval.micros
    steps = (Literal(interval.months, LONG), Literal(micros, LONG), Literal(step is None, BOOLEAN))
    return call("moments", (start, stop, *steps), array_of(start.dtype), fallible=True)


def _sequence_form(node: Call, a: list[str]) -> str:
    bigs = [f"CAST({x} AS BIGINT)" for x in a]
    name = {1: "TINYINT", 2: "SMALLINT", 4: "INTEGER", 8: "BIGINT"}[node.args[0].dtype.bit_width // 8]

    def body(first: str, last: str, step: str | None = None) -> str:
        by = step if step is not None else f"(CASE WHEN {first} <= {last} THEN 1 ELSE -1 END)"
        operands = [first, last] if step is None else [first, last, step]
        alone = f"WHEN {first} = {last} THEN CAST([{first}] AS {name}[])"
        fits = f"WHEN ({by} > 0 AND {first} < {last}) OR ({by} < 0 AND {first} > {last})"
        run = f"CAST(generate_series({first}, {last}, {by}) AS {name}[])"
        return null_if_null(operands, raise_form(_BOUNDS), alone, f"{fits} THEN {run}")

    return let(bigs, body)


def _moments_form(node: Call, a: list[str]) -> str:
    months, micros, either = (n.value for n in node.args[2:] if isinstance(n, Literal))
    assert isinstance(months, int) and isinstance(micros, int)
    kind = family(node.args[0].dtype)

    def body(first: str, last: str) -> str:
        alone = f"WHEN {first} = {last} THEN [{first}]"
        up = f"WHEN {first} < {last} THEN {_run(kind, first, last, months, micros)}"
        down = f"WHEN {first} > {last} THEN {_run(kind, first, last, -months, -micros)}"
        if either:
            return null_if_null([first, last], "NULL", alone, up, down)
        forwards = months > 0 or micros > 0
        fits = up if forwards else f"WHEN {first} > {last} THEN {_run(kind, first, last, months, micros)}"
        return null_if_null([first, last], raise_form(_BOUNDS), alone, fits)

    return let(a[:2], body)


def _run(kind: str, first: str, last: str, months: int, micros: int) -> str:
    e = fresh(first, last)
    make = {"date": "", "timestamp": "make_timestamptz", "timestamp_ntz": "make_timestamp"}[kind]
    if not months:
        if kind == "date":
            days = f"generate_series(CAST(0 AS BIGINT), CAST({last} - {first} AS BIGINT), {micros // _DAY_MICROS})"
            return f"list_transform({days}, lambda {e}: {first} + CAST({e} AS INTEGER))"
        return (
            f"list_transform(generate_series(epoch_us({first}), epoch_us({last}), {micros}), lambda {e}: {make}({e}))"
        )

    # Each moment is counted from the first one, so that the 31st comes back after February.
    def wall(x: str) -> str:
        return f"make_timestamp(epoch_us({x}))" if kind == "timestamp" else x

    moved = f"{wall(first)} + to_months(CAST({e} * {months} AS INTEGER))"
    moved = f"CAST({moved} AS DATE)" if kind == "date" else f"{make}(epoch_us({moved}))"
    count = f"abs((year({wall(last)}) - year({wall(first)})) * 12 + month({wall(last)}) - month({wall(first)}))"
    steps = f"range(CAST({count} AS BIGINT) // {abs(months)} + 1)"
    compare = "<=" if months > 0 else ">="
    return f"list_filter(list_transform({steps}, lambda {e}: {moved}), lambda {e}: {e} {compare} {last})"


FUNCTIONS = (
    Function(
        "array_distinct",
        "array",
        _distinct,
        1,
        1,
        {"array_distinct": lambda _, a: let(a, _distinct_of), "zero free": _zero_free_form},
    ),
    Function("array_union", "array", _pair("array_union"), 2, 2, {"array_union": _union_form}),
    Function("array_except", "array", _pair("array_except"), 2, 2, {"array_except": _kept_form}),
    Function("array_intersect", "array", _pair("array_intersect"), 2, 2, {"array_intersect": _kept_form}),
    Function("arrays_overlap", "array", _pair("arrays_overlap", BOOLEAN), 2, 2, {"arrays_overlap": _overlap_form}),
    Function("arrays_zip", "array", _zip, 2, MANY, {"arrays_zip": _zip_form}),
    Function("sort_array", "array", _sorted, 1, 2, {"sort_array": _sort_form}),
    Function(
        "sequence",
        "array",
        _sequence,
        2,
        3,
        {"sequence": _sequence_form, "moments": _moments_form},
        note="of whole numbers, or of dates and timestamps with an INTERVAL",
    ),
)
