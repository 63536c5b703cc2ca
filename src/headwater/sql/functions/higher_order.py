"""Functions that take lambdas: transform, filter, exists, aggregate and their kin, over arrays and maps.

A lambda is read once the types of its parameters are known, and written as DuckDB's own ``lambda x: …``. Maps go
through the array of their entries, so a parameter for a key is a field of an entry. The engines agree on what a lambda
sees; they differ in when they stop: `exists` looks at every element here, so an error behind the first match is raised
and not skipped.

A comparator of array_sort may be anything. Its answers over all pairs have to come from an order (for all x and y, its
sign is that of a difference of ranks), which is checked for each array; then every stable sort gives the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.sql.binding import fresh, let
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.array import as_array, comparable_elements, null_if_null
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.map import as_map, checked_key, entries_of
from headwater.sql.functions.struct import field_of
from headwater.sql.nested_order import sorted_form
from headwater.sql.nodes import Call, Literal, Node, Refused, Unbound, call, function_of, variable
from headwater.sql.types import BOOLEAN, INT, LONG, NULL, STRING, array_of, map_of, name_of

__all__ = ["FUNCTIONS"]

_NO_ORDER = "the comparator is no order: it has to give 0 for equal elements, and a number for every pair"


def _lambda(arg: Any, name: str, *counts: int) -> Unbound:
    if not isinstance(arg, Unbound) or len(arg.names) not in counts:
        raise Refused(f"{name}() without a lambda of {' or '.join(map(str, counts))} parameter(s)", "write x -> x + 1")
    return arg


def _value(arg: Any, name: str) -> Node:
    if isinstance(arg, Unbound):
        raise Refused(f"a lambda in this place of {name}()", "put the array first and the lambda behind it")
    node: Node = arg
    return node


def _truth(node: Node, name: str) -> Node:
    if node.dtype not in (BOOLEAN, NULL):
        raise Refused(f"{name}() with a lambda of type {name_of(node.dtype)}", "compare it with something")
    return cast(node, BOOLEAN)


def _over_elements(array: Node, function: Unbound, name: str, *, truth: bool = False) -> Call:
    """The lambda over an element and, where it has a second parameter, its index from 0."""
    x = variable(function.names[0], array.dtype.value_type)
    parameters, values = (x,), [x]
    if len(function.names) == 2:
        i = variable(function.names[1], LONG)
        parameters, values = (x, i), [x, call("from zero", (i,), INT)]  # type: ignore[assignment]
    body = function.read(values)
    return function_of(parameters, _truth(body, name) if truth else body)


def _transform(args: Sequence[Any]) -> Node:
    array = as_array(_value(args[0], "transform"), "transform")
    inner = _over_elements(array, _lambda(args[1], "transform", 1, 2), "transform")
    return call("transform", (array, inner), array_of(inner.args[-1].dtype))


def _filter(args: Sequence[Any]) -> Node:
    array = as_array(_value(args[0], "filter"), "filter")
    inner = _over_elements(array, _lambda(args[1], "filter", 1, 2), "filter", truth=True)
    return call("filter", (array, inner), array.dtype)


def _quantified(name: str) -> Builder:
    def build(args: Sequence[Any]) -> Node:
        array = as_array(_value(args[0], name), name)
        inner = _over_elements(array, _lambda(args[1], name, 1), name, truth=True)
        return call(f"array {name}", (array, inner), BOOLEAN)

    return build


def _quantified_form(node: Call, a: list[str]) -> str:
    stop = "TRUE" if node.op == "array exists" else "FALSE"
    end = "FALSE" if stop == "TRUE" else "TRUE"

    def body(found: str) -> str:
        maybe = f"WHEN list_position({found}, NULL) IS NOT NULL THEN NULL"
        return null_if_null([found], end, f"WHEN list_contains({found}, {stop}) THEN {stop}", maybe)

    return let([f"list_transform({a[0]}, {a[1]})"], body)


def _aggregate(args: Sequence[Any]) -> Node:
    array, start = as_array(_value(args[0], "aggregate"), "aggregate"), _value(args[1], "aggregate")
    merge = _lambda(args[2], "aggregate", 2).bound(start.dtype, array.dtype.value_type)
    given = merge.args[-1].dtype
    if given != start.dtype:
        what = f"aggregate() that begins with {name_of(start.dtype)} and goes on with {name_of(given)}"
        raise Refused(what, "cast the start to the type of the lambda")
    parts: tuple[Node, ...] = (array, start, merge)
    dtype = start.dtype
    if len(args) == 4:
        finish = _lambda(args[3], "aggregate", 1).bound(start.dtype)
        parts, dtype = (*parts, finish), finish.args[-1].dtype
    return call("array aggregate", parts, dtype)


def _aggregate_form(_: Call, a: list[str]) -> str:
    def body(xs: str, start: str) -> str:
        whole = f"list_reduce({xs}, {a[2]}, {start})"
        if len(a) == 4:
            whole = f"list_transform([{whole}], {a[3]})[1]"
        return null_if_null([xs], whole)

    # The lambdas stay where they are: they are no values.
    return let(a[:2], body)


def _zip_with(args: Sequence[Any]) -> Node:
    left, right = (as_array(_value(a, "zip_with"), "zip_with") for a in args[:2])
    function = _lambda(args[2], "zip_with", 2)
    dtype = pa.struct([pa.field("l", left.dtype.value_type), pa.field("r", right.dtype.value_type)])
    pairs = call("arrays_zip", (Literal("l", STRING), left, Literal("r", STRING), right), array_of(dtype))
    pair = variable(function.names[0], dtype)
    body = function.read((field_of(pair, "l"), field_of(pair, "r")))
    return call("transform", (pairs, function_of((pair,), body)), array_of(body.dtype))


# --- maps


def _over_entries(map_: Node, function: Unbound) -> tuple[Node, Call, Node, Node]:
    """The entries of a map, the variable of a lambda over them, and its key and value."""
    entries = entries_of(map_)
    entry = variable(function.names[0], entries.dtype.value_type)
    return entries, entry, field_of(entry, "key"), field_of(entry, "value")


def _map_filter(args: Sequence[Any]) -> Node:
    map_ = as_map(_value(args[0], "map_filter"), "map_filter")
    function = _lambda(args[1], "map_filter", 2)
    entries, entry, key, value = _over_entries(map_, function)
    body = _truth(function.read((key, value)), "map_filter")
    kept = call("filter", (entries, function_of((entry,), body)), entries.dtype)
    return call("map of entries", (kept,), map_.dtype)


def _map_transform(name: str) -> Builder:
    def build(args: Sequence[Any]) -> Node:
        map_ = as_map(_value(args[0], name), name)
        function = _lambda(args[1], name, 2)
        entries, entry, key, value = _over_entries(map_, function)
        body = function.read((key, value))
        if name == "transform_keys":
            key = checked_key(body, name)
        else:
            value = body
        return _mapped(entries, entry, key, value, fallible=name == "transform_keys")

    return build


def _mapped(source: Node, parameter: Call, key: Node, value: Node, *, fallible: bool) -> Node:
    if value.dtype == NULL:
        raise Refused("a map of nothing but nulls", "cast the values to their type")
    dtype = pa.struct([pa.field("key", key.dtype), pa.field("value", value.dtype)])
    entry = call("named_struct", (Literal("key", STRING), key, Literal("value", STRING), value), dtype)
    changed = call("transform", (source, function_of((parameter,), entry)), array_of(dtype))
    return call("map of entries", (changed,), map_of(key.dtype, value.dtype), fallible=fallible)


def _map_zip_with(args: Sequence[Any]) -> Node:
    left, right = (as_map(_value(a, "map_zip_with"), "map_zip_with") for a in args[:2])
    function = _lambda(args[2], "map_zip_with", 3)
    if left.dtype.key_type != right.dtype.key_type:
        what = f"map_zip_with() of {name_of(left.dtype)} and {name_of(right.dtype)}"
        raise Refused(what, "cast the keys to one type")
    keys = array_of(left.dtype.key_type)
    both = call("array_union", tuple(call("map_keys", (m,), keys) for m in (left, right)), keys)
    key = variable(function.names[0], left.dtype.key_type)
    values = [call("map value", (m, key), m.dtype.item_type) for m in (left, right)]
    return _mapped(both, key, key, function.read((key, *values)), fallible=False)


# --- sorting


def _array_sort(args: Sequence[Any]) -> Node:
    array = _value(args[0], "array_sort")
    if len(args) == 1:
        comparable_elements(array, "array_sort")
        return call("array_sort", (array,), array.dtype)
    element = as_array(array, "array_sort").dtype.value_type
    function = _lambda(args[1], "array_sort", 2)
    x, y = (variable(n, element) for n in function.names)
    body = function.read((x, y))
    if body.dtype != INT:
        raise Refused(f"array_sort() with a comparator of type {name_of(body.dtype)}", "give -1, 0 or 1")
    return call("array_sort by", (array, x, y, body), array.dtype, fallible=True)


def _sort_form(node: Call, a: list[str]) -> str:
    return sorted_form(a[0], node.dtype.value_type, nulls_last=True)


def _sort_by_form(_: Call, a: list[str]) -> str:
    xs, left, right, order = a
    row, x, i, j = (fresh(*a, stem=stem) for stem in ("r", "e", "i", "j"))

    def ranked(xs: str, signs: str) -> str:
        smaller = f"len(list_filter({row}, lambda {x}: {x} < 0))"
        return let([xs, signs, f"list_transform({signs}, lambda {row}: {smaller})"], placed)

    def placed(xs: str, signs: str, ranks: str) -> str:
        wrong = f"{i} <> {j} AND {x} IS DISTINCT FROM sign({ranks}[{j}] - {ranks}[{i}])"
        broken = (
            f"len(list_filter({signs}, lambda {row}, {i}: len(list_filter({row}, lambda {x}, {j}: {wrong})) > 0)) > 0"
        )
        keys = f"list_transform({xs}, lambda {x}, {i}: {{'r': {ranks}[{i}], 'i': {i}}})"
        sorted_ = f"list_transform(list_sort({keys}), lambda {x}: {xs}[{x}.i])"
        return null_if_null([xs], sorted_, f"WHEN {broken} THEN {raise_form(_NO_ORDER)}")

    def compared(xs: str) -> str:
        # Every pair is compared once: a row for each element on the right, in it a sign for each on the left.
        signs = f"list_transform({xs}, lambda {right}: list_transform({xs}, lambda {left}: sign({order})))"
        return let([xs, signs], ranked)

    return let([xs], compared)


_TRANSFORM: dict[str, Form] = {
    "transform": lambda _, a: f"list_transform({a[0]}, {a[1]})",
    "filter": lambda _, a: f"list_filter({a[0]}, {a[1]})",
    "from zero": "CAST({0} - 1 AS INTEGER)",
}
_QUANTIFIED = {"array exists": _quantified_form, "array forall": _quantified_form}
_STOPS = "an error behind the first match is raised here, where Spark would have stopped looking"
_FAMILY = "higher_order"
FUNCTIONS = (
    Function(
        "transform",
        _FAMILY,
        _transform,
        2,
        2,
        _TRANSFORM,
        lambdas=True,
    ),
    Function("filter", _FAMILY, _filter, 2, 2, lambdas=True),
    Function("exists", _FAMILY, _quantified("exists"), 2, 2, _QUANTIFIED, note=_STOPS, lambdas=True),
    Function("forall", _FAMILY, _quantified("forall"), 2, 2, note=_STOPS, lambdas=True),
    Function("aggregate", _FAMILY, _aggregate, 3, 4, {"array aggregate": _aggregate_form}, lambdas=True),
    Function("reduce", _FAMILY, _aggregate, 3, 4, lambdas=True),
    Function("zip_with", _FAMILY, _zip_with, 3, 3, lambdas=True),
    Function(
        "array_sort",
        _FAMILY,
        _array_sort,
        1,
        2,
        {"array_sort": _sort_form, "array_sort by": _sort_by_form},
        note="a comparator has to be an order, with 0 for equal elements",
        lambdas=True,
    ),
    Function("map_filter", _FAMILY, _map_filter, 2, 2, lambdas=True),
    Function("transform_keys", _FAMILY, _map_transform("transform_keys"), 2, 2, lambdas=True),
    Function("transform_values", _FAMILY, _map_transform("transform_values"), 2, 2, lambdas=True),
    Function("map_zip_with", _FAMILY, _map_zip_with, 3, 3, lambdas=True),
)
