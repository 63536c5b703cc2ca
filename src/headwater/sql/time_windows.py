"""Windows of time: window() and session_window(), which put rows into spans of time to be grouped by.

A window is a struct of two moments, ``start`` and ``end``; the second does not belong to it. window() has spans of one
length, laid from the epoch on: a row is in one of them, or in several where they overlap, and is there once for each.
session_window() gives each row a span of its own, from its time to its time and the gap; grouped by, those that overlap
or touch are one.

In groups the two moments are keys of their own, so that no struct has to be compared, and the struct is made again
above. To find the sessions, rows are put in the order of their times among those with the same other keys: one that
begins after the end of the one before it begins a session; the others belong to the session that began last. The
session is told by its beginning, which no other session of the same keys has, so that a row changes what is near it and
not every session after it.

Edges are Spark's: a row exactly a gap after the one before it belongs to the same session; a time that is null is in no
window. Both front ends share this: Spark's analyzer writes the structs itself, our reader by `spans` and
`session_span`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.sql.calls import apply_function
from headwater.sql.casts import cast
from headwater.sql.functions.struct import field_of
from headwater.sql.intervals.constants import Interval, add_interval
from headwater.sql.literals import text_literal
from headwater.sql.nodes import AggregateCall, Call, Column, Literal, Node, Ordering, Refused, WindowCall, Wrong, walk
from headwater.sql.operators import arithmetic, cases, compare, is_null, logic
from headwater.sql.plan import Filter, Named, Plan, Project, Window
from headwater.sql.types import INT, LONG, NULL, TIMESTAMP, TIMESTAMP_NTZ, name_of

__all__ = [
    "Cut",
    "check_sessions",
    "last_moment",
    "session_begin",
    "session_span",
    "sessions",
    "spans",
    "struct_of",
    "taken_apart",
    "with_fields",
]

Namer = Callable[[str, Node], Named]
"""Gives an expression a column of its own."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows, the column that says when the session of each began, and the end of each row's own window."""

    plan: Plan
    start: Column
    end: Column


def struct_of(fields: Mapping[str, Node]) -> Node:
    """A struct of these fields."""
    return apply_function("named_struct", [p for name, node in fields.items() for p in (text_literal(name), node)])


def spans(moment: Node, size: int, slide: int, start: int) -> list[Node]:
    """The windows that a moment may be in, the latest first; all in microseconds.

    Where ``size`` is no multiple of ``slide``, the last of them may have ended by then.
    """
    micros = apply_function("unix_micros", [cast(moment, TIMESTAMP)])
    since = arithmetic("-", micros, Literal(start, LONG)) if start else micros
    newest = arithmetic("-", micros, apply_function("pmod", [since, Literal(slide, LONG)]))
    found = []
    for number in range(-(-size // slide)):
        begin = arithmetic("-", newest, Literal(number * slide, LONG)) if number else newest
        sides = {"start": begin, "end": arithmetic("+", begin, Literal(size, LONG))}
        found.append(
            struct_of({n: cast(apply_function("timestamp_micros", [m]), moment.dtype) for n, m in sides.items()})
        )
    return found


def session_span(moment: Node, gap: Interval) -> Node:
    """The window that a row brings to a session."""
    return struct_of({"start": moment, "end": add_interval(moment, gap)})


def last_moment(window: Node) -> Node:
    """The last moment of a window: window_time(window)."""
    fields = {f.name: f.type for f in window.dtype} if pa.types.is_struct(window.dtype) else {}
    if list(fields) != ["start", "end"] or not set(fields.values()) <= {TIMESTAMP, TIMESTAMP_NTZ}:
        raise Wrong(f"{name_of(window.dtype)} is no window", "give the column that window() or session_window() made")
    return add_interval(field_of(window, "end"), Interval(micros=-1))


def with_fields(named: Namer, below: Plan, whole: Column) -> tuple[Plan, dict[str, Column]]:
    """The rows with the fields of a window beside it, so that they can be keys; below filters,
    where the window is made.
    """
    if isinstance(below, Filter):
        child, fields = with_fields(named, below.child, whole)
        return replace(below, child=child), fields
    made = {f.name: field_of(whole, f.name) for f in whole.dtype}
    items, child = tuple(Named(a, a.column) for a in below.output), below
    if isinstance(below, Project):
        items, child = below.items, below.child
        node = next(i.node for i in items if i.attribute.key == whole.path[0])
        if isinstance(node, Call) and node.op == "named_struct":
            made = dict(zip(made, node.args[1::2], strict=True))
        else:
            made = {name: field_of(node, name) for name in made}
    columns = {name: named(name, node) for name, node in made.items()}
    return Project(child, (*items, *columns.values())), {n: i.attribute.column for n, i in columns.items()}


def taken_apart(whole: Node, fields: Mapping[str, Node]) -> dict[Node, Node]:
    """What a window that was grouped by is above the groups, and each of its fields."""
    return {whole: struct_of(fields)} | {field_of(whole, name): node for name, node in fields.items()}


def sessions(named: Namer, below: Plan, keys: Sequence[Node], session: Column) -> Cut:
    """Find the session of each row among those with the same keys; ``session`` is the row's own window."""
    rows, fields = with_fields(named, below, session)
    start, end = fields["start"], fields["end"]
    order = (Ordering(start),)
    before = WindowCall("lag", (end, Literal(1, INT), Literal(None, end.dtype)), end.dtype, tuple(keys), order, None)
    lag = named("lag", before)
    opened = named("begin", session_begin(start, lag.attribute.column))
    passed = tuple(Named(a, a.column) for a in rows.output)
    made: Plan = Project(Window(rows, (lag,)), (*passed, opened))
    newest = WindowCall("max", (opened.attribute.column,), start.dtype, tuple(keys), order, None)
    whole = named("session", newest)
    return Cut(Window(made, (whole,)), whole.attribute.column, end)


def session_begin(start: Node, last: Node) -> Node:
    """When a row begins a session, its time: ``last`` is the end of the window of the row before it."""
    begins = logic("or", [is_null(last), compare(">", start, last)])
    return cases([(begins, start)], Literal(None, NULL))


def check_sessions(nodes: Iterable[Node], session: Column) -> None:
    """Refuse an aggregate of a session's own bounds: below the groups each row has its own window."""
    for node in nodes:
        for part in walk(node):
            if isinstance(part, AggregateCall) and any(
                isinstance(n, Column) and n.path[0] == session.path[0] for n in walk(part)
            ):
                raise Refused(f"{part.op}() of a session_window that is grouped by", "aggregate it in a query above")
