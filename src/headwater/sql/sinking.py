"""A condition that may fail, brought together with the conditions below it.

Engines move conditions down through projections and put those that meet into one AND, whose parts they try in any
order: ``SELECT * FROM (SELECT a FROM t WHERE a <> 0) WHERE 4 / a > 1`` would divide by zero. So a filter that may fail
is moved down here first, to the filters below; standing in one condition, the later parts wait for the earlier ones.
Through a join it is not moved, but what the rows below are known to meet is said once more as a guard, as far as its
columns are still there.
"""

from __future__ import annotations

from headwater.sql.nodes import Call, Column, Node, SubqueryCall, call, rewrite, walk
from headwater.sql.plan import Filter, Join, Plan, Project
from headwater.sql.types import BOOLEAN

__all__ = ["conjuncts", "guards", "sunk"]


def conjuncts(condition: Node) -> tuple[Node, ...]:
    """The parts of a conjunction."""
    return condition.args if isinstance(condition, Call) and condition.op == "and" else (condition,)


def sunk(plan: Filter) -> Plan:
    """The same rows, with a filter that may fail joined to the filters below it."""
    child = plan.child
    if isinstance(child, Filter) and plan.condition.fallible:
        whole = call("and", (*conjuncts(child.condition), *conjuncts(plan.condition)), BOOLEAN)
        return sunk(Filter(child.child, whole))
    if isinstance(child, Project) and _has_filter(child.child):
        condition = _below(plan.condition, child)
        if condition is not None and condition.fallible:
            return Project(sunk(Filter(child.child, condition)), child.items)
    return plan


def guards(plan: Plan) -> list[Node]:
    """Conditions that are FALSE for no row of a plan, and read its columns only."""
    found: list[Node] = []
    if isinstance(plan, Filter):
        found = [*guards(plan.child), *conjuncts(plan.condition)]
    elif isinstance(plan, Project):
        found = guards(plan.child)
    elif isinstance(plan, Join):
        found = [*guards(plan.left), *guards(plan.right)]
    keys = {a.key for a in plan.output}
    return [c for c in found if _is_plain(c) and _reads(c) <= keys]


def _reads(node: Node) -> set[str]:
    return {n.path[0] for n in walk(node) if isinstance(n, Column)}


def _is_plain(node: Node) -> bool:
    return not node.fallible and not any(isinstance(n, SubqueryCall) for n in walk(node))


def _has_filter(plan: Plan) -> bool:
    return isinstance(plan, Filter) or (isinstance(plan, Project) and _has_filter(plan.child))


def _below(condition: Node, project: Project) -> Node | None:
    """The condition in terms of what the projection reads; None where that cannot be said."""
    items = {i.attribute.key: i.node for i in project.items}

    def change(node: Node) -> Node | None:
        if not isinstance(node, Column) or node.path[0] not in items:
            return None
        found = items[node.path[0]]
        if len(node.path) == 1:
            return found
        assert isinstance(found, Column)
        return Column(found.alias, (*found.path, *node.path[1:]), node.dtype, node.nullable)

    fields = [n.path[0] for n in walk(condition) if isinstance(n, Column) and len(n.path) > 1]
    if any(not isinstance(items.get(key), Column) for key in fields):
        return None
    return rewrite(condition, change)
