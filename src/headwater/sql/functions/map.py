"""Maps: making them, their parts, and looking for keys. As in Spark, no two keys are equal and none is null, or it is
an error.

Maps are never compared or grouped by; their entries can be. Keys are of a plain type other than a float: Spark changes
-0.0 to 0.0 in keys it makes, which DuckDB does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.binding import fresh, let
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.array import as_array, null_if_null
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import united
from headwater.sql.types import BOOLEAN, EMPTY_MAP, NULL, STRING, array_of, family, has_void, map_of, name_of, tighter

__all__ = ["FUNCTIONS", "as_map", "checked_key", "entries_of"]


def as_map(node: Node, name: str) -> Node:
    """The argument, if it is a map."""
    if not pa.types.is_map(node.dtype):
        raise Refused(f"{name}() of {name_of(node.dtype)}", "pass a map")
    if node.dtype == EMPTY_MAP:
        raise Refused(f"{name}() of {name_of(node.dtype)}", "cast it first: CAST(map() AS MAP<STRING, INT>)")
    return node


def checked_key(node: Node, name: str) -> Node:
    """A key of a map in the making, if its type is one that all engines agree on."""
    if family(node.dtype) in ("float", "nested", "null"):
        raise Refused(f"{name}() with keys of type {name_of(node.dtype)}", "use keys of whole numbers, texts or dates")
    return node


def entries_of(node: Node) -> Node:
    """The entries of a map: an array of structs of key and value."""
    dtype = pa.struct([pa.field("key", node.dtype.key_type), pa.field("value", node.dtype.item_type)])
    return call("map_entries", (node,), array_of(dtype))


def _map(args: Sequence[Node]) -> Node:
    if not args:
        return call("map", (), EMPTY_MAP)
    if len(args) % 2:
        raise Refused(f"map() of {len(args)} arguments", "give a key and a value for each entry")
    keys, values = (united(args[i::2], "map()", promote_text=False) for i in (0, 1))
    if values[0].dtype == NULL:
        raise Refused("a map of nothing but nulls", "cast the values to their type")
    checked_key(keys[0], "map")
    pairs = tuple(node for pair in zip(keys, values, strict=True) for node in pair)
    return call("map", pairs, map_of(keys[0].dtype, values[0].dtype), fallible=True)


def _from_arrays(args: Sequence[Node]) -> Node:
    keys, values = (as_array(a, "map_from_arrays") for a in args)
    key, value = keys.dtype.value_type, values.dtype.value_type
    checked_key(Literal(None, key), "map_from_arrays")
    return call("map_from_arrays", (keys, values), map_of(key, value), fallible=True)


def _arrays_form(_: Call, a: list[str]) -> str:
    why = raise_form("the keys and the values of a map are not as many")
    return let(a, lambda k, v: null_if_null([k, v], f"map({k}, {v})", f"WHEN len({k}) <> len({v}) THEN {why}"))


def _from_entries(args: Sequence[Node]) -> Node:
    array = as_array(args[0], "map_from_entries")
    entry = array.dtype.value_type
    if not pa.types.is_struct(entry) or entry.num_fields != 2:
        raise Refused(f"map_from_entries() of {name_of(array.dtype)}", "pass an array of structs of two fields")
    key, value = entry.field(0).type, entry.field(1).type
    checked_key(Literal(None, key), "map_from_entries")
    return call("map_from_entries", (array,), map_of(key, value), fallible=True)


def _entries_form(_: Call, a: list[str]) -> str:
    hole = "WHEN list_position({0}, NULL) IS NOT NULL THEN NULL"
    return let(a, lambda xs: null_if_null([xs], f"map_from_entries({xs})", hole.format(xs)))


def _joined(args: Sequence[Node]) -> Node:
    for arg in args:
        as_map(arg, "map_concat")
    same = united(args, "map_concat()", promote_text=False)
    checked_key(Literal(None, same[0].dtype.key_type), "map_concat")
    return call("map_concat", same, same[0].dtype, fallible=True)


def _concat_form(_: Call, a: list[str]) -> str:
    def body(*maps: str) -> str:
        entries = ", ".join(f"map_entries({m})" for m in maps)
        return null_if_null(maps, f"map_from_entries(list_concat({entries}))")

    return let(a, body)


def _part(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        map_ = as_map(args[0], op)
        element = map_.dtype.key_type if op == "map_keys" else map_.dtype.item_type
        return call(op, (map_,), array_of(element))

    return build


def _has_key(args: Sequence[Node]) -> Node:
    map_, key = as_map(args[0], "map_contains_key"), args[1]
    wanted = map_.dtype.key_type
    if key.dtype == NULL or tighter(wanted, key.dtype) != wanted:
        what = f"map_contains_key() of {name_of(map_.dtype)} and {name_of(key.dtype)}"
        raise Refused(what, "cast the key to the type of the map's keys")
    return call("map_contains_key", (map_, cast(key, wanted)), BOOLEAN)


def _has_key_form(_: Call, a: list[str]) -> str:
    return let(a, lambda m, k: null_if_null([m, k], f"list_contains(map_keys({m}), {k})"))


def _from_text(args: Sequence[Node]) -> Node:
    marks = [*args[1:], *(Literal(m, STRING) for m in (",", ":")[len(args) - 1 :])]
    for mark in marks:
        text = mark.value if isinstance(mark, Literal) else None
        if not isinstance(text, str) or not text or set(text) & set("\\^$.|?*+()[]{}"):
            raise Refused("str_to_map() with these marks", "give constant texts without \\ ^ $ . | ? * + ( ) [ ] { }")
    text = argument("s", args[0], "str_to_map")
    return call("str_to_map", (text, *marks), map_of(STRING, STRING), fallible=True)


def _text_form(node: Call, a: list[str]) -> str:
    e = fresh(*a)
    assert isinstance(node.args[2], Literal)
    skip = len(str(node.args[2].value))
    at = f"instr({e}, {a[2]})"
    key = f"CASE WHEN {at} > 0 THEN substr({e}, 1, {at} - 1) ELSE {e} END"
    value = f"CASE WHEN {at} > 0 THEN substr({e}, {at} + {skip}) END"
    pairs = f"list_transform(string_split({a[0]}, {a[1]}), lambda {e}: {{'key': {key}, 'value': {value}}})"
    return f"map_from_entries({pairs})"


def _map_form(node: Call, a: list[str]) -> str:
    if not a:
        return "MAP([], [])" if has_void(node.dtype) else f"CAST(MAP([], []) AS {duckdb_type(node.dtype)})"
    return "MAP {" + ", ".join(f"{k}: {v}" for k, v in zip(a[::2], a[1::2], strict=True)) + "}"


def _plain(form: str) -> Form:
    return lambda _, a: form.format(*a)


_ENTRIES = {"map_entries": _plain("map_entries({0})"), "map of entries": _plain("map_from_entries({0})")}
FUNCTIONS = (
    Function(
        "map",
        "map",
        _map,
        0,
        MANY,
        {"map": _map_form},
        note="maps are not compared, sorted, grouped by or made distinct: use map_entries(m)",
    ),
    Function("map_from_arrays", "map", _from_arrays, 2, 2, {"map_from_arrays": _arrays_form}),
    Function("map_from_entries", "map", _from_entries, 1, 1, {"map_from_entries": _entries_form}),
    Function("map_entries", "map", lambda args: entries_of(as_map(args[0], "map_entries")), 1, 1, _ENTRIES),
    Function("map_keys", "map", _part("map_keys"), 1, 1, {"map_keys": _plain("map_keys({0})")}),
    Function("map_values", "map", _part("map_values"), 1, 1, {"map_values": _plain("map_values({0})")}),
    Function("map_concat", "map", _joined, 1, MANY, {"map_concat": _concat_form}),
    Function("map_contains_key", "map", _has_key, 2, 2, {"map_contains_key": _has_key_form}),
    Function(
        "str_to_map",
        "map",
        _from_text,
        1,
        3,
        {"str_to_map": _text_form},
        note="marks are constants without characters of regular expressions",
    ),
)
