"""Definitions of WITH: shared where they are read more than once, and put into the place that reads them otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from headwater.sql.nodes import Node, SubqueryCall, rewrite
from headwater.sql.plan import Named, Plan, Project, Recursion, Reference, With
from headwater.sql.plan.rebuilding import with_children, with_expressions
from headwater.sql.rewriting.keys import Keys

__all__ = ["inlined", "shared"]


def inlined(plan: With, keys: Keys) -> Plan:
    """The body with a copy of a definition in each place that reads it; recursions stay definitions."""
    known = dict(plan.definitions)
    kept = []
    for name, definition in plan.definitions:
        if isinstance(definition, Recursion):
            kept.append((name, definition))
            del known[name]
    body = _replaced(plan.child, known, keys)
    return With(tuple(kept), body) if kept else body


def shared(plan: Plan) -> Plan:
    """The plan with all definitions in one WITH at its top: those that are read more than once, and recursions.

    A definition that is read once stands where it is read. Those inside of a recursion stay there, since they may read
    its rows.

    >>> import pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> text = "WITH q AS (SELECT a FROM t) SELECT * FROM q WHERE a > 1"
    >>> print(shared(parse_query(text, lambda *_: pa.schema([("a", pa.int32())]))).dump(), end="")
    project a#4
      filter (a#4 > 1)
        project a#5 as a#4
          project a#5
            scan t [a#5]
    """
    return _shared(plan, Keys.above(plan))


def _shared(plan: Plan, keys: Keys) -> Plan:
    plan = _hoisted(plan)
    if not isinstance(plan, With):
        return plan
    counts: Counter[str] = Counter(node.name for node in plan.walk() if isinstance(node, Reference))
    kept: list[tuple[str, Plan]] = []
    once: dict[str, Plan] = {}
    for name, definition in plan.definitions:
        inside = definition
        if isinstance(definition, Recursion):
            inside = replace(definition, base=_shared(definition.base, keys), step=_shared(definition.step, keys))
        inside = _replaced(inside, once, keys)
        if isinstance(definition, Recursion) or counts[name] > 1:
            kept.append((name, inside))
        else:
            once[name] = inside
    body = _replaced(plan.child, once, keys)
    return With(tuple(kept), body) if kept else body


def _hoisted(plan: Plan) -> Plan:
    """The plan with all its definitions in one WITH; their names are unique, so each may be known everywhere."""
    found: list[tuple[str, Plan]] = []

    def take(node: Plan) -> Plan:
        if isinstance(node, Recursion):
            return node
        if isinstance(node, With):
            for name, definition in node.definitions:
                found.append((name, take(definition)))
            return take(node.child)
        return with_children(node, tuple(map(take, node.children)))

    body = take(plan)
    return With(tuple(found), body) if found else body


def _replaced(plan: Plan, known: dict[str, Plan], keys: Keys) -> Plan:
    if isinstance(plan, Reference) and plan.name in known:
        copy, new = keys.copied(_replaced(known[plan.name], known, keys))
        columns = {a.key: a for a in copy.output}
        pairs = zip(plan.keys, plan.columns, strict=True)
        return Project(copy, tuple(Named(a, columns[new.get(k, k)].column) for k, a in pairs))
    plan = with_children(plan, tuple(_replaced(child, known, keys) for child in plan.children))

    def inside(node: Node) -> Node | None:
        if isinstance(node, SubqueryCall):
            args = tuple(rewrite(a, inside) for a in node.args)
            return SubqueryCall(node.kind, _replaced(node.plan, known, keys), args, node.dtype)
        return None

    return with_expressions(plan, lambda n: rewrite(n, inside))
