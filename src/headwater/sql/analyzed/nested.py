"""Parts of arrays, maps and structs, and lambdas over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.sql.analyzed.functions import check_flags
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_function
from headwater.sql.functions.struct import field_of
from headwater.sql.nodes import Node, Refused, Unbound

__all__: list[str] = []

_HIGHER = {
    "ArrayTransform": "transform",
    "ArrayFilter": "filter",
    "ArrayExists": "exists",
    "ArrayForAll": "forall",
    "ArrayAggregate": "aggregate",
    "ZipWith": "zip_with",
    "MapFilter": "map_filter",
    "TransformKeys": "transform_keys",
    "TransformValues": "transform_values",
    "MapZipWith": "map_zip_with",
}


@expression("GetStructField")
def _field(reader: Expressions, tree: Tree) -> Node:
    node = reader.read(tree.children[0])
    return field_of(node, node.dtype.field(int(tree.fields["ordinal"])).name)


@expression("GetArrayStructFields")
def _fields(reader: Expressions, tree: Tree) -> Node:
    return field_of(reader.read(tree.children[0]), str(tree.fields["field"]["name"]))


@expression("GetArrayItem")
def _item(reader: Expressions, tree: Tree) -> Node:
    array, index = tree.children
    spread = reader.reading.pivots.get(int(array.fields.get("exprId", 0)))
    if spread is not None:
        found = reader.scope.find(spread[int(index.fields["value"])])
        assert found is not None
        return found.column
    name = "[]" if tree.fields.get("failOnError") else "get"
    return apply_function(name, reader.children(tree))


@expression("GetMapValue")
def _value(reader: Expressions, tree: Tree) -> Node:
    return apply_function("[]", reader.children(tree))


@expression("NamedLambdaVariable")
def _variable(reader: Expressions, tree: Tree) -> Node:
    return reader.variables[int(tree.fields["exprId"])]


def _unbound(reader: Expressions, tree: Tree) -> Unbound:
    """A lambda; the function that takes it gives its parameters their types, which are Spark's."""
    body, *parameters = tree.children
    numbers = [int(p.fields["exprId"]) for p in parameters]
    names = tuple(f"{p.fields['name']} {reader.depth}" for p in parameters)

    def read(values: Sequence[Node]) -> Node:
        reader.variables.update(zip(numbers, values, strict=True))
        reader.depth += 1
        try:
            return reader.read(body)
        finally:
            reader.depth -= 1

    return Unbound(names, read)


@expression(*_HIGHER)
def _higher(reader: Expressions, tree: Tree) -> Node:
    check_flags(tree)
    parts = list(tree.children)
    if tree.kind == "ArrayAggregate" and parts[-1].children[0] == parts[-1].children[1]:
        parts.pop()  # x -> x, which Spark puts there where there is none
    given: list[Any] = [_unbound(reader, p) if p.kind == "LambdaFunction" else reader.read(p) for p in parts]
    return apply_function(_HIGHER[tree.kind], given)


@expression("ArraySort")
def _sorted(reader: Expressions, tree: Tree) -> Node:
    check_flags(tree)
    array, comparator = tree.children
    if _is_default(comparator):
        return apply_function("array_sort", [reader.read(array)])
    given: list[Any] = [reader.read(array), _unbound(reader, comparator)]
    return apply_function("array_sort", given)


def _is_default(comparator: Tree) -> bool:
    """Is it the order that Spark puts there where there is no lambda? Nulls last, then up,
    by nested ifs over left and right.
    """
    body, *parameters = comparator.children
    if [p.fields["name"] for p in parameters] != ["left", "right"]:
        return False
    steps = [(t.kind, t.fields.get("value"), t.fields.get("name")) for t in body.walk()]
    left, right = ("NamedLambdaVariable", None, "left"), ("NamedLambdaVariable", None, "right")

    def number(value: str) -> tuple[str, str, None]:
        return ("Literal", value, None)

    def plain(kind: str) -> tuple[str, None, None]:
        return (kind, None, None)

    wanted = [
        *(plain("If"), plain("And"), plain("IsNull"), left, plain("IsNull"), right, number("0")),
        *(plain("If"), plain("IsNull"), left, number("1")),
        *(plain("If"), plain("IsNull"), right, number("-1")),
        *(plain("If"), plain("LessThan"), left, right, number("-1")),
        *(plain("If"), plain("GreaterThan"), left, right, number("1"), number("0")),
    ]
    return steps == wanted


@expression("LambdaFunction")
def _misplaced(_: Expressions, tree: Tree) -> Node:
    raise Refused(f"Spark's {tree.kind} here", "lambdas are for transform, filter, aggregate and the like")


@expression(
    "Uuid",
    "Rand",
    "Randn",
    "Shuffle",
    "CurrentTimestamp",
    "Now",
    "CurrentDate",
    "LocalTimestamp",
    "MonotonicallyIncreasingID",
)
def _unstable(_: Expressions, tree: Tree) -> Node:
    raise Refused(f"Spark's {tree.kind}, which gives another answer at each run,", "pass its value as a constant")
