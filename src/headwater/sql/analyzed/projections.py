"""Rows, chosen and changed one by one: projections, filters, DISTINCT; and names, which mean nothing any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.sql.analyzed.reading import Reading, Rows, Scope, plan
from headwater.sql.analyzed.tree import Tree
from headwater.sql.nodes import Refused
from headwater.sql.plan import Distinct, Filter, Named, Project
from headwater.sql.rewriting.negation import negation_inside
from headwater.sql.types import is_key, name_of

__all__ = ["unique"]


def unique(reading: Reading, items: Sequence[Named]) -> tuple[Named, ...]:
    """The items, each with a key of its own: a column that passes through twice gets a new one."""
    taken: set[str] = set()
    out = []
    for item in items:
        found = item
        if item.attribute.key in taken:
            attribute = reading.attribute(item.attribute.name, item.attribute.dtype, nullable=item.attribute.nullable)
            found = replace(item, attribute=attribute)
        taken.add(found.attribute.key)
        out.append(found)
    return tuple(out)


@plan("Project")
def _project(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    below = reading.rows(tree.children[0], around)
    reader = reading.expressions(below, around)
    pairs = [reader.named(item) for item in tree.trees("projectList")]
    if not pairs:
        raise Refused("a query without columns", "select something")
    items = [replace(n, node=negation_inside(n.node)) for _, n in pairs]
    return Rows(Project(below.plan, unique(reading, items)), tuple(i for i, _ in pairs))


@plan("Filter")
def _filter(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    below = reading.rows(tree.children[0], around)
    condition = reading.expressions(below, around).read(tree.tree("condition"))
    return Rows(Filter(below.plan, negation_inside(condition)), below.ids)


@plan("Distinct")
def _distinct(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    below = reading.rows(tree.children[0], around)
    for attribute in below.plan.output:
        if not is_key(attribute.dtype):
            raise Refused(f"SELECT DISTINCT of {name_of(attribute.dtype)}", "select its fields")
    return Rows(Distinct(below.plan), below.ids)


@plan("SubqueryAlias", "ResolvedHint", "View", "PipeOperator")
def _same(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    return reading.rows(tree.children[0], around)
