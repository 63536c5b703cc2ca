"""Conditions moved to where they decide earliest: below projections, groups and joins, down to the scans.

A condition that may fail is not moved below anything: there it would meet rows that never came up to it. It is moved
above the others instead, so that it meets the fewest. Inner joins under a condition are put in order by `joining`.

Invariants: the rows stay the same, and nothing that may fail is computed for a row for which it was not computed
before, but for the two sides of an equality between two relations, which every engine computes for the rows of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.sql.nodes import Call, Column, Node, WindowCall, walk
from headwater.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Match,
    Plan,
    Project,
    SetOperation,
    Sort,
    Window,
    With,
)
from headwater.sql.plan.rebuilding import substituted, with_children
from headwater.sql.rewriting.conditions import all_of, conjuncts, filtered
from headwater.sql.rewriting.factoring import factored
from headwater.sql.rewriting.joining import joined
from headwater.sql.rewriting.keys import reads
from headwater.sql.rewriting.projections import composed

__all__ = ["pushed"]

_COMPARING = {"=", "!=", "<", "<=", ">", ">=", "like", "is not null", "in"}
_STRICT = {"cast", "+", "-", "*", "/", "%", "minus", "abs", "substring", "field"}


def pushed(plan: Plan) -> Plan:
    """The plan with its conditions moved down; for plans without subqueries in expressions."""
    return _sink(plan, [])


def _sink(plan: Plan, parts: Sequence[Node]) -> Plan:
    """The rows of the plan for which the conjuncts hold; none of them may fail."""
    if isinstance(plan, Filter):
        mine = factored(conjuncts(plan.condition))
        late = [c for c in mine if c.fallible]
        below = _sink_join(plan.child, [*(c for c in mine if not c.fallible), *parts], late)
        return below if below is not None else filtered(_sink(plan.child, [*_safe(mine), *parts]), late)
    if isinstance(plan, Join):
        found = _sink_join(plan, parts, [])
        assert found is not None
        return found
    if isinstance(plan, Project):
        moved = {part: composed(part, plan) for part in parts}
        down = [m for m in moved.values() if not m.fallible]
        return filtered(Project(_sink(plan.child, down), plan.items), [p for p, m in moved.items() if m.fallible])
    if isinstance(plan, Aggregate):
        return _aggregate(plan, parts)
    if isinstance(plan, SetOperation) and plan.kind == "union" and plan.every:
        return _union(plan, parts)
    if isinstance(plan, Sort | Distinct):
        return replace(plan, child=_sink(plan.child, parts))
    if isinstance(plan, With):
        definitions = tuple((name, _sink(p, [])) for name, p in plan.definitions)
        return With(definitions, _sink(plan.child, parts))
    if isinstance(plan, Window):
        keys = [set(_plain(i.node.partition)) for i in plan.items if isinstance(i.node, WindowCall)]
        common = set.intersection(*keys) if keys else set()
    elif isinstance(plan, Match):
        common = set(_plain(plan.partition))
    elif isinstance(plan, Generate):
        common = {a.key for a in plan.child.output}
    else:
        children = tuple(_sink(child, []) for child in plan.children)
        return filtered(with_children(plan, children), parts)
    down = [p for p in parts if reads(p) <= common]
    changed = replace(plan, child=_sink(plan.child, down))
    return filtered(changed, [p for p in parts if p not in down])


def _safe(parts: Sequence[Node]) -> list[Node]:
    return [p for p in parts if not p.fallible]


def _plain(nodes: Sequence[Node]) -> list[str]:
    return [n.path[0] for n in nodes if isinstance(n, Column) and len(n.path) == 1]


def _aggregate(plan: Aggregate, parts: Sequence[Node]) -> Plan:
    plain = {k.attribute.key: k.node for k in plan.keys if not k.node.fallible} if plan.sets is None else {}
    below = [p for p in parts if reads(p) and reads(p) <= plain.keys()]
    over = Project(plan.child, tuple(k for k in plan.keys if k.attribute.key in plain))
    child = _sink(plan.child, [composed(p, over) for p in below])
    return filtered(replace(plan, child=child), [p for p in parts if p not in below])


def _union(plan: SetOperation, parts: Sequence[Node]) -> Plan:
    sides = []
    for child in (plan.left, plan.right):
        columns: dict[tuple[str, ...], Node] = {}
        for part in parts:
            for column in _columns(part):
                at = next(i for i, a in enumerate(plan.columns) if a.key == column.path[0])
                inner = child.output[at].column
                columns[column.path] = replace(column, path=(inner.path[0], *column.path[1:]))
        sides.append(_sink(child, [substituted(p, columns) for p in parts]))
    return replace(plan, left=sides[0], right=sides[1])


def _columns(node: Node) -> list[Column]:
    return [n for n in walk(node) if isinstance(n, Column)]


def _sink_join(plan: Plan, parts: Sequence[Node], late: Sequence[Node]) -> Plan | None:
    """A join under conditions: ``late`` are those that may fail. None where the plan is no join."""
    if not isinstance(plan, Join):
        return None
    if plan.kind in ("left", "right"):
        optional = plan.right if plan.kind == "left" else plan.left
        keys = {a.key for a in optional.output}
        if any(_rejects_null(p, keys) for p in (*parts, *late)):
            plan = replace(plan, kind="inner")
    if plan.kind in ("inner", "cross"):
        return joined(plan, [*parts, *late], _sink)
    own = factored(conjuncts(plan.condition))
    sides = {"left": plan.left, "right": plan.right}
    down: dict[str, list[Node]] = {"left": [], "right": []}
    keeping = {"left": ("left",), "right": ("right",), "semi": ("left",), "anti": ("left",)}.get(plan.kind, ())
    binding = {"left": ("right",), "right": ("left",), "semi": ("left", "right"), "anti": ("right",)}.get(plan.kind, ())
    above: list[Node] = []
    on: list[Node] = []
    for part in parts:
        place = next((s for s in keeping if reads(part) <= {a.key for a in sides[s].output}), None)
        (above if place is None else down[place]).append(part)
    for part in own:
        place = next((s for s in binding if reads(part) and reads(part) <= {a.key for a in sides[s].output}), None)
        (on if place is None or part.fallible else down[place]).append(part)
    changed = Join(plan.kind, _sink(plan.left, down["left"]), _sink(plan.right, down["right"]), all_of(on))
    return filtered(changed, [*above, *late])


def _rejects_null(node: Node, keys: set[str]) -> bool:
    """Is the condition not true wherever all columns of ``keys`` are null?"""
    if not isinstance(node, Call) or node.op not in _COMPARING:
        return False
    args = node.args[:1] if node.op == "in" else node.args
    return any(_is_null_with(a, keys) for a in args)


def _is_null_with(node: Node, keys: set[str]) -> bool:
    if isinstance(node, Column):
        return node.path[0] in keys
    return isinstance(node, Call) and node.op in _STRICT and any(_is_null_with(a, keys) for a in node.args)
