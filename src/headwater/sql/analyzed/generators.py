"""Generators, which make rows of one row, and Spark's Expand, which makes several of each.

Both are `Generate` over an array: of the elements of an array or a map, of the arguments of stack(), or of the rows
that Expand writes out.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.analyzed.reading import Expressions, Reading, Rows, Scope, plan
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_function
from headwater.sql.functions.json import json_fields
from headwater.sql.functions.map import entries_of
from headwater.sql.functions.struct import field_of
from headwater.sql.literals import text_literal
from headwater.sql.nodes import Column, Literal, Node, Refused, call
from headwater.sql.operators import united
from headwater.sql.plan import Attribute, Generate, Named, Plan, Project
from headwater.sql.types import NULL, array_of, has_void, name_of

__all__ = ["spread"]


@plan("Generate")
def _generate(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    below = reading.rows(tree.children[0], around)
    outer, generator = bool(tree.fields.get("outer")), tree.tree("generator")
    if generator.kind == "GeneratorOuter":
        outer, generator = True, generator.children[0]
    array, apart = _array(reading.expressions(below, around), generator)
    if has_void(array.dtype):
        raise Refused(f"explode() of {name_of(array.dtype)}", "cast the array to its type")
    columns, ids = reading.declared(tree.trees("generatorOutput"))
    position = columns[0] if generator.kind == "PosExplode" else None
    rest = columns[1:] if position is not None else columns
    element = array.dtype.value_type
    if not apart:
        return Rows(Generate(below.plan, array, outer, position, rest), below.ids + ids)
    whole = reading.attribute("element", element)
    made = Generate(below.plan, array, outer, position, (whole,))
    passed = [*below.plan.output, *(() if position is None else (position,))]
    items = [Named(a, a.column) for a in passed]
    items += [Named(a, field_of(whole.column, f.name)) for a, f in zip(rest, element, strict=True)]
    return Rows(Project(made, tuple(items)), below.ids + ids)


def _array(reader: Expressions, tree: Tree) -> tuple[Node, bool]:
    """The array whose elements become rows; are its elements structs, whose fields become columns?"""
    if tree.kind in ("Explode", "PosExplode"):
        value = reader.read(tree.children[0])
        return (entries_of(value), True) if pa.types.is_map(value.dtype) else (value, False)
    if tree.kind == "Inline":
        return reader.read(tree.children[0]), True
    if tree.kind == "Stack":
        return _stack(reader.children(tree)), True
    if tree.kind == "JsonTuple":
        row = json_fields(reader.children(tree))
        return call("array", (row,), array_of(row.dtype)), True
    raise Refused(f"Spark's generator {tree.kind}", "use explode, posexplode, inline or stack")


def _stack(args: Sequence[Node]) -> Node:
    count = args[0].value if isinstance(args[0], Literal) else None
    if not isinstance(count, int):
        raise Refused("stack() of a number of rows that is no constant", "write stack(2, a, b, c, d)")
    values = args[1:]
    width = -(-len(values) // count)
    padded = [*values, *(Literal(None, NULL) for _ in range(width * count - len(values)))]
    columns = [united(padded[i::width], "a column of stack()", promote_text=False) for i in range(width)]
    return structs([f"col{i}" for i in range(width)], list(zip(*columns, strict=True)))


def structs(names: Sequence[str], rows: Sequence[Sequence[Node]]) -> Node:
    """An array of one struct a row."""
    made = []
    for row in rows:
        parts = [p for n, v in zip(names, row, strict=True) for p in (text_literal(n), v)]
        made.append(apply_function("named_struct", parts))
    return call("array", tuple(made), array_of(made[0].dtype))


@plan("Expand")
def spread(reading: Reading, tree: Tree, around: Scope | None) -> Rows:
    """Several rows of each: what is the same in all of them passes, the rest is an array."""
    below = reading.rows(tree.children[0], around)
    reader = reading.expressions(below, around)
    rows = [[reader.read(t) for t in _trees(row)] for row in tree.fields["projections"]]
    outputs = tree.trees("output")
    passed: dict[int, Attribute] = {}
    varying: list[int] = []
    by_key = {a.key: a for a in below.plan.output}
    for at in range(len(outputs)):
        first = rows[0][at]
        same = isinstance(first, Column) and len(first.path) == 1 and first.path[0] in by_key
        if same and all(row[at] == first for row in rows):
            assert isinstance(first, Column)
            passed[at] = by_key[first.path[0]]
        else:
            varying.append(at)
    columns = {at: reading.declared([outputs[at]])[0][0] for at in varying}
    made: Plan
    array: Node
    if len(varying) == 1:
        array = call("array", tuple(row[varying[0]] for row in rows), array_of(rows[0][varying[0]].dtype))
        made = Generate(below.plan, array, False, None, (columns[varying[0]],))
        nodes: dict[int, Node] = {varying[0]: columns[varying[0]].column}
    else:
        names = [f"f{i}" for i in range(len(varying))]
        array = structs(names, [[row[at] for at in varying] for row in rows])
        whole = reading.attribute("element", array.dtype.value_type)
        made = Generate(below.plan, array, False, None, (whole,))
        nodes = {at: field_of(whole.column, name) for at, name in zip(varying, names, strict=True)}
    items = []
    for at in range(len(outputs)):
        found = passed.get(at)
        items.append(Named(columns[at], nodes[at]) if found is None else Named(found, found.column))
    return Rows(Project(made, tuple(items)), tuple(int(o.fields["exprId"]) for o in outputs))


def _trees(row: list[list[dict[str, object]]]) -> list[Tree]:
    return Tree("", {"row": row}, ()).trees("row")
