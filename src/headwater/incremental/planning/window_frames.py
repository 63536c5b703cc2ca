"""Aggregates in a window: over a frame of neighbours, or over the whole partition.

Over a frame there are count, sum, avg, min, max, the deviations, first, last and nth_value; conditions count and min or
max of booleans are made of these. Over the whole partition there is every aggregate that can be kept at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.incremental.aggregates.calls import aggregation_of, arguments_of
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.dataflow.vertex import Vertex
from headwater.incremental.operators.frames import Frame, FrameFunction, Frames
from headwater.incremental.planning.arguments import Arguments
from headwater.incremental.planning.order import order_columns, order_length
from headwater.incremental.planning.partition import placed_within
from headwater.incremental.planning.rows import Scope
from headwater.incremental.recipes.aggregates import kept as kept_by
from headwater.incremental.recipes.joins import inner_join
from headwater.sql.functions.catalogue import by_order
from headwater.sql.nodes import AggregateCall, Literal, Node, Offset, Ordering, WindowCall, call
from headwater.sql.types import BOOLEAN, name_of

__all__ = ["framed", "is_whole", "joined_back", "takes_a_row"]

_NAMES = {"first": "first_value", "last": "last_value"}
_AGGREGATES = {"count", "sum", "avg", "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop"}
_MADE_OF = {"bool_and": "min", "bool_or": "max", "count_if": "count", "mean": "avg", "try_avg": "avg"}
_UNITS = {"day": timedelta(days=1), "microsecond": timedelta(microseconds=1)}
_NESTED = "compare one of its parts"
_HINT = (
    "use count, sum, avg, min, max, stddev, variance, first_value, last_value or nth_value, or a frame "
    "of the whole partition"
)


def takes_a_row(one: WindowCall) -> bool:
    """Is it the value of the row at a place of its frame?"""
    return by_order(one.op) == "place"


def is_whole(one: WindowCall) -> bool:
    """Does a function look at its whole partition, and can it be kept as an aggregate of it?"""
    if one.op == "nth_value":
        return False
    if one.frame is None:
        return not one.order
    endless = one.frame.start is None and one.frame.end is None
    # All rows are peers of each other where there is no order.
    return endless or (not one.order and one.frame.unit == "range")


def framed(
    scope: Scope,
    stream: Stream,
    keys: Sequence[str],
    orders: tuple[Sequence[Ordering], Sequence[Ordering]],
    calls: Mapping[str, WindowCall],
    kept: Sequence[tuple[str, str]],
    sql: str,
) -> Vertex:
    """The node of functions over one frame; ``orders`` are that of the window, and that of the rows in a frame."""
    arguments = Arguments(scope)
    functions = [_function(name, one, arguments) for name, one in calls.items()]
    first = next(iter(calls.values()))
    order, within = orders
    source, ordered = order_columns(scope, within or order, stream)
    peers = order_length(scope, order) if within else None
    source = arguments.added_to(source)
    frame = _frame(first)
    circuit = source.circuit
    read = [*(c for c, _ in kept), *(f.column for f in functions if f.column is not None)]
    arranged = circuit.arranged(source.vertex, keys, ordered, columns=read, alone=True)
    vertex = circuit.add(lambda s: Frames(s, functions, frame=frame, peers=peers, columns=kept, sql=sql), [arranged])
    for name, one in calls.items():
        have = vertex.layout.schema.field(name).type
        assert have == one.dtype, f"{one.op} over a frame gives {have}, and the plan says {one.dtype}"
    vertex.placed_by = placed_within(arranged, kept)
    return vertex


def _frame(one: WindowCall) -> Frame:
    given = one.frame
    if given is None:
        return Frame("range", None, 0) if one.order else Frame("rows", None, None)
    begin, end = (_distance(b) for b in (given.start, given.end))
    return Frame("rows" if given.unit == "rows" else "range", begin, end)


def _distance(bound: int | Offset | None) -> int | Decimal | timedelta | None:
    if bound is None or isinstance(bound, int):
        return bound
    if bound.unit in _UNITS:
        return int(bound.amount) * _UNITS[bound.unit]
    if bound.unit or isinstance(bound.amount, float):
        what = f"RANGE with a distance in {bound.unit}s" if bound.unit else "RANGE with a distance along a float"
        why = "its length depends on the row" if bound.unit else "the sum of two floats is rounded"
        hint = "write it in days" if bound.unit else "order by a whole number or a decimal"
        raise UnsupportedError.operation(what, why, hint).about("range")
    return bound.amount


def _function(name: str, one: WindowCall, arguments: Arguments) -> FrameFunction:
    op = one.op.removesuffix(" ignore nulls")
    ignores = one.ignore_nulls or op != one.op
    places = takes_a_row(one)
    if one.distinct or (not places and op not in _AGGREGATES and op not in _MADE_OF):
        what = f"{op}({'DISTINCT …' if one.distinct else ''}) over a frame"
        raise UnsupportedError.operation(what, "it cannot be taken from one frame to the next", _HINT).about(op)
    if places:
        nth = one.args[1].value if op == "nth_value" and isinstance(one.args[1], Literal) else 1
        assert isinstance(nth, int), "a place is a constant"
        assert one.where is None, "no place is taken of some of the rows"
        column = arguments.column(one.args[0])
        return FrameFunction(name, _NAMES.get(op, op), column, nth=nth, ignore_nulls=ignores)  # type: ignore[arg-type]
    args = arguments_of(AggregateCall(op, one.args, one.dtype))
    what = _MADE_OF.get(op, op)
    if op in {"min", "max"} and pa.types.is_nested(args[0].dtype):
        why = "such values have no order in a frame"
        raise UnsupportedError.operation(f"{op}() of {name_of(args[0].dtype)}", why, _NESTED).about(op)
    if op == "count_if":
        value: Node | None = _only(one.args[0], Literal(True, BOOLEAN))
    elif op == "count":
        value = _present(args, one)
    else:
        value = args[0]
    if one.where is not None and value is not None:
        value = _only(one.where, value)
    if value is None:
        return FrameFunction(name, "count_rows")
    return FrameFunction(name, what, arguments.column(value))  # type: ignore[arg-type]


def _present(args: Sequence[Node], one: WindowCall) -> Node | None:
    """Something that is null where a row does not count; None if all do."""
    if len(args) == 1:
        return args[0]
    if not args:
        return None if one.where is None else Literal(True, BOOLEAN)
    tests = tuple(call("is not null", (a,), BOOLEAN) for a in args)
    return _only(call("and", tests, BOOLEAN), Literal(True, BOOLEAN))


def _only(condition: Node, value: Node) -> Node:
    return call("case", (condition, value, Literal(None, value.dtype)), value.dtype)


def joined_back(
    scope: Scope,
    partition: Sequence[Node],
    calls: Mapping[str, WindowCall],
    kept: Sequence[tuple[str, str]],
    sql: str,
) -> Stream:
    """The rows with aggregates of their whole partitions; its first and last row are extremes of its order."""
    arguments = Arguments(scope)
    keys = [arguments.key(node) for node in partition]
    chosen = []
    for name, one in calls.items():
        op = f"{one.op} ignore nulls" if one.ignore_nulls else one.op
        within = one.within or (one.order if takes_a_row(one) else ())
        plain = AggregateCall(op, one.args, one.dtype, one.distinct, one.where, within)
        chosen.append(aggregation_of(plain, name, arguments.column, arguments.schema))
    source = arguments.added_to(scope.stream)
    keys = list(dict.fromkeys(keys))
    grouped = kept_by(source, keys, chosen, sql=sql)
    values = [(name, name) for name in calls]
    found = inner_join(source, grouped, keys, keys, kept, values, nulls_match=True, sql=sql)
    for name, one in calls.items():
        have = found.schema.field(name).type
        assert have == one.dtype, f"{one.op} over a partition gives {have}, and the plan says {one.dtype}"
    return found
