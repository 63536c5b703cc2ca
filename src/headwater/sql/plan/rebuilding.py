"""A plan made anew from changed children and changed expressions: what every rule needs,
said once for each kind of node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from headwater.sql.nodes import AggregateCall, Call, Column, Node, SubqueryCall, WindowCall, rewrite
from headwater.sql.plan import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Match,
    Named,
    Plan,
    Project,
    Recursion,
    SetOperation,
    Sort,
    Values,
    Window,
    With,
)

__all__ = ["bottom_up", "substituted", "with_children", "with_expressions"]

Expression = TypeVar("Expression", Column, Call, AggregateCall, WindowCall, SubqueryCall)


def with_children(plan: Plan, children: tuple[Plan, ...]) -> Plan:
    """The node over other children, in the order of ``plan.children``."""
    if children == plan.children and all(a is b for a, b in zip(children, plan.children, strict=True)):
        return plan
    if isinstance(plan, With):
        names = (name for name, _ in plan.definitions)
        return With(tuple(zip(names, children[:-1], strict=True)), children[-1])
    if isinstance(plan, Join | SetOperation):
        return replace(plan, left=children[0], right=children[1])
    if isinstance(plan, Recursion):
        return replace(plan, base=children[0], step=children[1])
    if not children:
        return plan
    return replace(plan, child=children[0])  # type: ignore[type-var, call-arg, unused-ignore]


def with_expressions(plan: Plan, change: Callable[[Node], Node]) -> Plan:
    """The node with each of its expressions changed; its children stay."""

    def named(items: tuple[Named, ...]) -> tuple[Named, ...]:
        return tuple(replace(i, node=change(i.node)) for i in items)

    if isinstance(plan, Project | Window):
        return replace(plan, items=named(plan.items))
    if isinstance(plan, Aggregate):
        return replace(plan, keys=named(plan.keys), aggregates=named(plan.aggregates))
    if isinstance(plan, Filter):
        return replace(plan, condition=change(plan.condition))
    if isinstance(plan, Join):
        return plan if plan.condition is None else replace(plan, condition=change(plan.condition))
    if isinstance(plan, Sort):
        return replace(plan, order=tuple(replace(o, node=change(o.node)) for o in plan.order))
    if isinstance(plan, Generate):
        return replace(plan, source=change(plan.source))
    if isinstance(plan, Match):
        return replace(
            plan,
            partition=tuple(map(change, plan.partition)),
            order=tuple(replace(o, node=change(o.node)) for o in plan.order),
            definitions=tuple((name, change(condition)) for name, condition in plan.definitions),
            measures=named(plan.measures),
        )
    if isinstance(plan, Values):
        return replace(plan, rows=tuple(tuple(map(change, row)) for row in plan.rows))
    return plan


def bottom_up(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The tree with ``change`` applied to every node, children first; plans of subqueries are not entered."""
    children = tuple(bottom_up(child, change) for child in plan.children)
    return change(with_children(plan, children))


def substituted(node: Node, columns: dict[tuple[str, ...], Node]) -> Node:
    """The expression with columns, given by their paths, replaced; the plans of its subqueries too."""

    def change(part: Node) -> Node | None:
        if isinstance(part, Column):
            return columns.get(part.path)
        if isinstance(part, SubqueryCall):
            args = tuple(substituted(a, columns) for a in part.args)
            return replace(part, args=args, plan=_in_plan(part.plan, columns))
        return None

    return rewrite(node, change) if columns else node


def _in_plan(plan: Plan, columns: dict[tuple[str, ...], Node]) -> Plan:
    return bottom_up(plan, lambda p: with_expressions(p, lambda n: substituted(n, columns)))
