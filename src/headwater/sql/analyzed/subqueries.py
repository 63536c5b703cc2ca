"""Subqueries in expressions: scalar, EXISTS and IN; what they read of the query around them is an OuterReference."""

from __future__ import annotations

from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tidy import tidied
from headwater.sql.analyzed.tree import Tree
from headwater.sql.nodes import Node, Refused, SubqueryCall
from headwater.sql.plan import Plan
from headwater.sql.types import BOOLEAN, family, name_of

__all__: list[str] = []


def _plan(reader: Expressions, tree: Tree) -> Plan:
    if reader.depth:
        raise Refused("a subquery in a lambda", "compute it outside, in a column of a subquery or WITH")
    return tidied(reader.reading.rows(tree.tree("plan"), reader.scope).plan)


@expression("OuterReference")
def _outer(reader: Expressions, tree: Tree) -> Node:
    return reader.read(tree.tree("e"))


@expression("ScalarSubquery")
def _scalar(reader: Expressions, tree: Tree) -> Node:
    plan = _plan(reader, tree)
    return SubqueryCall("scalar", plan, (), plan.output[0].dtype)


@expression("Exists")
def _exists(reader: Expressions, tree: Tree) -> Node:
    return SubqueryCall("exists", _plan(reader, tree), (), BOOLEAN)


@expression("InSubquery")
def _in(reader: Expressions, tree: Tree) -> Node:
    *written, query = tree.children
    values, plan = [reader.read(v) for v in written], _plan(reader, query)
    for value, given in zip(values, plan.output, strict=True):
        if value.dtype != given.dtype or family(value.dtype) == "nested":
            what = f"IN of {name_of(value.dtype)} and a subquery of {name_of(given.dtype)}"
            raise Refused(what, "cast one side so that both have one type")
    return SubqueryCall("in", plan, tuple(values), BOOLEAN)
