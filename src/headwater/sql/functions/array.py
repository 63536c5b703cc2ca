"""Arrays: making them, looking into them, searching them. Indices of ``xs[i]`` and get begin at 0, all others at 1.

Elements are equal as Spark has it: NaN equals NaN, -0.0 equals 0.0, and inside structs null equals null; DuckDB's lists
agree. A null array, and nearly every null argument, makes a null.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.binding import fresh, let
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.functions.struct import field_of
from headwater.sql.functions.typing import argument
from headwater.sql.nested_order import sorted_form
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import united
from headwater.sql.types import (
    BOOLEAN,
    EMPTY_MAP,
    INT,
    LONG,
    NULL,
    array_of,
    family,
    has_void,
    is_comparable,
    name_of,
    tighter,
)

__all__ = ["FUNCTIONS", "NO_ZERO", "as_array", "comparable_elements", "meeting", "null_if_null"]

_NO_ELEMENT = "an array has no element of that number"
NO_ZERO = "elements are counted from 1, or from -1 at the end: there is no 0"


def as_array(node: Node, name: str) -> Node:
    """The argument, if it is an array."""
    if not pa.types.is_list(node.dtype):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "pass an array")
    return node


def comparable_elements(node: Node, name: str) -> pa.DataType:
    """The type of the elements, if two of them can be compared."""
    element = as_array(node, name).dtype.value_type
    if not is_comparable(element):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "maps cannot be compared: use map_entries(m)")
    return element


def null_if_null(operands: Sequence[str], then: str, *more: str) -> str:
    """``then`` where no operand is null, after other branches of a CASE.

    >>> null_if_null(["a"], "len(a)")
    '(CASE WHEN a IS NULL THEN NULL ELSE len(a) END)'
    """
    nothing = " OR ".join(f"{x} IS NULL" for x in operands)
    branches = "".join(f" {b}" for b in more)
    return f"(CASE WHEN {nothing} THEN NULL{branches} ELSE {then} END)"


def _array(args: Sequence[Node]) -> Node:
    if not args:
        return call("array", (), array_of(NULL))
    same = united(args, "array()", promote_text=False)
    return call("array", same, array_of(same[0].dtype))


def _array_form(node: Call, a: list[str]) -> str:
    if not a and not has_void(node.dtype):
        return f"CAST([] AS {duckdb_type(node.dtype)})"
    return "[" + ", ".join(a) + "]"


def _size(args: Sequence[Node]) -> Node:
    if not (pa.types.is_list(args[0].dtype) or pa.types.is_map(args[0].dtype)):
        raise Refused(f"size() of {name_of(args[0].dtype)}", "pass an array or a map")
    return call("map size" if pa.types.is_map(args[0].dtype) else "size", (args[0],), INT)


def _array_size(args: Sequence[Node]) -> Node:
    if not pa.types.is_list(args[0].dtype):
        raise Refused(f"array_size() of {name_of(args[0].dtype)}", "pass an array")
    return _size(args)


# --- looking


def _key(node: Node, key: Node, name: str) -> Node:
    """A key in the type of a map's keys."""
    wanted = node.dtype.key_type
    if node.dtype == EMPTY_MAP:
        raise Refused(f"{name} of {name_of(node.dtype)}", "cast it first: CAST(map() AS MAP<STRING, INT>)")
    meet = tighter(wanted, key.dtype)
    if key.dtype == NULL or meet != wanted:
        what = f"{name} of {name_of(node.dtype)} with a key of type {name_of(key.dtype)}"
        raise Refused(what, "cast the key to the type of the map's keys")
    return cast(key, wanted)


def _item(args: Sequence[Node]) -> Node:
    value, index = args
    if pa.types.is_map(value.dtype):
        return call("map value", (value, _key(value, index, "`[…]`")), value.dtype.item_type)
    if isinstance(index, Literal) and isinstance(index.value, str) and not pa.types.is_primitive(value.dtype):
        return field_of(value, index.value)
    if not pa.types.is_list(value.dtype):
        raise Refused(f"`[…]` of {name_of(value.dtype)}", "use an array or a map")
    if family(index.dtype) != "integer":
        raise Refused(f"`[…]` with an index of type {name_of(index.dtype)}", "cast the index to int")
    return call("item", (value, index), value.dtype.value_type, fallible=True)


def _item_form(_: Call, a: list[str]) -> str:
    def body(xs: str, i: str) -> str:
        inside = f"WHEN {i} >= 0 AND {i} < len({xs}) THEN {xs}[CAST({i} AS BIGINT) + 1]"
        return null_if_null([xs, i], raise_form(_NO_ELEMENT), inside)

    return let(a, body)


def _get(args: Sequence[Node]) -> Node:
    return call("get", (as_array(args[0], "get"), argument("i", args[1], "get")), args[0].dtype.value_type)


def _get_form(_: Call, a: list[str]) -> str:
    return let(a, lambda xs, i: f"(CASE WHEN {i} >= 0 THEN {xs}[CAST({i} AS BIGINT) + 1] END)")


def _element_at(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        value, place = args
        if pa.types.is_map(value.dtype):
            return call("map value", (value, _key(value, place, f"{name}()")), value.dtype.item_type)
        as_array(value, name)
        return call(name, (value, argument("N", place, name)), value.dtype.value_type, fallible=True)

    return build


def _element_form(node: Call, a: list[str]) -> str:
    missing = "NULL" if node.op == "try_element_at" else raise_form(_NO_ELEMENT)

    def body(xs: str, i: str) -> str:
        zero = f"WHEN {i} = 0 THEN {raise_form(NO_ZERO)}"
        inside = f"WHEN abs(CAST({i} AS BIGINT)) <= len({xs}) THEN {xs}[{i}]"
        return null_if_null([xs, i], missing, zero, inside)

    return let(a, body)


# --- searching


def meeting(array: Node, value: Node, name: str, *, void: bool = False) -> tuple[Node, Node]:
    """An array and a value in the type where Spark lets them meet."""
    element = as_array(array, name).dtype.value_type
    meet = tighter(element, value.dtype)
    if meet is None or (value.dtype == NULL and not void):
        raise Refused(f"{name}() of {name_of(array.dtype)} and {name_of(value.dtype)}", "cast the value")
    return cast(array, array_of(meet)), cast(value, meet)


def _op(op: str, element: pa.DataType) -> str:
    """An operator of its own where elements have more equals than themselves: NaN, -0.0, and null inside."""
    return f"{op} any" if family(element) in ("float", "nested") else op


def _search(op: str, dtype: pa.DataType | None) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        comparable_elements(args[0], op)
        array, value = meeting(args[0], args[1], op)
        return call(_op(op, value.dtype), (array, value), dtype if dtype is not None else array.dtype)

    return build


def _contains_form(_: Call, a: list[str]) -> str:
    # Null where it is not found but a null might have been it.
    def body(xs: str, x: str) -> str:
        found = f"WHEN list_contains({xs}, {x}) THEN TRUE"
        maybe = f"WHEN list_position({xs}, NULL) IS NOT NULL THEN NULL"
        return null_if_null([xs, x], "FALSE", found, maybe)

    return let(a, body)


def _position_form(_: Call, a: list[str]) -> str:
    return let(a, lambda xs, x: null_if_null([xs, x], f"CAST(coalesce(list_position({xs}, {x}), 0) AS BIGINT)"))


def _remove_form(_: Call, a: list[str]) -> str:
    def body(xs: str, x: str) -> str:
        e = fresh(xs, x)
        return null_if_null([xs, x], f"list_filter({xs}, lambda {e}: {e} IS DISTINCT FROM {x})")

    return let(a, body)


def _extreme(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        element = comparable_elements(args[0], op)
        return call(_op(op, element), (args[0],), element)

    return build


def _extreme_form(node: Call, a: list[str]) -> str:
    # The first of equals (-0.0 and 0.0), which a stable sort finds.
    e = fresh(a[0])
    there = f"list_filter({a[0]}, lambda {e}: {e} IS NOT NULL)"
    return f"{sorted_form(there, node.dtype, descending=node.op == 'array_max any')}[1]"


def _searched(op: str, form: Form) -> dict[str, Form]:
    return {op: form, f"{op} any": form}


_OTHER_FORMS: dict[str, Form] = {"item": _item_form, "map value": "map_extract_value({0}, {1})"}
_SIZE = {"size": "CAST(len({0}) AS {type})", "map size": "CAST(cardinality({0}) AS {type})"}
FUNCTIONS = (
    Function("array", "array", _array, 0, MANY, {"array": _array_form}),
    Function("size", "array", _size, 1, 1, _SIZE, note="of a null it is null, as in ANSI mode"),
    Function("cardinality", "array", _size, 1, 1),
    Function("array_size", "array", _array_size, 1, 1, spark=("ArraySize",)),
    Function("[]", "array", _item, 2, 2, _OTHER_FORMS),
    Function("get", "array", _get, 2, 2, {"get": _get_form}),
    Function("element_at", "array", _element_at("element_at"), 2, 2, {"element_at": _element_form}),
    Function("try_element_at", "array", _element_at("try_element_at"), 2, 2, {"try_element_at": _element_form}),
    Function(
        "array_contains", "array", _search("array_contains", BOOLEAN), 2, 2, _searched("array_contains", _contains_form)
    ),
    Function(
        "array_position", "array", _search("array_position", LONG), 2, 2, _searched("array_position", _position_form)
    ),
    Function("array_remove", "array", _search("array_remove", None), 2, 2, _searched("array_remove", _remove_form)),
    Function(
        "array_max",
        "array",
        _extreme("array_max"),
        1,
        1,
        {"array_max": "list_max({0})", "array_max any": _extreme_form},
    ),
    Function(
        "array_min",
        "array",
        _extreme("array_min"),
        1,
        1,
        {"array_min": "list_min({0})", "array_min any": _extreme_form},
    ),
)
