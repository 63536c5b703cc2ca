"""What an argument has to be: Spark's implicit casts for functions in ANSI mode.

A letter stands for a kind of argument. Lower case takes what Spark casts by itself, texts included; upper case only
what it takes as it is: ``s`` text, ``i``/``I`` int, ``N`` a number for an int (no text, no NULL), ``l``/``L`` bigint,
``n`` any number, ``d`` double, ``t``/``T`` date, ``z``/``Z`` timestamp, ``b`` boolean, ``x`` binary, ``a`` anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import BOOLEAN, DATE, DOUBLE, INT, LONG, NULL, STRING, TIMESTAMP, family, name_of

__all__ = ["argument", "constant", "simple"]

_NUMBERS = {"integer", "float", "decimal"}
_TIMES = {"date", "timestamp", "timestamp_ntz"}
_ANY = {*_NUMBERS, *_TIMES, "string", "binary", "boolean", "null"}
_ACCEPTED: dict[str, tuple[set[str], pa.DataType | None, str]] = {
    "s": ({*_ANY, "day interval", "month interval"}, STRING, "cast it to a string first"),
    "i": ({*_NUMBERS, "string", "null"}, INT, "cast it to int first"),
    "I": ({"integer", "string", "null"}, INT, "cast it to int first"),
    "N": ({"integer", "float", "decimal"}, INT, "cast it to int first"),
    "l": ({*_NUMBERS, "string", "null"}, LONG, "cast it to bigint first"),
    "L": ({"integer", "null"}, LONG, "cast it to bigint first"),
    "n": (_NUMBERS, None, "cast it to a number first"),
    "d": ({*_NUMBERS, "string", "null"}, DOUBLE, "cast it to double first"),
    "b": ({"boolean", "null"}, BOOLEAN, "compare it with something"),
    "x": ({"binary", "string", "null"}, pa.binary(), "cast it to binary first"),
    "t": ({*_TIMES, "string", "null"}, DATE, "cast it to a date first: CAST(x AS DATE)"),
    "T": ({"date", "null"}, DATE, "cast it to a date first: CAST(x AS DATE)"),
    "z": ({*_TIMES, "string", "null"}, TIMESTAMP, "cast it to a timestamp first"),
    "Z": ({"timestamp", "timestamp_ntz", "null"}, TIMESTAMP, "cast it to a timestamp first"),
    "a": ({*_ANY, "nested", "day interval", "month interval"}, None, ""),
}


def argument(kind: str, node: Node, name: str) -> Node:
    """The argument in the type its kind asks for, or `Refused`.

    >>> argument("l", Literal(3, INT), "f").dtype
    DataType(int64)
    """
    families, dtype, hint = _ACCEPTED[kind]
    if family(node.dtype) not in families or (kind == "I" and node.dtype == LONG):
        raise Refused(f"{name}() of {name_of(node.dtype)}", hint)
    return node if dtype is None else cast(node, dtype)


def constant(node: Node, name: str, hint: str) -> object:
    """The value of an argument that has to be a constant and no null."""
    if not isinstance(node, Literal) or node.value is None or node.dtype == NULL:
        raise Refused(f"{name}() with an argument that is not a constant", hint)
    return node.value


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
    spark: tuple[str, ...] = (),
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
        spark=spark,
    )
