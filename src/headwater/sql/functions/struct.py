"""Structs: making them and looking into them. A field of an array of structs is an array, as in Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.binding import fresh, let
from headwater.sql.functions.function import MANY, Form, Function
from headwater.sql.nested_order import order_key
from headwater.sql.nodes import Call, Column, Literal, Node, Refused, call
from headwater.sql.quoting import literal_sql, quote_identifier
from headwater.sql.types import NULL, STRING, array_of, name_of

__all__ = ["FUNCTIONS", "field_of"]


def field_of(node: Node, name: str) -> Node:
    """``node.name``: a field of a struct, of each struct of an array, or the value of a map with keys of text."""
    stored = node.dtype
    if pa.types.is_map(stored) and stored.key_type == STRING:
        return call("map value", (node, Literal(name, STRING)), stored.item_type)
    within = stored.value_type if pa.types.is_list(stored) else stored
    if not pa.types.is_struct(within):
        raise Refused(f"the field `{name}` of {name_of(stored)}", "name a field of a struct")
    found = [f for f in within if f.name.lower() == name.lower()]
    if len(found) != 1:
        known = ", ".join(f.name for f in within)
        raise Refused(f"the field `{name}`, which fits {len(found)} of the fields,", f"the fields are {known}")
    exact = found[0]
    if within is not stored:
        return call("fields", (node, Literal(exact.name, STRING)), array_of(exact.type))
    if isinstance(node, Column):
        return Column(node.alias, (*node.path, exact.name), exact.type, True)
    return call("field", (node, Literal(exact.name, STRING)), exact.type)


def _named_struct(args: Sequence[Node]) -> Node:
    if len(args) % 2:
        raise Refused("named_struct() of an odd number of arguments", "give a name and a value for each field")
    names = [a.value if isinstance(a, Literal) else None for a in args[::2]]
    if not all(isinstance(n, str) and n for n in names) or len({str(n).lower() for n in names}) != len(names):
        raise Refused("a struct with these names", "give each field a name of its own, as a text")
    if any(v.dtype == NULL for v in args[1::2]):
        raise Refused("a field of nothing but nulls", "cast it to its type")
    dtype = pa.struct([pa.field(str(n), v.dtype) for n, v in zip(names, args[1::2], strict=True)])
    return call("named_struct", tuple(args), dtype)


def _struct_form(node: Call, a: list[str]) -> str:
    pairs = zip(node.args[::2], a[1::2], strict=True)
    fields = ", ".join(f"{literal_sql(n.value)}: {x}" for n, x in pairs if isinstance(n, Literal))
    return "{" + fields + "}"


def _fields_form(_: Call, a: list[str]) -> str:
    name = fresh(*a)
    return f"list_transform({a[0]}, lambda {name}: struct_extract({name}, {a[1]}))"


def _variable_form(node: Call, _: list[str]) -> str:
    name = node.args[0]
    assert isinstance(name, Literal)
    return quote_identifier(str(name.value))


def _comparison(op: str) -> Form:
    def form(node: Call, a: list[str]) -> str:
        def body(x: str, y: str) -> str:
            left, right = (order_key(v, node.args[0].dtype) for v in (x, y))
            return f"(CASE WHEN {x} IS NOT NULL AND {y} IS NOT NULL THEN {left} {op} {right} END)"

        return let(a, body)

    return form


def _struct(_: Sequence[Node]) -> Node:
    raise AssertionError("the reader names the fields and calls named_struct")


FUNCTIONS = (
    Function(
        "named_struct",
        "struct",
        _named_struct,
        2,
        MANY,
        {"named_struct": _struct_form, "field": "struct_extract({0}, {1})", "fields": _fields_form},
    ),
    Function(
        "struct",
        "struct",
        _struct,
        1,
        MANY,
        {
            "variable": _variable_form,
            "lambda": lambda _, a: f"lambda {', '.join(a[:-1])}: {a[-1]}",
            "nested =": lambda _, a: f"({a[0]} = {a[1]})",
            "nested !=": lambda _, a: f"({a[0]} <> {a[1]})",
            "nested <=>": lambda _, a: f"({a[0]} IS NOT DISTINCT FROM {a[1]})",
            **{f"nested {op}": _comparison(op) for op in ("<", "<=", ">", ">=")},
        },
    ),
)
