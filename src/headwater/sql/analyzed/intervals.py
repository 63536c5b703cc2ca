"""Intervals: differences of moments, products and quotients, their parts, and those made of numbers.
What they mean is in `headwater.sql.intervals`.
"""

from __future__ import annotations

from headwater.sql import operators
from headwater.sql.analyzed.conversions import check_zone
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_function
from headwater.sql.intervals.parts import interval_part
from headwater.sql.nodes import Node, Refused

__all__: list[str] = []

_SCALED = {"MultiplyDTInterval": "*", "MultiplyYMInterval": "*", "DivideDTInterval": "/", "DivideYMInterval": "/"}
_MADE = {"MakeDTInterval": "make_dt_interval", "MakeYMInterval": "make_ym_interval"}
_PARTS = {
    "ExtractANSIIntervalDays": "day",
    "ExtractANSIIntervalHours": "hour",
    "ExtractANSIIntervalMinutes": "minute",
    "ExtractANSIIntervalMonths": "month",
    "ExtractANSIIntervalSeconds": "second",
    "ExtractANSIIntervalYears": "year",
}


@expression("SubtractDates", "SubtractTimestamps")
def _difference(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    if tree.fields.get("legacyInterval"):
        raise Refused("intervals as they were before Spark 3.2", "set spark.sql.legacy.interval.enabled to false")
    end, start = reader.children(tree)
    return operators.arithmetic("-", end, start)


@expression(*_SCALED)
def _scaled(reader: Expressions, tree: Tree) -> Node:
    interval, number = reader.children(tree)
    return operators.arithmetic(_SCALED[tree.kind], interval, number)


@expression(*_MADE)
def _made(reader: Expressions, tree: Tree) -> Node:
    return apply_function(_MADE[tree.kind], reader.children(tree))


@expression(*_PARTS)
def _part(reader: Expressions, tree: Tree) -> Node:
    return interval_part(_PARTS[tree.kind], *reader.children(tree))
