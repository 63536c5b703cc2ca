"""Projections that do nothing, taken out.

Spark puts a projection around every window, join with USING and subquery. Two of them in a row are one where that
computes nothing twice, and one that passes all columns as they are is none.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

from headwater.sql.nodes import Column, Node, SubqueryCall, rewrite, walk
from headwater.sql.plan import Named, Plan, Project, With

__all__ = ["tidied"]


def tidied(plan: Plan) -> Plan:
    """The plan without idle projections; its output is the same, key by key."""
    changed: dict[str, Any] = {}
    if isinstance(plan, With):
        changed["child"] = tidied(plan.child)
    else:
        for field in fields(cast(Any, plan)):
            value = getattr(plan, field.name)
            if isinstance(value, Plan):
                changed[field.name] = tidied(value)
    made: Plan = replace(cast(Any, plan), **changed)
    return _merged(made) if isinstance(made, Project) else made


def _merged(plan: Project) -> Plan:
    below = plan.child
    if isinstance(below, Project):
        whole = _composed(plan, below)
        if whole is not None:
            return _merged(whole)
    return below if plan.output == below.output and all(map(_passes, plan.items)) else plan


def _passes(item: Named) -> bool:
    return _is_plain(item.node) and cast(Column, item.node).path[0] == item.attribute.key


def _is_plain(node: Node) -> bool:
    return isinstance(node, Column) and len(node.path) == 1


def _composed(above: Project, below: Project) -> Project | None:
    """Both in one, where each expression of the lower one is still computed at most once."""
    nodes = {i.attribute.key: i.node for i in below.items}
    read = [i.node.path[0] for i in above.items if isinstance(i.node, Column) and len(i.node.path) == 1]
    computed = [k for k in read if k in nodes and not _is_plain(nodes[k])]
    if all(_is_plain(i.node) for i in above.items):
        if len(computed) != len(set(computed)):
            return None
    elif not all(_is_plain(n) for n in nodes.values()):
        return None

    def change(node: Node) -> Node | None:
        if not isinstance(node, Column) or node.path[0] not in nodes:
            return None
        inner = nodes[node.path[0]]
        if len(node.path) == 1:
            return inner
        assert isinstance(inner, Column)
        return replace(node, path=(*inner.path, *node.path[1:]))

    if any(_has_plan(i.node) for i in above.items):
        return None
    return Project(below.child, tuple(replace(i, node=rewrite(i.node, change)) for i in above.items))


def _has_plan(node: Node) -> bool:
    return any(isinstance(n, SubqueryCall) for n in walk(node))
