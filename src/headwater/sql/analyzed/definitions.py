"""WITH: queries that are named once and read several times, and RECURSIVE ones, which read themselves.

Spark's recursion is a loop with a number, and a reading of that number inside. Here it is a definition of its own, next
to the one that gives its columns their names.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.sql.analyzed.reading import Definition, Reading, Rows, Scope, plan
from headwater.sql.analyzed.tidy import tidied
from headwater.sql.analyzed.tree import Tree
from headwater.sql.nodes import Refused
from headwater.sql.plan import Plan, Project, Recursion, Reference, With
from headwater.sql.reader.recursion import LEVELS

__all__: list[str] = []


@plan("WithCTE")
def _with(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    *definitions, body = tree.children
    found: list[tuple[str, Plan]] = []
    for tree_ in definitions:
        made = tidied(reading.rows(tree_.children[0], around).plan)
        if isinstance(made, With):  # a recursion, which is read right away: it stands beside its reader
            found += made.definitions
            made = made.child
        elif isinstance(made, Project) and isinstance(made.child, With):
            found += made.child.definitions
            made = replace(made, child=made.child.child)
        name = reading.definition_name(_name(tree_))
        reading.definitions[int(tree_.fields["id"])] = Definition(name, made.output)
        found.append((name, made))
    below = reading.rows(body, around)
    return Rows(With(tuple(found), below.plan), below.ids)


def _name(tree: Tree) -> str:
    alias = tree.children[0]
    return str(alias.fields["identifier"]["name"]) if alias.kind == "SubqueryAlias" else "definition"


@plan("CTERelationRef")
def _read(reading: Reading, tree: Tree, _: Scope | None) -> Rows:
    definition = reading.definitions.get(int(tree.fields["cteId"]))
    if definition is None:
        raise Refused("a query of WITH that reads itself", "use WITH RECURSIVE")
    columns, ids = reading.declared(tree.trees("output"))
    return Rows(Reference(definition.name, tuple(a.key for a in definition.columns), columns), ids)


@plan("UnionLoop")
def _loop(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    if tree.fields.get("limit") is not None:
        raise Refused("a recursion with a LIMIT of its own", "limit the rows where they are read")
    first, again = tree.children
    base = tidied(reading.rows(first, around).plan)
    columns = tuple(reading.attribute(a.name, a.dtype) for a in base.output)
    name = reading.definition_name("recursion")
    reading.loops[int(tree.fields["id"])] = Definition(name, columns)
    step = tidied(reading.rows(again, around).plan)
    if [a.dtype for a in step.output] != [a.dtype for a in columns]:
        raise Refused("a recursion whose steps have other types", "cast them to those of the first rows")
    depth = tree.fields.get("maxDepth")
    made = Recursion(name, columns, base, step, True, LEVELS if depth is None else int(depth))
    own = tuple(replace(a, key=reading.attribute(a.name, a.dtype).key) for a in columns)
    ids = tuple(int(number) for number in tree.fields["outputAttrIds"])
    return Rows(With(((name, made),), Reference(name, tuple(a.key for a in columns), own)), ids)


@plan("UnionLoopRef")
def _again(reading: Reading, tree: Tree, _: Scope | None) -> Rows:
    definition = reading.loops[int(tree.fields["loopId"])]
    if tree.fields.get("accumulated"):
        raise Refused("a recursion that reads all its rows so far", "read it once in each step")
    columns, ids = reading.declared(tree.trees("output"))
    return Rows(Reference(definition.name, tuple(a.key for a in definition.columns), columns), ids)
