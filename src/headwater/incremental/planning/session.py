"""session_window() in groups: one operator in the place of the two windows that a query engine needs.

`headwater.sql.time_windows.sessions` finds the session of a row by ``lag`` and a running maximum. To a circuit that
would be two arrangements of all rows, and a reach to the end of the partition. `Sessions` has one, and reads the
neighbours of a change as long as they are near.

It takes the place only of just that plan: a row's window ends a constant after its time, which is not null, and nobody
reads what is in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.layout import Order
from headwater.incremental.operators.sessions import Sessions
from headwater.incremental.planning.builder import Builder
from headwater.incremental.planning.equalities import parts_of_conjunction
from headwater.incremental.planning.partition import partitioned, placed_within
from headwater.incremental.planning.rows import Rows, names_for
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.sql.nodes import Call, Column, Literal, Node, WindowCall
from headwater.sql.plan import Filter, Plan, Project, Window
from headwater.sql.time_windows import session_begin

__all__ = ["session_rows"]


@dataclass(frozen=True, slots=True)
class _Found:
    """The rows below both windows, the columns of the time and of the partition, and the gap in microseconds."""

    below: Shape
    start: Column
    partition: tuple[Node, ...]
    gap: int


def session_rows(builder: Builder, shape: Shape) -> Rows | None:
    """The rows of a window that finds sessions; None for every other window."""
    plan, found = shape.plan, _found(shape)
    if found is None:
        return None
    assert isinstance(plan, Window) and isinstance(plan.child, Project)
    width = len(plan.child.items)
    nodes = [plan.child.items[i].node if i < width and i in shape.needed else None for i in range(width)]
    output = found.below.plan.output
    known = {a.key for a in output}
    if any(n is not None and not _is_plain(n) for n in nodes):
        return None
    if not keys_of(*(n for n in nodes if n is not None), *found.partition) <= known:
        return None
    child = builder.rows(found.below)
    scope = child.scope(output)
    passed = [None if n is None else scope.names[n.path[0]] for n in nodes if n is None or isinstance(n, Column)]
    kept = [(c, c) for c in child.stream.columns if c in passed]
    item = plan.items[0]
    (name,) = names_for([item.attribute.name], child.stream.columns)
    stream, keys = partitioned(scope, found.partition)
    order = [Order(scope.names[found.start.path[0]])]
    circuit = builder.circuit
    arranged = circuit.arranged(stream.vertex, keys, order, columns=[c for c, _ in kept], alone=True)
    gap, sql = found.gap, scope.text(found.start)
    vertex = circuit.add(lambda s: Sessions(s, gap, names=(name,), columns=kept, sql=sql), [arranged])
    vertex.placed_by = placed_within(arranged, kept)
    given = name if width in shape.needed else None
    return Rows(Stream(circuit, vertex), (*passed, given))


def _found(shape: Shape) -> _Found | None:
    """What `headwater.sql.time_windows.sessions` has made a plan of; None if it has not."""
    newest, between = _only_call(shape), shape.children[0]
    if newest is None or newest.op != "max" or newest.frame is not None or newest.where is not None:
        return None
    (opened,) = newest.args
    lagged = between.children[0] if isinstance(between.plan, Project) else None
    before = None if lagged is None else _only_call(lagged)
    if lagged is None or before is None or before.op != "lag" or len(newest.order) != 1:
        return None
    start, end = newest.order[0].node, before.args[0]
    assert isinstance(between.plan, Project) and isinstance(lagged.plan, Window)
    made = {i.attribute.key: i.node for i in between.plan.items}
    last = lagged.plan.items[0].attribute.column
    constants = [a.value if isinstance(a, Literal) else a for a in before.args[1:]]
    if (
        not isinstance(start, Column)
        or not isinstance(opened, Column)
        or constants != [1, None]
        or before.ignore_nulls
        or made.get(opened.path[0]) != session_begin(start, last)
        or newest.partition != before.partition
        or newest.order[0] != before.order[0]
        or newest.order[0].descending
    ):
        return None
    below = lagged.children[0]
    gap = _gap(below.plan, start, end)
    return None if gap is None else _Found(below, start, newest.partition, gap)


def _only_call(shape: Shape) -> WindowCall | None:
    plan = shape.plan
    if not isinstance(plan, Window) or len(plan.items) != 1:
        return None
    node = plan.items[0].node
    return node if isinstance(node, WindowCall) else None


def _gap(plan: Plan, start: Column, end: Node) -> int | None:
    """By how many microseconds one column is always after another, which is never null; None if that is not known."""
    if not isinstance(plan, Project) or not isinstance(end, Column):
        return None
    items = {i.attribute.key: i.node for i in plan.items}
    time, later = items.get(start.path[0]), items.get(end.path[0])
    if not isinstance(later, Call) or later.op != "add micros" or time is None or later.args[0] != time:
        return None
    gap = later.args[1]
    if not isinstance(gap, Literal) or not isinstance(gap.value, int) or gap.value <= 0:
        return None
    ticks = pa.types.is_timestamp(time.dtype) and time.dtype.unit == "us"
    return gap.value if ticks and _is_there(plan.child, time) else None


def _is_there(plan: Plan, node: Node) -> bool:
    """Is an expression null in no row?"""
    while isinstance(plan, Project) and all(_is_plain(i.node) for i in plan.items):
        plan = plan.child
    if not isinstance(plan, Filter):
        return False
    tests = [p for p in parts_of_conjunction(plan.condition) if isinstance(p, Call) and p.op == "is not null"]
    return any(test.args == (node,) for test in tests)


def _is_plain(node: Node) -> bool:
    """Is it a column that keeps its key?"""
    return isinstance(node, Column) and len(node.path) == 1
