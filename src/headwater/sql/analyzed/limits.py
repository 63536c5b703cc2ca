"""ORDER BY, LIMIT and OFFSET.

A key that is an expression becomes a column below the sort, which a projection above takes away again; and a limit
stands right above its sort, below that projection, where it is seen that only the first rows are needed.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.sql.analyzed.reading import Reading, Rows, Scope, plan
from headwater.sql.analyzed.tree import Tree
from headwater.sql.analyzed.windows import ordering
from headwater.sql.nodes import Column, Literal, Ordering, Refused
from headwater.sql.plan import Limit, Named, Plan, Project, Sort

__all__: list[str] = []


@plan("RepartitionByExpression")
def _distributed(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    """DISTRIBUTE BY says where rows lie, and changes none."""
    return reading.rows(tree.children[0], around)


@plan("Sort")
def _sort(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    # SORT BY (not global) orders each partition; here there is one.
    below = reading.rows(tree.children[0], around)
    reader = reading.expressions(below, around)
    keys: list[Ordering] = []
    hidden: list[Named] = []
    for part in tree.trees("order"):
        key = ordering(reader, part)
        if not isinstance(key.node, Column) or len(key.node.path) > 1:
            named = reading.named("order", key.node)
            hidden.append(named)
            key = replace(key, node=named.attribute.column)
        keys.append(key)
    if not hidden:
        return Rows(Sort(below.plan, tuple(keys)), below.ids)
    passed = tuple(Named(a, a.column) for a in below.plan.output)
    made = Sort(Project(below.plan, (*passed, *hidden)), tuple(keys))
    return Rows(Project(made, passed), below.ids)


@plan("GlobalLimit")
def _limit(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    count = _number(reading, tree, "limitExpr", "LIMIT")
    below = reading.rows(tree.children[0], around)
    made = below.plan
    if isinstance(made, Limit) and made.count is None:
        return Rows(Limit(made.child, count, made.offset), below.ids)
    if isinstance(made, Project) and isinstance(made.child, Limit) and made.child.count is None:
        return Rows(replace(made, child=Limit(made.child.child, count, made.child.offset)), below.ids)
    return Rows(_limited(made, count, 0), below.ids)


@plan("LocalLimit")
def _local(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    return reading.rows(tree.children[0], around)  # the global one above says it all


@plan("Offset")
def _offset(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    count = _number(reading, tree, "offsetExpr", "OFFSET")
    below = reading.rows(tree.children[0], around)
    return Rows(_limited(below.plan, None, count), below.ids)


def _limited(made: Plan, count: int | None, offset: int) -> Plan:
    if isinstance(made, Project) and isinstance(made.child, Sort):
        return replace(made, child=Limit(made.child, count, offset))
    return Limit(made, count, offset)


def _number(reading: Reading, tree: Tree, field: str, what: str) -> int:
    found = reading.expressions(reading.rows(Tree("OneRowRelation", {}, ()), None), None).read(tree.tree(field))
    if not isinstance(found, Literal) or not isinstance(found.value, int):
        raise Refused(f"{what} of something else than a constant", f"write {what} 10")
    return found.value
