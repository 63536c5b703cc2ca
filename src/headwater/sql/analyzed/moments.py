"""Dates and timestamps moved by constant intervals, and counted out by them."""

from __future__ import annotations

from headwater.sql.analyzed.constants import interval_of
from headwater.sql.analyzed.conversions import check_zone
from headwater.sql.analyzed.datatypes import INTERVAL
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.functions.catalogue import apply_function
from headwater.sql.intervals import Interval, add_interval
from headwater.sql.nodes import Literal, Node, Refused

__all__: list[str] = []


@expression("TimestampAddInterval", "TimestampAddYMInterval", "DateAddYMInterval", "DateAddInterval", "TimeAdd")
def _moved(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    moment, interval = tree.children
    return add_interval(reader.read(moment), interval_of(reader, interval))


@expression("DateAdd", "DateSub")
def _days(reader: Expressions, tree: Tree) -> Node:
    day, count = tree.children
    sign, inner = 1 if tree.kind == "DateAdd" else -1, count
    if inner.kind == "UnaryMinus":
        sign, inner = -sign, inner.children[0]
    if inner.kind == "ExtractANSIIntervalDays":  # date + INTERVAL '3' DAY
        found = interval_of(reader, inner.children[0])
        days = Interval(days=sign * found.days) if found.days else Interval(days=0)
        if found.micros or found.months:
            raise Refused("a date with an interval of hours or less", "cast the date to a timestamp first")
        return add_interval(reader.read(day), days)
    return apply_function("date_add" if tree.kind == "DateAdd" else "date_sub", reader.children(tree))


@expression("Sequence")
def _sequence(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    start, stop, *steps = tree.children
    given = [reader.read(start), reader.read(stop)]
    for step in steps:
        found = reader.read(step) if step.kind != "UnaryMinus" else None
        if found is None or found.dtype == INTERVAL:
            try:
                found = Literal(interval_of(reader, step), INTERVAL)
            except Refused:
                found = reader.read(step)
        given.append(found)
    return apply_function("sequence", given)
