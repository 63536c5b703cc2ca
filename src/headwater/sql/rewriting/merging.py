"""Projections over projections, and filters over filters, as one; projections that change nothing left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from headwater.sql.nodes import Column, Literal, Node, walk
from headwater.sql.plan import Filter, Plan, Project
from headwater.sql.plan.rebuilding import bottom_up
from headwater.sql.rewriting.conditions import all_of, conjuncts
from headwater.sql.rewriting.projections import composed

__all__ = ["merged"]


def merged(plan: Plan) -> Plan:
    """The same plan with as few projections and filters; nothing is computed twice for it."""
    return bottom_up(plan, _merged)


def _merged(plan: Plan) -> Plan:
    if isinstance(plan, Filter) and isinstance(plan.child, Filter):
        below = plan.child
        return Filter(below.child, all_of([*conjuncts(below.condition), *conjuncts(plan.condition)]))
    if not isinstance(plan, Project):
        return plan
    while isinstance(plan.child, Project) and _once(plan, plan.child):
        inner = plan.child
        plan = Project(inner.child, tuple(replace(i, node=composed(i.node, inner)) for i in plan.items))
    return plan.child if _changes_nothing(plan) else plan


def _once(outer: Project, inner: Project) -> bool:
    """Is each expression of the inner projection read at most once, or free to compute again?"""
    times = Counter(n.path[0] for i in outer.items for n in walk(i.node) if isinstance(n, Column))
    return all(times[i.attribute.key] < 2 or _is_free(i.node) for i in inner.items)


def _is_free(node: Node) -> bool:
    return isinstance(node, Column | Literal)


def _changes_nothing(plan: Project) -> bool:
    passed = [i.node.path if isinstance(i.node, Column) else () for i in plan.items]
    own = [(i.attribute.key,) for i in plan.items]
    # Names matter only at the top, where the output's attributes are compared as a whole.
    return passed == own and tuple(i.attribute for i in plan.items) == plan.child.output
