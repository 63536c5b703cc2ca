"""Aggregate calls of plans, as aggregates that can be kept.

A plan says `AggregateCall`: a name, expressions, DISTINCT and FILTER, and among its arguments constants that are
options: the share of a percentile, the separator of listagg. Here these are told apart. Which column holds an argument
is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.incremental.aggregates.aggregation import Aggregation, Extreme
from headwater.incremental.aggregates.registry import aggregation
from headwater.incremental.layout import Order
from headwater.sql.functions.catalogue import by_order
from headwater.sql.functions.struct import field_of
from headwater.sql.guarding import guarded
from headwater.sql.nodes import AggregateCall, Call, Literal, Node
from headwater.sql.operators import is_zero_sign

__all__ = ["aggregation_of", "arguments_of"]

# Their constants are options, not values of rows.
_WITH_OPTIONS = {
    "approx_count_distinct",
    "approx_percentile",
    "listagg",
    "percentile",
    "percentile_cont",
    "percentile_disc",
}


def arguments_of(call: AggregateCall) -> list[Node]:
    """The arguments of a call that are values of rows: what an average is made of is whole numbers where it can be.

    Their sum is exact, and that of their doubles is not.
    """
    args = list(call.args[:1])
    args += [a for a in call.args[1:] if call.op not in _WITH_OPTIONS or not isinstance(a, Literal)]
    if call.op == "count" and not call.distinct:
        return [a for a in args if not isinstance(a, Literal) or a.value is None]
    if call.op != "avg" or not pa.types.is_float64(call.dtype):
        return args
    return [
        a.args[0] if isinstance(a, Call) and a.op == "cast" and pa.types.is_integer(a.args[0].dtype) else a
        for a in args
    ]


def aggregation_of(
    call: AggregateCall,
    name: str,
    column: Callable[[Node], str],
    schema: Callable[[], pa.Schema],
) -> Aggregation:
    """The aggregate of a call, under a name.

    Parameters
    ----------
    column
        gives the name of the column that holds an expression
    schema
        of the rows, once all columns are asked for
    """
    where = None if call.where is None else column(call.where)
    op, ignore_nulls = call.op.removesuffix(" ignore nulls"), call.op.endswith(" ignore nulls")
    if op == "approx_count_distinct":
        why = "Spark estimates it, and an exact number would be another one"
        raise UnsupportedError.operation(f"{op}()", why, "write count(DISTINCT …), which is exact").about(op)
    options = [a.value for a in call.args[1:] if isinstance(a, Literal)] if op in _WITH_OPTIONS else []
    args = arguments_of(call)
    if op in {"min", "max"} and pa.types.is_struct(call.dtype):
        return _extreme_struct(call, name, column, where)
    order = _order(call, column)
    if call.distinct and by_order(op) != "no":  # -0.0 and 0.0 are one value, and what is shown is that
        args = [_zero_free(a) for a in args]
    columns = [column(guarded(a, call.where)) for a in args]
    if op in {"min_by", "max_by"} and order:
        return Extreme(name, columns[0], call.dtype, False, tuple(order), (columns[1],), where=where)
    share: float | list[float] | None = None
    separator = ""
    if "percentile" in op:
        share = _share(call, options, columns)
        flags = [o for o in options if isinstance(o, bool)]
        order = [Order(columns[0], descending=True)] if flags and flags[0] else []
    if op == "listagg" and options:
        separator = str(options[0])
        if len(columns) == 2:
            descending, first = (bool(o) for o in (*options[1:], False, False)[:2])
            key = Order(columns.pop(), descending=descending, nulls_first=first)
            order = order or [key]
    return aggregation(
        op,
        columns,
        schema=schema(),
        name=name,
        distinct=call.distinct,
        where=where,
        order=order,
        share=share,
        separator=separator,
        ignore_nulls=ignore_nulls,
    )


def _order(call: AggregateCall, column: Callable[[Node], str]) -> list[Order]:
    """The order in which rows are taken, where it is more than the values' own, which every aggregate has by itself."""
    within = list(call.within)
    if by_order(call.op) == "list" and not pa.types.is_nested(call.args[0].dtype):
        within = [o for o in within if not is_zero_sign(o.node)]
        if [o.node for o in within] == [call.args[0]]:
            return []
    elif by_order(call.op) == "extreme" and not pa.types.is_nested(call.args[0].dtype):
        return []
    return [Order(column(o.node), descending=o.descending, nulls_first=o.nulls_first) for o in within]


def _share(call: AggregateCall, options: Sequence[object], columns: Sequence[str]) -> float | list[float]:
    numbers = [o for o in options if isinstance(o, int | float | Decimal) and not isinstance(o, bool)]
    if not numbers or len(columns) != 1:
        why = "its share has to be one number"
        raise UnsupportedError.operation(f"{call.op}()", why, "write one percentile for each share").about(call.op)
    if pa.types.is_list(call.dtype):
        return [float(n) for n in (numbers[:-1] if call.op == "approx_percentile" else numbers)]
    return float(numbers[0])


def _extreme_struct(call: AggregateCall, name: str, column: Callable[[Node], str], where: str | None) -> Aggregation:
    """The least or greatest struct: by its fields, one after the other."""
    value = guarded(call.args[0], call.where)
    held = column(value)
    order = [Order(column(part)) for part in _ordered_parts(value, call.op)]
    order += [Order(column(o.node), descending=True) for o in call.within if is_zero_sign(o.node)]
    return Extreme(name, held, call.dtype, call.op == "max", tuple(order), (held,), where=where)


def _zero_free(node: Node) -> Node:
    if not pa.types.is_floating(node.dtype):
        return node
    return Call("+", (node, Literal(0.0, node.dtype)), node.dtype, node.fallible)


def _ordered_parts(value: Node, op: str) -> list[Node]:
    found: list[Node] = []
    for field in value.dtype:
        part = field_of(value, field.name)
        if pa.types.is_struct(part.dtype) and not part.dtype.num_fields:
            continue
        if pa.types.is_nested(part.dtype):
            why = f"its field {field.name} is nested"
            raise UnsupportedError.operation(f"{op}() of a struct", why, "compare structs of plain fields").about(op)
        found.append(part)
    return found
