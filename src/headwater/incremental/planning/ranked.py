"""The first rows of each partition: ``row_number() <= k`` without numbering the others.

A condition on a rank keeps the first rows of a partition. Then only those are computed and remembered
(`headwater.incremental.operators.topk`), and a change behind them costs nothing, however large the partition is. The
whole condition is still asked of what is left, so it may say more than the bound.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.ranks import Rank
from headwater.incremental.operators.topk import TopK
from headwater.incremental.planning.builder import Builder
from headwater.incremental.planning.equalities import parts_of_conjunction
from headwater.incremental.planning.order import order_columns
from headwater.incremental.planning.partition import partitioned, placed_within
from headwater.incremental.planning.rows import Rows, names_for
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.sql.nodes import Call, Column, Literal, Node, WindowCall, call, rewrite
from headwater.sql.plan import Filter, Plan, Project, Window
from headwater.sql.plan.rebuilding import with_children
from headwater.sql.types import BOOLEAN

__all__ = ["first_rows", "lowered"]

_RANKS = ("row_number", "rank", "dense_rank")
_MOST = 10_000
_MIRRORED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "=": "="}


def first_rows(builder: Builder, shape: Shape) -> Rows | None:
    """The rows of a window that a filter above it bounds by a rank; None where it does not."""
    plan = shape.plan
    assert isinstance(plan, Filter)
    window, below = plan.child, shape.children[0]
    if not isinstance(window, Window) or not isinstance(below.plan, Window):
        return None
    width = len(window.child.output)
    wanted = [i for i in range(len(window.items)) if i + width in below.needed]
    calls = [window.items[i].node for i in wanted]
    ranks = [c for c in calls if isinstance(c, WindowCall) and c.op in _RANKS]
    if not ranks or len(ranks) < len(calls) or any((c.partition, c.order) != _spec(ranks[0]) for c in ranks):
        return None
    bounds = _bounds(plan.condition)
    limits = {i: bounds[window.items[i].attribute.key] for i in wanted if window.items[i].attribute.key in bounds}
    if not limits:
        return None
    chosen = min(limits, key=lambda i: limits[i])
    if limits[chosen] > _MOST:
        return None
    by = window.items[chosen].node
    assert isinstance(by, WindowCall)
    child = builder.rows(below.children[0])
    scope = child.scope(window.child.output)
    names = names_for([window.items[i].attribute.name for i in wanted], child.stream.columns)
    passed = [c if i in below.needed else None for i, c in enumerate(child.columns)]
    kept = [(c, c) for c in child.stream.columns if c in passed]
    stream, keys = partitioned(scope, by.partition)
    stream, order = order_columns(scope, by.order, stream)
    circuit = builder.circuit
    arranged = circuit.arranged(stream.vertex, keys, order, columns=[c for c, _ in kept], alone=True)
    made = [Rank(n, c.op) for n, c in zip(names, ranks, strict=True)]  # type: ignore[arg-type]
    limit, what, sql = max(limits[chosen], 0), by.op, ", ".join(scope.text(c) for c in ranks)
    vertex = circuit.add(
        lambda s: TopK(s, limit, by=what, ranks=made, columns=kept, sql=sql),  # type: ignore[arg-type]
        [arranged],
    )
    vertex.placed_by = placed_within(arranged, kept)
    called = dict(zip(wanted, names, strict=True))
    return Rows(Stream(circuit, vertex), (*passed, *(called.get(i) for i in range(len(window.items)))))


def lowered(plan: Plan) -> Plan:
    """The same plan with conditions on windows right above them, where only columns are renamed in between."""
    plan = with_children(plan, tuple(map(lowered, plan.children)))
    if not isinstance(plan, Filter) or not isinstance(plan.child, Project):
        return plan
    project = plan.child
    inner = project.child
    if not isinstance(inner, Window) and not (isinstance(inner, Filter) and isinstance(inner.child, Window)):
        return plan
    items = {i.attribute.key: i.node for i in project.items}
    if any(not isinstance(items.get(key), Column) for key in keys_of(plan.condition)):
        return plan

    def change(node: Node) -> Node | None:
        if not isinstance(node, Column):
            return None
        found = items[node.path[0]]
        assert isinstance(found, Column)
        return Column(found.alias, (*found.path, *node.path[1:]), node.dtype, node.nullable)

    condition = rewrite(plan.condition, change)
    if isinstance(inner, Filter):
        both = (*parts_of_conjunction(inner.condition), *parts_of_conjunction(condition))
        return replace(project, child=Filter(inner.child, call("and", both, BOOLEAN)))
    return replace(project, child=Filter(inner, condition))


def _spec(one: WindowCall) -> tuple[object, object]:
    return one.partition, one.order


def _bounds(condition: Node) -> dict[str, int]:
    """The greatest value that a condition allows, by the key of a column."""
    found: dict[str, int] = {}
    for part in parts_of_conjunction(condition):
        if not isinstance(part, Call) or part.op not in _MIRRORED or len(part.args) != 2:
            continue
        op, (left, right) = part.op, part.args
        if isinstance(left, Literal):
            op, left, right = _MIRRORED[op], right, left
        if not isinstance(left, Column) or not isinstance(right, Literal) or op in (">", ">="):
            continue
        if isinstance(right.value, int) and not isinstance(right.value, bool):
            bound = right.value - (op == "<")
            found[left.path[0]] = min(bound, found.get(left.path[0], bound))
    return found
