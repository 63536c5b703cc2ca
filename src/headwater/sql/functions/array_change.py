"""Arrays changed: added to, cut, joined, flattened, repeated. Places are counted from 1, or from -1 at the end."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.binding import fresh, let
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.array import NO_ZERO, as_array, meeting, null_if_null
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import united
from headwater.sql.types import NULL, STRING, array_of, name_of

__all__ = ["FUNCTIONS", "OVERLOADS"]

_LARGEST = 2**31 - 1


def _added(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        array, value = meeting(args[0], args[1], op, void=True)
        return call(op, (array, value), array.dtype)

    return build


def _inserted(args: Sequence[Node]) -> Node:
    array, value = meeting(args[0], args[2], "array_insert", void=True)
    place = argument("N", args[1], "array_insert")
    return call("array_insert", (array, place, value), array.dtype, fallible=True)


def _insert_form(_: Call, a: list[str]) -> str:
    def body(xs: str, i: str, x: str) -> str:
        e, place, size = fresh(xs, i, x), f"CAST({i} AS BIGINT)", f"len({xs})"

        def nulls(count: str) -> str:
            return f"list_transform(range({count}), lambda {e}: NULL)"

        zero = f"WHEN {i} = 0 THEN {raise_form(NO_ZERO)}"
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
    count = argument("N" if args[1].dtype != NULL else "i", args[1], "array_repeat")
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
        zero = f"WHEN {start} = 0 THEN {raise_form(NO_ZERO)}"
        negative = f"WHEN {length} < 0 THEN {raise_form('a slice cannot have a negative length')}"
        first = f"(CASE WHEN {start} > 0 THEN {i} - 1 ELSE len({xs}) + {i} END)"
        # An end beyond the largest int wraps around in Spark, and gives nothing.
        outside = f"WHEN {first} < 0 OR {first} + {n} > {_LARGEST} THEN list_slice({xs}, 1, 0)"
        within = f"list_slice({xs}, {first} + 1, {first} + {n})"
        return null_if_null([xs, start, length], within, zero, negative, outside)

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


def _same(op: str) -> Builder:
    return lambda args: call(op, (as_array(args[0], op),), args[0].dtype)


# Functions that strings have too: these are for arrays.
OVERLOADS: dict[str, Builder] = {"concat": _joined_arrays, "reverse": _reversed}
_OTHERS: dict[str, Form] = {"array_concat": _concat_form, "array_reverse": "list_reverse({0})"}
FUNCTIONS = (
    Function("array_join", "array", _joined, 2, 3, {"array_join": _join_form, "array_join filled": _join_form}),
    Function("array_append", "array", _added("array_append"), 2, 2, {"array_append": _adding("list_append({0}, {1})")}),
    Function(
        "array_prepend", "array", _added("array_prepend"), 2, 2, {"array_prepend": _adding("list_prepend({1}, {0})")}
    ),
    Function("array_insert", "array", _inserted, 3, 3, {"array_insert": _insert_form}),
    Function("array_compact", "array", _same("array_compact"), 1, 1, {"array_compact": _compact_form}),
    Function("array_repeat", "array", _repeated, 2, 2, {"array_repeat": _repeat_form}),
    Function("slice", "array", _slice, 3, 3, {"slice": _slice_form}),
    Function("flatten", "array", _flat, 1, 1, {"flatten": _flat_form, **_OTHERS}),
)
