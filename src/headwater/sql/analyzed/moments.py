"""Dates and timestamps moved by intervals, and counted out by constant ones."""

from __future__ import annotations

from headwater.sql.analyzed.constants import interval_of
from headwater.sql.analyzed.conversions import check_zone
from headwater.sql.analyzed.datatypes import INTERVAL, dtype_of
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_function
from headwater.sql.casts import cast
from headwater.sql.interval_types import DAY, is_interval
from headwater.sql.intervals.arithmetic import moved
from headwater.sql.intervals.constants import add_interval
from headwater.sql.nodes import Literal, Node, Refused

__all__: list[str] = []


@expression("TimestampAddInterval", "TimestampAddYMInterval", "DateAddYMInterval", "DateAddInterval", "TimeAdd")
def _moved(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    moment, interval = tree.children
    back = interval.kind == "UnaryMinus"
    by = _value(reader, interval.children[0] if back else interval)
    if by is None:
        return add_interval(reader.read(moment), interval_of(reader, interval))
    return moved(reader.read(moment), by, cast, back=back)


def _value(reader: Expressions, tree: Tree) -> Node | None:
    """An interval of days or of months; None for one of Spark's mixed ones."""
    if (
        tree.kind in ("Cast", "KnownNullable", "Alias")
        and dtype_of(tree.fields.get("dataType", "interval")) == INTERVAL
    ):
        return None
    found = reader.read(tree)
    return found if is_interval(found.dtype) else None


@expression("DateAdd", "DateSub")
def _days(reader: Expressions, tree: Tree) -> Node:
    day, count = tree.children
    sign, inner = 1 if tree.kind == "DateAdd" else -1, count
    if inner.kind == "UnaryMinus":
        sign, inner = -sign, inner.children[0]
    if inner.kind == "ExtractANSIIntervalDays":  # date + INTERVAL '3' DAY
        return moved(reader.read(day), cast(reader.read(inner.children[0]), DAY), cast, back=sign < 0)
    return apply_function("date_add" if tree.kind == "DateAdd" else "date_sub", reader.children(tree))


@expression("Sequence")
def _sequence(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    start, stop, *steps = tree.children
    given = [reader.read(start), reader.read(stop)]
    for step in steps:
        found = reader.read(step) if step.kind != "UnaryMinus" else None
        if found is None or found.dtype == INTERVAL or is_interval(found.dtype):
            try:
                found = Literal(interval_of(reader, step), INTERVAL)
            except Refused:
                found = reader.read(step)
        given.append(found)
    return apply_function("sequence", given)
