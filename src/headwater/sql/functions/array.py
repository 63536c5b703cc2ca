"""Arrays, structs and maps: making them, and looking into them. Indices of ``xs[i]`` begin at 0, of element_at at 1."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import MANY, Builder, Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import united
from headwater.sql.quoting import literal_sql
from headwater.sql.types import BOOLEAN, INT, NULL, STRING, family, name_of

__all__ = ["FUNCTIONS"]


def _list(node: Node, name: str) -> Node:
    if not pa.types.is_list(node.dtype):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "pass an array")
    return node


def _array(args: Sequence[Node]) -> Node:
    same = united(args, "array()", promote_text=False)
    if same[0].dtype == NULL:
        raise Refused("an array of nothing but nulls", "cast an element to its type")
    return call("array", same, pa.list_(pa.field("element", same[0].dtype)))


def _size(args: Sequence[Node]) -> Node:
    if not pa.types.is_list(args[0].dtype):
        raise Refused(f"size() of {name_of(args[0].dtype)}", "pass an array")
    return call("size", (args[0],), INT)


def _item(args: Sequence[Node]) -> Node:
    value, index = args
    if pa.types.is_list(value.dtype):
        return call("item", (value, argument("i", index, "xs[i]")), value.dtype.value_type, fallible=True)
    raise Refused(f"`[…]` of {name_of(value.dtype)}", "use an array")


def _item_form(_: Call, a: list[str]) -> str:
    why = raise_form("an array has no element of that number")
    inside = f"{a[1]} >= 0 AND {a[1]} < len({a[0]})"
    nothing = f"{a[0]} IS NULL OR {a[1]} IS NULL"
    return f"(CASE WHEN {nothing} THEN NULL WHEN {inside} THEN {a[0]}[CAST({a[1]} AS BIGINT) + 1] ELSE {why} END)"


def _element_at(args: Sequence[Node]) -> Node:
    value = _list(args[0], "element_at")
    return call("element_at", (value, argument("i", args[1], "element_at")), value.dtype.value_type, fallible=True)


def _element_form(_: Call, a: list[str]) -> str:
    why = raise_form("an array has no element of that number")
    inside = f"{a[1]} <> 0 AND abs(CAST({a[1]} AS BIGINT)) <= len({a[0]})"
    nothing = f"{a[0]} IS NULL OR {a[1]} IS NULL"
    return f"(CASE WHEN {nothing} THEN NULL WHEN {inside} THEN {a[0]}[{a[1]}] ELSE {why} END)"


def _plain_elements(node: Node, name: str) -> pa.DataType:
    element = _list(node, name).dtype.value_type
    if family(element) in ("nested", "float"):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "use an array of whole numbers or texts")
    return element


def _contains(args: Sequence[Node]) -> Node:
    element = _plain_elements(args[0], "array_contains")
    if args[1].dtype != element:
        value = cast(args[1], element) if isinstance(args[1], Literal) and args[1].value is not None else None
        if value is None:
            raise Refused(
                f"array_contains() of {name_of(args[0].dtype)} and {name_of(args[1].dtype)}", "cast the value"
            )
        return call("array_contains", (args[0], value), BOOLEAN)
    return call("array_contains", tuple(args), BOOLEAN)


def _contains_form(_: Call, a: list[str]) -> str:
    # Null where it is not found but a null might have been it.
    nothing = f"{a[0]} IS NULL OR {a[1]} IS NULL"
    found = f"list_contains({a[0]}, {a[1]})"
    maybe = f"len(list_filter({a[0]}, lambda e: e IS NULL)) > 0"
    return f"(CASE WHEN {nothing} THEN NULL WHEN {found} THEN TRUE WHEN {maybe} THEN NULL ELSE FALSE END)"


def _extreme(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        return call(op, (args[0],), _plain_elements(args[0], op))

    return build


def _named_struct(args: Sequence[Node]) -> Node:
    if len(args) % 2:
        raise Refused("named_struct() of an odd number of arguments", "give a name and a value for each field")
    names = [a.value if isinstance(a, Literal) else None for a in args[::2]]
    if not all(isinstance(n, str) and n for n in names) or len({str(n).lower() for n in names}) != len(names):
        raise Refused("named_struct() with these names", "write each name as a text, once")
    if any(v.dtype == NULL for v in args[1::2]):
        raise Refused("a field of nothing but nulls", "cast it to its type")
    dtype = pa.struct([pa.field(str(n), v.dtype) for n, v in zip(names, args[1::2], strict=True)])
    return call("named_struct", tuple(args), dtype)


def _struct_form(node: Call, a: list[str]) -> str:
    pairs = zip(node.args[::2], a[1::2], strict=True)
    fields = ", ".join(f"{literal_sql(n.value)}: {x}" for n, x in pairs if isinstance(n, Literal))
    return "{" + fields + "}"


def _joined(args: Sequence[Node]) -> Node:
    if _plain_elements(args[0], "array_join") != STRING:
        raise Refused(f"array_join() of {name_of(args[0].dtype)}", "join an array of strings")
    return call("array_join", (args[0], argument("s", args[1], "array_join")), STRING)


# A list of nothing but nulls is joined to nothing, and not to a null.
_JOINED = "(CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE coalesce(array_to_string({0}, {1}), '') END)"
FUNCTIONS = (
    Function("array", "array", _array, 1, MANY, {"array": lambda _, a: "[" + ", ".join(a) + "]"}),
    Function(
        "size", "array", _size, 1, 1, {"size": "CAST(len({0}) AS {type})"}, note="of a null it is null, as in ANSI mode"
    ),
    Function("cardinality", "array", _size, 1, 1),
    Function("[]", "array", _item, 2, 2, {"item": _item_form, "field": "struct_extract({0}, {1})"}),
    Function("element_at", "array", _element_at, 2, 2, {"element_at": _element_form}),
    Function("array_contains", "array", _contains, 2, 2, {"array_contains": _contains_form}),
    Function("array_max", "array", _extreme("array_max"), 1, 1, {"array_max": "list_max({0})"}),
    Function("array_min", "array", _extreme("array_min"), 1, 1, {"array_min": "list_min({0})"}),
    Function("array_join", "array", _joined, 2, 2, {"array_join": _JOINED}),
    Function("named_struct", "struct", _named_struct, 2, MANY, {"named_struct": _struct_form}),
)
