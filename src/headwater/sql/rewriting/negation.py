"""NOT moved in front of IN, as Spark moves it.

Where SQL would say null, Spark says false: of ``x IN (SELECT …)`` and of ``x NOT IN (SELECT …)`` alike. So it matters
which of the two stands there. Before Spark looks at subqueries it takes NOT into AND and OR, and reads ``c = false`` as
NOT c; after this rule a NOT that belongs to an IN stands right in front of it.
"""

from __future__ import annotations

from headwater.sql.nodes import Call, Literal, Node, SubqueryCall, call, rewrite, walk
from headwater.sql.types import BOOLEAN

__all__ = ["is_absence", "is_membership", "negation_inside"]


def is_membership(node: Node) -> bool:
    """Is it ``x IN (SELECT …)``?"""
    return isinstance(node, SubqueryCall) and node.kind == "in"


def is_absence(node: Node) -> bool:
    """Is it ``x NOT IN (SELECT …)``?"""
    return isinstance(node, Call) and node.op == "not" and is_membership(node.args[0])


def negation_inside(node: Node) -> Node:
    """The expression with every NOT in front of the IN it belongs to; without such an IN it stays as it is."""
    if not any(map(is_membership, walk(node))):
        return node
    return rewrite(node, _change)


def _change(part: Node) -> Node | None:
    if not isinstance(part, Call) or not any(map(is_membership, walk(part))):
        return None
    if part.op in ("=", "!=") and any(isinstance(a, Literal) and a.value is not None for a in part.args):
        constant, other = part.args if isinstance(part.args[0], Literal) else part.args[::-1]
        assert isinstance(constant, Literal)
        if constant.value is (part.op == "="):
            return rewrite(other, _change)
        return rewrite(call("not", (other,), BOOLEAN), _change)
    if part.op != "not":
        return None
    inner = part.args[0]
    if isinstance(inner, Call) and inner.op in ("=", "!="):
        changed = rewrite(inner, _change)
        return None if changed == inner else rewrite(call("not", (changed,), BOOLEAN), _change)
    if isinstance(inner, Call) and inner.op == "not":
        return rewrite(inner.args[0], _change)
    if isinstance(inner, Call) and inner.op in ("and", "or"):
        parts = tuple(rewrite(call("not", (a,), BOOLEAN), _change) for a in inner.args)
        return call("or" if inner.op == "and" else "and", parts, BOOLEAN)
    return None
