"""Generators: functions that make rows of one row. explode and posexplode of arrays and maps, inline, stack,
json_tuple.

All of them are one plan, `Generate`, over an array: a map is the array of its entries, stack an array of structs,
json_tuple an array of one struct. Where the elements are structs that become several columns, a projection above takes
them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.sql.calls import apply_function
from headwater.sql.functions.json import json_fields
from headwater.sql.functions.map import entries_of
from headwater.sql.functions.struct import field_of
from headwater.sql.literals import text_literal
from headwater.sql.nodes import Literal, Node, Refused, Wrong, call
from headwater.sql.operators import united
from headwater.sql.plan import Attribute, Generate, Named, Plan, Project
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.scopes import Entry, RowScope
from headwater.sql.types import INT, NULL, array_of, has_void, name_of

__all__ = ["generated", "is_generator"]

_NAMES = {"explode", "posexplode", "inline", "stack", "json_tuple"}


def is_generator(name: str) -> bool:
    """Does a call of this name make rows?

    >>> is_generator("POSEXPLODE_OUTER"), is_generator("size")
    (True, False)
    """
    return name.lower().removesuffix("_outer") in _NAMES


def _unnamed(function: str, node: exp.Expr) -> exp.Expr:
    """The one argument of a generator, which may be given by its name."""
    if not isinstance(node, exp.Kwarg):
        return node
    wanted = {"explode": "collection", "posexplode": "collection", "inline": "input"}.get(
        function.removesuffix("_outer")
    )
    if node.this.name.lower() != wanted:
        raise Refused(f"{function}() with an argument named {node.this.name}", "give its arguments by their places")
    value: exp.Expr = node.expression
    return value


@dataclass(frozen=True, slots=True)
class _Rows:
    """The array whose elements become rows; ``names`` are its columns', ``apart`` if an element is several of them."""

    array: Node
    names: tuple[str, ...]
    apart: bool = False
    counted: bool = False


def generated(
    context: Context,
    plan: Plan,
    entries: tuple[Entry, ...],
    node: exp.Expr,
    names: Sequence[str],
    *,
    outer: bool,
    around: RowScope | None,
) -> Plan:
    """The rows of a generator next to those of ``plan``: its columns are the last ones of the output."""
    function = node.name.lower()
    if not is_generator(function):
        raise Refused(f"the generator {function}()", "use explode, posexplode, inline or stack")
    reader = QueryReader(context, RowScope(entries, around=around), place=f"{function}()")
    rows = _READERS[function.removesuffix("_outer")](
        function, [reader.read(_unnamed(function, e)) for e in node.expressions]
    )
    if has_void(rows.array.dtype):
        raise Refused(f"{function}() of {name_of(rows.array.dtype)}", "cast the array to its type")
    places = ("pos",) if rows.counted else ()
    if names and len(names) != len(places) + len(rows.names):
        count = len(places) + len(rows.names)
        raise Wrong(f"{function}() has {count} column(s), and {len(names)} name(s) are given", f"give {count}")
    called = list(names) or [*places, *rows.names]
    keeps = outer or function.endswith("_outer")
    position = context.attribute(called[0], INT, nullable=keeps) if rows.counted else None
    element = rows.array.dtype.value_type
    if not rows.apart:
        return Generate(plan, rows.array, keeps, position, (context.attribute(called[-1], element),))
    whole = context.attribute("element", element)
    made = Generate(plan, rows.array, keeps, position, (whole,))
    passed: list[Attribute] = [*plan.output, *(() if position is None else (position,))]
    items = [Named(a, a.column) for a in passed]
    fields = zip(called[len(places) :], element, strict=True)
    items += [context.named(name, field_of(whole.column, field.name)) for name, field in fields]
    return Project(made, tuple(items))


def _one(function: str, args: list[Node]) -> Node:
    if len(args) != 1:
        raise Wrong(f"{function}() takes one argument, and {len(args)} are given", "write explode(xs)")
    return args[0]


def _explode(function: str, args: list[Node]) -> _Rows:
    value, counted = _one(function, args), function.startswith("pos")
    if pa.types.is_map(value.dtype):
        return _Rows(entries_of(value), ("key", "value"), apart=True, counted=counted)
    if not pa.types.is_list(value.dtype):
        raise Wrong(f"explode() cannot take {name_of(value.dtype)}", "explode an array or a map")
    return _Rows(value, ("col",), counted=counted)


def _inline(function: str, args: list[Node]) -> _Rows:
    value = _one(function, args)
    if not pa.types.is_list(value.dtype) or not pa.types.is_struct(value.dtype.value_type):
        raise Wrong(f"inline() cannot take {name_of(value.dtype)}", "inline an array of structs")
    return _Rows(value, tuple(f.name for f in value.dtype.value_type), apart=True)


def _stack(_: str, args: list[Node]) -> _Rows:
    count = args[0].value if args and isinstance(args[0], Literal) else None
    if not isinstance(count, int) or isinstance(count, bool) or count < 1 or len(args) < 2:
        raise Wrong("stack() needs a number of rows, and values", "write stack(2, a, b, c, d)")
    values = args[1:]
    width = -(-len(values) // count)
    padded = [*values, *(Literal(None, NULL) for _ in range(width * count - len(values)))]
    columns = [united(padded[i::width], "a column of stack()", promote_text=False) for i in range(width)]
    if any(c[0].dtype == NULL for c in columns):
        raise Refused("a column of nothing but nulls in stack()", "cast a value to its type")
    names = tuple(f"col{i}" for i in range(width))

    def made(row: tuple[Node, ...]) -> Node:
        return apply_function(
            "named_struct", [p for n, v in zip(names, row, strict=True) for p in (text_literal(n), v)]
        )

    rows = tuple(map(made, zip(*columns, strict=True)))
    return _Rows(call("array", rows, array_of(rows[0].dtype)), names, apart=True)


def _json_tuple(_: str, args: list[Node]) -> _Rows:
    row = json_fields(args)
    return _Rows(call("array", (row,), array_of(row.dtype)), tuple(f"c{i}" for i in range(len(args) - 1)), apart=True)


_READERS = {
    "explode": _explode,
    "posexplode": _explode,
    "inline": _inline,
    "stack": _stack,
    "json_tuple": _json_tuple,
}
