"""session_window(): windows of rows with no longer pause between them.

Each row brings a window of its own, from its time to its time and the gap. In the order of their times, one that begins after the end of the one before it
begins a session; the others belong to the session that began last. The session is told by its beginning, which no other session of
the same keys has, so that a row changes what is near it and not every session after it.

Edges are Spark's: a row exactly a gap after the one before it belongs to the same session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.sql.analyzed.reading import Reading
from headwater.sql.functions.struct import field_of
from headwater.sql.nodes import Call, Column, Literal, Node, Ordering, WindowCall
from headwater.sql.operators import cases, compare, is_null, logic
from headwater.sql.plan import Filter, Named, Plan, Project, Window
from headwater.sql.types import INT, NULL

__all__ = ["Cut", "sessions", "with_fields"]


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows, the column that says when the session of each began, and the end of each row's own window."""

    plan: Plan
    start: Column
    end: Column


def with_fields(reading: Reading, below: Plan, whole: Column) -> tuple[Plan, dict[str, Column]]:
    """The rows with the fields of a window beside it, so that they can be keys; below filters, where the window is made."""
    if isinstance(below, Filter):
        child, fields = with_fields(reading, below.child, whole)
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
    named = {name: reading.named(name, node) for name, node in made.items()}
    return Project(child, (*items, *named.values())), {n: i.attribute.column for n, i in named.items()}


def sessions(reading: Reading, below: Plan, keys: Sequence[Node], session: Column) -> Cut:
    """Find the session of each row among those with the same keys; ``session`` is the row's own window."""
    rows, fields = with_fields(reading, below, session)
    start, end = fields["start"], fields["end"]
    order = (Ordering(start),)
    before = WindowCall("lag", (end, Literal(1, INT), Literal(None, end.dtype)), end.dtype, tuple(keys), order, None)
    named = reading.named("lag", before)
    last = named.attribute.column
    begins = logic("or", [is_null(last), compare(">", start, last)])
    opened = reading.named("begin", cases([(begins, start)], Literal(None, NULL)))
    passed = tuple(Named(a, a.column) for a in rows.output)
    made: Plan = Project(Window(rows, (named,)), (*passed, opened))
    newest = WindowCall("max", (opened.attribute.column,), start.dtype, tuple(keys), order, None)
    whole = reading.named("session", newest)
    return Cut(Window(made, (whole,)), whole.attribute.column, end)
