"""window() and session_window() in a SELECT: the rows get a column of that name, and the calls mean it.

As in Spark, one SELECT has one such window, in its select list or its GROUP BY, over the rows that WHERE leaves. Its
column is a struct that can be named too (``window.start``) where FROM has none of that name, and that ``*`` leaves out.
Outside GROUP BY a row is there once for each of its windows. What a window is, and how groups are made of it, is
`headwater.sql.time_windows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.sql.casts import cast
from headwater.sql.functions.struct import field_of
from headwater.sql.intervals.constants import Interval, interval_text
from headwater.sql.nodes import Column, Literal, Node, Refused, Wrong, call
from headwater.sql.operators import compare, is_null, logic, negate
from headwater.sql.plan import Filter, Generate, Named, Plan, Project
from headwater.sql.reader.clauses import check_args
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.scopes import Entry, RowScope
from headwater.sql.time_windows import last_moment, session_span, spans
from headwater.sql.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, array_of, family, name_of

__all__ = ["TimeWindow", "read_time_window"]

_MOST = 1_000
"""How many windows a row may be in; Spark makes as many as are asked for."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The rows with their window, its column, and what names see of it."""

    plan: Plan
    column: Column
    entry: Entry
    session: bool


@dataclass(frozen=True, slots=True)
class _Meant:
    """One call, read: windows of ``size`` every ``slide`` microseconds, or sessions with a ``gap``."""

    moment: Node
    size: int = 0
    slide: int = 0
    start: int = 0
    gap: Interval | None = None

    @property
    def name(self) -> str:
        return "window" if self.gap is None else "session_window"


def read_time_window(context: Context, select: exp.Expr, plan: Plan, scope: RowScope) -> TimeWindow | None:
    """The window of a SELECT over ``plan``; its calls are marked with the name by which the scope will know it."""
    group = select.args.get("group")
    calls = [c for part in (*select.expressions, group) if part is not None for c in _calls(part)]
    if not calls:
        return None
    reader = QueryReader(context, scope, place=f"{calls[0].name.lower()}()")
    try:
        found = [_meant(reader, node) for node in calls]
        if len(set(found)) > 1:
            raise Wrong("there are two windows of time in one SELECT", "make one of them in a subquery")
        made, column = _made(context, plan, found[0])
    except Refused as refused:
        if refused.position is None:
            refused.position = context.position(calls[-1])
        raise
    meant = found[0]
    attribute = next(a for a in made.output if a.key == column.path[0])
    known = any(e.attribute.name.lower() == meant.name and not e.hidden for e in scope.entries)
    for node in calls:
        node.meta["time_window"] = attribute.key
    entry = Entry((attribute.key,), attribute, hidden=known, starred=False)
    return TimeWindow(made, column, entry, meant.gap is not None)


def _calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """The calls of a part of this SELECT, and not of a subquery in it."""
    if isinstance(node, exp.Query | exp.Subquery):
        return
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("window", "session_window"):
        yield node
        return
    for child in node.iter_expressions():
        yield from _calls(child)


def _meant(reader: QueryReader, node: exp.Expr) -> _Meant:
    check_args(node, "this", "expressions")
    name, given = node.name.lower(), node.expressions
    most = 4 if name == "window" else 2
    if not 2 <= len(given) <= most:
        words = "a time, a length, and at most a slide and a start" if most == 4 else "a time and a gap"
        raise Wrong(f"{name}() takes {words}", f"write {name}(ts, '10 minutes')")
    moment = reader.read(given[0])
    if pa.types.is_struct(moment.dtype):
        moment = last_moment(moment)
    if moment.dtype in (STRING, DATE):
        moment = cast(moment, TIMESTAMP)
    if moment.dtype not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise Refused(f"{name}() over {name_of(moment.dtype)}", "cast the time to a timestamp")
    if name == "session_window":
        gap = reader.read(given[1])
        if not isinstance(gap, Literal) or not isinstance(gap.value, str):
            raise Refused("session_window() with a gap that is no constant text", "write '10 minutes'")
        interval = interval_text(gap.value)
        if interval.months or interval.days * 86_400_000_000 + interval.micros <= 0:
            raise Refused(f"session_window() with a gap of '{gap.value}'", "use days or less, and more than nothing")
        return _Meant(moment, gap=interval)
    size, slide, start = _lengths([reader.read(p) for p in given[1:]])
    return _Meant(moment, size, slide, start)


def _lengths(given: list[Node]) -> tuple[int, int, int]:
    """Size, slide and start in microseconds, held to Spark's bounds."""
    found = [_micros(node) for node in given]
    size = found[0]
    slide = found[1] if len(found) > 1 else size
    start = found[2] if len(found) > 2 else 0
    if size <= 0 or slide <= 0:
        raise Wrong("a window has a length and a slide of more than nothing", "write window(ts, '10 minutes')")
    if slide > size:
        raise Wrong(
            "the windows slide by more than they are long", "use a shorter slide: window(ts, '10 minutes', '5 minutes')"
        )
    if abs(start) >= slide:
        raise Wrong("the start of the windows is not within the slide", "start by less than one slide")
    if -(-size // slide) > _MOST:
        raise Refused(f"windows of which a row is in more than {_MOST}", "use a longer slide")
    return size, slide, start


def _micros(node: Node) -> int:
    value = node.value if isinstance(node, Literal) else None
    if isinstance(value, int) and family(node.dtype) == "integer":
        return value
    if not isinstance(value, str):
        raise Wrong("the lengths of window() are constants", "write window(ts, '10 minutes')")
    interval = interval_text(value)
    if interval.months:
        raise Wrong(f"months have no fixed length: '{value}'", "use weeks, days, hours, minutes or seconds")
    return interval.days * 86_400_000_000 + interval.micros


def _made(context: Context, plan: Plan, meant: _Meant) -> tuple[Plan, Column]:
    moment = meant.moment
    there = Filter(plan, negate(is_null(moment)))
    if meant.gap is not None:
        return _beside(context, there, meant.name, session_span(moment, meant.gap))
    windows = spans(moment, meant.size, meant.slide, meant.start)
    if len(windows) == 1:
        return _beside(context, there, meant.name, windows[0])
    attribute = context.attribute(meant.name, windows[0].dtype)
    made: Plan = Generate(there, call("array", tuple(windows), array_of(attribute.dtype)), False, None, (attribute,))
    column = attribute.column
    if meant.size % meant.slide:
        inside = [compare(">=", moment, field_of(column, "start")), compare("<", moment, field_of(column, "end"))]
        made = Filter(made, logic("and", inside))
    return made, column


def _beside(context: Context, plan: Plan, name: str, node: Node) -> tuple[Plan, Column]:
    named = context.named(name, node)
    passed = tuple(Named(a, a.column) for a in plan.output)
    return Project(plan, (*passed, named)), named.attribute.column
