"""Expressions as readable text, for dumps: types only where a cast changes them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from headwater.base.durations import Duration
from headwater.sql.nodes import (
    AggregateCall,
    Call,
    Column,
    Frame,
    Literal,
    Named,
    Node,
    Offset,
    Ordering,
    SubqueryCall,
    WindowCall,
)
from headwater.sql.row_patterns.calls import AGGREGATE, VALUE, aggregate_of, place_of
from headwater.sql.types import name_of

__all__ = ["expression_text", "named_text", "ordering_text"]

_INFIX = {"=", "!=", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "and", "or", "||", "&", "|", "^", "div"}


def expression_text(node: Node) -> str:
    """One expression in one line.

    >>> import pyarrow as pa
    >>> from headwater.sql.nodes import call
    >>> expression_text(call("+", (Column(None, ("a#1",), pa.int32()), Literal(1, pa.int32())), pa.int32()))
    '(a#1 + 1)'
    """
    if isinstance(node, Column):
        return ".".join(node.path)
    if isinstance(node, Literal):
        return _constant(node)
    if isinstance(node, SubqueryCall):
        return f"{node.kind}({', '.join(map(expression_text, node.args))})"
    if isinstance(node, Call) and node.op in (VALUE, AGGREGATE):
        return _of_rows(node)
    # Each part is written once: twice at each level would be 2^depth times.
    parts = list(map(expression_text, node.args))
    args = ", ".join(parts)
    if isinstance(node, AggregateCall):
        where = f" where {expression_text(node.where)}" if node.where is not None else ""
        return f"{node.op}({'distinct ' if node.distinct else ''}{args}{_within(node)}){where}"
    if isinstance(node, WindowCall):
        return _window(node, args)
    if node.op == "cast":
        return f"cast({args} as {name_of(node.dtype)})"
    if node.op in _INFIX:
        return "(" + f" {node.op} ".join(parts) + ")"
    return f"{node.op}({args})"


def _constant(node: Literal) -> str:
    value = node.value
    if isinstance(value, str | bytes):
        return repr(value)
    if isinstance(value, Duration):
        return f"interval {value.words}"
    if isinstance(value, datetime):
        return f"timestamp'{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"date'{value}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _of_rows(node: Call) -> str:
    """A value of a row of a match, or an aggregate of them, as it is written in MATCH_RECOGNIZE."""
    if node.op == AGGREGATE:
        aggregate = aggregate_of(node)
        inside = ", ".join(map(expression_text, aggregate.args)) or "*"
        of = f" of {'|'.join(aggregate.variables)}" if aggregate.variables else ""
        where = f" where {expression_text(aggregate.where)}" if aggregate.where is not None else ""
        return f"{'final ' if aggregate.final else ''}{aggregate.op}({inside}{of}{where})"
    place = place_of(node)
    inside = expression_text(node.args[0])
    text = f"{'|'.join(place.variables)}:{inside}" if place.variables else inside
    if place.first or place.skipped or place.final:
        skipped = f", {place.skipped}" if place.skipped else ""
        text = f"{'final ' if place.final else ''}{'first' if place.first else 'last'}({text}{skipped})"
    if place.shift:
        text = f"{'next' if place.shift > 0 else 'prev'}({text}, {abs(place.shift)})"
    return text


def _window(node: WindowCall, args: str) -> str:
    parts = []
    if node.partition:
        parts.append("partition by " + ", ".join(map(expression_text, node.partition)))
    if node.order:
        parts.append("order by " + ", ".join(map(ordering_text, node.order)))
    if node.frame is not None:
        parts.append(_frame(node.frame))
    where = f" where {expression_text(node.where)}" if node.where is not None else ""
    skip = " ignore nulls" if node.ignore_nulls else ""
    inside = f"{'distinct ' if node.distinct else ''}{args}{_within(node)}"
    return f"{node.op}({inside}){where}{skip} over ({' '.join(parts)})"


def _within(node: AggregateCall | WindowCall) -> str:
    return f" order by {', '.join(map(ordering_text, node.within))}" if node.within else ""


def _frame(frame: Frame) -> str:
    def bound(value: int | Offset | None, unbounded: str) -> str:
        if value is None:
            return f"unbounded {unbounded}"
        if isinstance(value, Offset) and isinstance(value.amount, Duration):
            return f"{value.amount.words} {'preceding' if value.before else 'following'}"
        if isinstance(value, Offset):
            unit = f" {value.unit}s" if value.unit else ""
            return f"{abs(value.amount)}{unit} {'preceding' if value.before else 'following'}"
        return "current row" if value == 0 else f"{abs(value)} {'preceding' if value < 0 else 'following'}"

    return f"{frame.unit} between {bound(frame.start, 'preceding')} and {bound(frame.end, 'following')}"


def ordering_text(order: Ordering) -> str:
    """One key of an ORDER BY, its habits spelled out."""
    direction = "desc" if order.descending else "asc"
    return f"{expression_text(order.node)} {direction} nulls {'first' if order.nulls_first else 'last'}"


def named_text(named: Named) -> str:
    """``expression as key``, or the key alone where nothing changes."""
    text = expression_text(named.node)
    return text if text == named.attribute.key else f"{text} as {named.attribute.key}"
