"""What an argument has to be: Spark's implicit casts for functions, as far as they lose nothing.

A letter stands for a kind of argument: ``s`` text, ``i`` int, ``l`` bigint, ``n`` any number, ``d`` double, ``t`` date, ``m`` date or timestamp, ``b``
boolean, ``x`` binary, ``a`` anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import BOOLEAN, DATE, DOUBLE, INT, LONG, NULL, STRING, TIMESTAMP, family, name_of

__all__ = ["argument", "simple"]

_ACCEPTED: dict[str, tuple[set[str], pa.DataType | None, str]] = {
    "s": ({"string", "integer", "boolean", "decimal", "date", "null"}, STRING, "cast it to a string first"),
    "l": ({"integer", "null"}, LONG, "cast it to bigint first"),
    "n": ({"integer", "float", "decimal"}, None, "cast it to a number first"),
    "d": ({"integer", "float", "decimal", "null"}, DOUBLE, "cast it to double first"),
    "b": ({"boolean", "null"}, BOOLEAN, "compare it with something"),
    "x": ({"binary", "null"}, pa.binary(), "cast it to binary first"),
    "z": ({"timestamp", "null"}, TIMESTAMP, "cast it to a timestamp first"),
}


def argument(kind: str, node: Node, name: str) -> Node:
    """The argument in the type its kind asks for, or `Refused`.

    >>> argument("l", Literal(3, INT), "f").dtype
    DataType(int64)
    """
    if kind == "a":
        return node
    if kind == "i":
        if node.dtype not in (pa.int8(), pa.int16(), INT, NULL):
            raise Refused(f"{name}() with a count of type {name_of(node.dtype)}", "cast the count to int")
        return cast(node, INT)
    if kind in ("t", "m"):
        if family(node.dtype) in ("timestamp", "timestamp_ntz") and kind == "m":
            return node
        if family(node.dtype) in ("date", "null") or isinstance(node, Literal):
            return cast(node, DATE)
        raise Refused(f"{name}() of {name_of(node.dtype)}", "cast it to a date first: CAST(x AS DATE)")
    families, dtype, hint = _ACCEPTED[kind]
    if family(node.dtype) not in families:
        raise Refused(f"{name}() of {name_of(node.dtype)}", hint)
    return node if dtype is None else cast(node, dtype)


def simple(
    name: str,
    family_name: str,
    kinds: str,
    result: pa.DataType | Callable[[Sequence[Node]], pa.DataType],
    form: Form | None,
    *,
    least: int | None = None,
    op: str | None = None,
    fallible: bool = False,
    note: str = "",
) -> Function:
    """A function whose arguments are of fixed kinds and whose DuckDB form is one template or Python function."""
    label = op or name

    def build(args: Sequence[Node]) -> Node:
        given = tuple(argument(k, a, name) for k, a in zip(kinds, args, strict=False))
        dtype = result if isinstance(result, pa.DataType) else result(given)
        return call(label, given, dtype, fallible=fallible)

    built: Builder = build
    return Function(
        name,
        family_name,
        built,
        len(kinds) if least is None else least,
        len(kinds),
        {} if form is None else {label: form},
        note=note,
    )
