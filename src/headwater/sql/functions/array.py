"""Arrays: making them, looking into them, and changing them. Indices of ``xs[i]`` and get begin at 0, all others at 1.

Elements are equal as Spark has it: NaN equals NaN, -0.0 equals 0.0, and inside structs null equals null; DuckDB's lists agree.
A null array, and nearly every null argument, makes a null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.sql.binding import fresh, let
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.functions.struct import field_of
from headwater.sql.functions.typing import argument
from headwater.sql.nested_order import sorted_form
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import united
from headwater.sql.types import BOOLEAN, INT, LONG, NULL, STRING, array_of, family, is_comparable, name_of, wider

__all__ = ["FUNCTIONS", "OVERLOADS", "as_array", "comparable_elements", "mixes_floats", "null_if_null"]

_NO_ELEMENT = "an array has no element of that number"
_ZERO = "elements are counted from 1, or from -1 at the end: there is no 0"


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


def mixes_floats(a: pa.DataType, b: pa.DataType) -> bool:
    """Does a float meet a whole number? In these functions Spark makes it a float, and loses digits."""
    return {a == pa.float32(), b == pa.float32()} == {True, False} and "integer" in (family(a), family(b))


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


def _size(args: Sequence[Node]) -> Node:
    if not (pa.types.is_list(args[0].dtype) or pa.types.is_map(args[0].dtype)):
        raise Refused(f"size() of {name_of(args[0].dtype)}", "pass an array or a map")
    return call("map size" if pa.types.is_map(args[0].dtype) else "size", (args[0],), INT)


# --- looking


def _key(node: Node, key: Node, name: str) -> Node:
    """A key in the type of a map's keys."""
    wanted = node.dtype.key_type
    meet = wider(wanted, key.dtype, promote_text=False)
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
        return call(name, (value, argument("i", place, name)), value.dtype.value_type, fallible=True)

    return build


def _element_form(node: Call, a: list[str]) -> str:
    missing = "NULL" if node.op == "try_element_at" else raise_form(_NO_ELEMENT)

    def body(xs: str, i: str) -> str:
        zero = f"WHEN {i} = 0 THEN {raise_form(_ZERO)}"
        inside = f"WHEN abs(CAST({i} AS BIGINT)) <= len({xs}) THEN {xs}[{i}]"
        return null_if_null([xs, i], missing, zero, inside)

    return let(a, body)


# --- searching


def _meeting(array: Node, value: Node, name: str, *, void: bool = False) -> tuple[Node, Node]:
    """An array and a value in the type where Spark lets them meet."""
    element = as_array(array, name).dtype.value_type
    meet = None if mixes_floats(element, value.dtype) else wider(element, value.dtype, promote_text=False)
    if meet is None or (value.dtype == NULL and not void):
        raise Refused(f"{name}() of {name_of(array.dtype)} and {name_of(value.dtype)}", "cast the value")
    return cast(array, array_of(meet)), cast(value, meet)


def _op(op: str, element: pa.DataType) -> str:
    """An operator of its own where elements have more equals than themselves: NaN, -0.0, and null inside."""
    return f"{op} any" if family(element) in ("float", "nested") else op


def _search(op: str, dtype: pa.DataType | None) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        comparable_elements(args[0], op)
        array, value = _meeting(args[0], args[1], op)
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


# --- changing


def _added(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        array, value = _meeting(args[0], args[1], op, void=True)
        return call(op, (array, value), array.dtype)

    return build


def _inserted(args: Sequence[Node]) -> Node:
    array, value = _meeting(args[0], args[2], "array_insert", void=True)
    place = argument("i", args[1], "array_insert")
    return call("array_insert", (array, place, value), array.dtype, fallible=True)


def _insert_form(_: Call, a: list[str]) -> str:
    def body(xs: str, i: str, x: str) -> str:
        e, place, size = fresh(xs, i, x), f"CAST({i} AS BIGINT)", f"len({xs})"

        def nulls(count: str) -> str:
            return f"list_transform(range({count}), lambda {e}: NULL)"

        zero = f"WHEN {i} = 0 THEN {raise_form(_ZERO)}"
        within = (
            f"WHEN {i} > 0 AND {place} <= {size} + 1 "
            f"THEN list_concat(list_slice({xs}, 1, {place} - 1), [{x}], list_slice({xs}, {place}, {size}))"
        )
        beyond = f"WHEN {i} > 0 THEN list_concat({xs}, {nulls(f'{place} - 1 - {size}')}, [{x}])"
        cut = f"{size} + {place} + 1"
        behind = (
            f"WHEN -{place} <= {size} + 1 "
            f"THEN list_concat(list_slice({xs}, 1, {cut}), [{x}], list_slice({xs}, {cut} + 1, {size}))"
        )
        before = f"list_concat([{x}], {nulls(f'-{place} - 1 - {size}')}, {xs})"
        return null_if_null([xs, i], before, zero, within, beyond, behind)

    return let(a, body)


def _compact_form(_: Call, a: list[str]) -> str:
    e = fresh(a[0])
    return f"list_filter({a[0]}, lambda {e}: {e} IS NOT NULL)"


def _repeated(args: Sequence[Node]) -> Node:
    count = argument("i", args[1], "array_repeat")
    return call("array_repeat", (args[0], count), array_of(args[0].dtype))


def _repeat_form(_: Call, a: list[str]) -> str:
    e = fresh(*a)
    return let(
        a,
        lambda x, n: null_if_null([n], f"list_transform(range(CAST(greatest({n}, 0) AS BIGINT)), lambda {e}: {x})"),
    )


def _slice(args: Sequence[Node]) -> Node:
    array = as_array(args[0], "slice")
    return call("slice", (array, *(argument("i", a, "slice") for a in args[1:])), array.dtype, fallible=True)


def _slice_form(_: Call, a: list[str]) -> str:
    def body(xs: str, start: str, length: str) -> str:
        i, n = f"CAST({start} AS BIGINT)", f"CAST({length} AS BIGINT)"
        zero = f"WHEN {start} = 0 THEN {raise_form(_ZERO)}"
        negative = f"WHEN {length} < 0 THEN {raise_form('a slice cannot have a negative length')}"
        ahead = f"WHEN {start} > 0 THEN list_slice({xs}, {i}, {i} + {n} - 1)"
        outside = f"WHEN -{i} > len({xs}) THEN list_slice({xs}, 1, 0)"
        behind = f"list_slice({xs}, len({xs}) + {i} + 1, len({xs}) + {i} + {n})"
        return null_if_null([xs, start, length], behind, zero, negative, ahead, outside)

    return let(a, body)


def _flat(args: Sequence[Node]) -> Node:
    array = as_array(args[0], "flatten")
    if not pa.types.is_list(array.dtype.value_type):
        raise Refused(f"flatten() of {name_of(array.dtype)}", "pass an array of arrays")
    return call("flatten", (array,), array.dtype.value_type)


def _flat_form(_: Call, a: list[str]) -> str:
    hole = "WHEN list_position({0}, NULL) IS NOT NULL THEN NULL"
    return let(a, lambda xs: null_if_null([xs], f"flatten({xs})", hole.format(xs)))


def _joined(args: Sequence[Node]) -> Node:
    array = cast(as_array(args[0], "array_join"), array_of(STRING))
    if not isinstance(args[1], Literal):
        raise Refused("array_join() with a mark that is no constant", "write the mark as a text")
    op = "array_join" if len(args) == 2 else "array_join filled"
    return call(op, (array, *(argument("s", a, "array_join") for a in args[1:])), STRING)


def _join_form(_: Call, a: list[str]) -> str:
    def body(xs: str, *marks: str) -> str:
        e, shown = fresh(xs, *marks), xs
        if len(marks) == 2:
            shown = f"list_transform({xs}, lambda {e}: coalesce({e}, {marks[1]}))"
        # A list of nothing but nulls is joined to nothing, and not to a null.
        return null_if_null([xs, *marks], f"coalesce(array_to_string({shown}, {marks[0]}), '')")

    return let(a, body)


def _reversed(args: Sequence[Node]) -> Node:
    return call("array_reverse", (args[0],), as_array(args[0], "reverse").dtype)


def _joined_arrays(args: Sequence[Node]) -> Node:
    for arg in args:
        as_array(arg, "concat") if arg.dtype != NULL else None
    same = united(args, "concat()", promote_text=False)
    return call("array_concat", same, same[0].dtype)


def _concat_form(_: Call, a: list[str]) -> str:
    return let(a, lambda *xs: null_if_null(xs, f"list_concat({', '.join(xs)})"))


def _adding(form: str) -> Form:
    return lambda _, a: let(a, lambda xs, x: null_if_null([xs], form.format(xs, x)))


def _searched(op: str, form: Form) -> dict[str, Form]:
    return {op: form, f"{op} any": form}


def _same(op: str) -> Builder:
    return lambda args: call(op, (as_array(args[0], op),), args[0].dtype)


# Functions that strings have too: these are for arrays.
OVERLOADS: dict[str, Callable[[Sequence[Node]], Node]] = {"concat": _joined_arrays, "reverse": _reversed}
_OTHER_FORMS: dict[str, Form] = {
    "array_concat": _concat_form,
    "array_reverse": "list_reverse({0})",
    "item": _item_form,
    "map value": "map_extract_value({0}, {1})",
}
_SIZE = {"size": "CAST(len({0}) AS {type})", "map size": "CAST(cardinality({0}) AS {type})"}
FUNCTIONS = (
    Function("array", "array", _array, 0, MANY, {"array": lambda _, a: "[" + ", ".join(a) + "]"}),
    Function("size", "array", _size, 1, 1, _SIZE, note="of a null it is null, as in ANSI mode"),
    Function("cardinality", "array", _size, 1, 1),
    Function("[]", "array", _item, 2, 2, _OTHER_FORMS),
    Function("get", "array", _get, 2, 2, {"get": _get_form}),
    Function("element_at", "array", _element_at("element_at"), 2, 2, {"element_at": _element_form}),
    Function("try_element_at", "array", _element_at("try_element_at"), 2, 2, {"try_element_at": _element_form}),
    Function("array_contains", "array", _search("array_contains", BOOLEAN), 2, 2, _searched("array_contains", _contains_form)),
    Function("array_position", "array", _search("array_position", LONG), 2, 2, _searched("array_position", _position_form)),
    Function("array_remove", "array", _search("array_remove", None), 2, 2, _searched("array_remove", _remove_form)),
    Function("array_max", "array", _extreme("array_max"), 1, 1, {"array_max": "list_max({0})", "array_max any": _extreme_form}),
    Function("array_min", "array", _extreme("array_min"), 1, 1, {"array_min": "list_min({0})", "array_min any": _extreme_form}),
    Function("array_join", "array", _joined, 2, 3, {"array_join": _join_form, "array_join filled": _join_form}),
    Function(
        "array_append", "array", _added("array_append"), 2, 2, {"array_append": _adding("list_append({0}, {1})")}
    ),
    Function(
        "array_prepend", "array", _added("array_prepend"), 2, 2, {"array_prepend": _adding("list_prepend({1}, {0})")}
    ),
    Function("array_insert", "array", _inserted, 3, 3, {"array_insert": _insert_form}),
    Function("array_compact", "array", _same("array_compact"), 1, 1, {"array_compact": _compact_form}),
    Function("array_repeat", "array", _repeated, 2, 2, {"array_repeat": _repeat_form}),
    Function("slice", "array", _slice, 3, 3, {"slice": _slice_form}),
    Function("flatten", "array", _flat, 1, 1, {"flatten": _flat_form}),
)
