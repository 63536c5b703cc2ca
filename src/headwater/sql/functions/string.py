"""Texts: their length, case, parts and padding; positions count characters (code points) from 1."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import INT, NULL, STRING, family, name_of

__all__ = ["FUNCTIONS"]


def _concat(args: Sequence[Node]) -> Node:
    if args and all(family(a.dtype) == "binary" for a in args):
        return call("||", tuple(args), pa.binary()) if len(args) > 1 else args[0]
    texts = tuple(cast(a, STRING) for a in args)
    if len(texts) < 2:
        return texts[0] if texts else Literal("", STRING)
    return call("||", texts, STRING)


def _letters(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        return call(op, (cast(args[0], STRING),), STRING, fallible=True)

    return build


def _letters_form(name: str) -> Form:
    why = raise_form(f"{name}() of text outside ASCII is not the same in every engine")

    def form(_: Call, a: list[str]) -> str:
        x = a[0]
        ascii_only = f"strlen({x}) = length({x})"
        return f"(CASE WHEN {x} IS NULL THEN NULL WHEN {ascii_only} THEN {name}({x}) ELSE {why} END)"

    return form


def _length(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) == "binary":
        return call("octet_length", (args[0],), INT)
    return call("length", (cast(args[0], STRING),), INT)


_LENGTH: dict[str, Form] = {
    "length": "CAST(length({}) AS {type})",
    "octet_length": "CAST(octet_length({}) AS {type})",
}


def _substring(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) == "binary":
        raise Refused("substring() of binary", "decode it first")
    counts = []
    for count in args[1:]:
        if count.dtype not in (pa.int8(), pa.int16(), INT, NULL):
            raise Refused(f"substring() with a count of type {name_of(count.dtype)}", "cast the count to int")
        counts.append(cast(count, INT))
    return call("substring", (cast(args[0], STRING), *counts), STRING)


def _substring_form(_: Call, a: list[str]) -> str:
    x, start = a[0], f"CAST({a[1]} AS BIGINT)"
    size = f"CAST(length({x}) AS BIGINT)"
    # Spark counts from 1 (0 is 1 too), from the end when negative; what lies before the text is cut off the length.
    first = f"(CASE WHEN {start} > 0 THEN {start} - 1 WHEN {start} < 0 THEN {size} + {start} ELSE 0 END)"
    if len(a) == 2:
        return f"substring({x}, greatest({first}, 0) + 1)"
    last = f"least(greatest({first} + CAST({a[2]} AS BIGINT), 0), {size})"
    whole = f"substring({x}, greatest({first}, 0) + 1, greatest({last} - greatest({first}, 0), 0))"
    return f"(CASE WHEN {x} IS NULL OR {a[1]} IS NULL OR {a[2]} IS NULL THEN NULL ELSE {whole} END)"


_ASCII = "text outside ASCII raises: Java maps `ß` to `SS`, other engines do not"
FUNCTIONS = (
    Function("concat", "string", _concat, 0, MANY, {"||": lambda _, a: "(" + " || ".join(a) + ")"}),
    Function("lower", "string", _letters("lower"), 1, 1, {"lower": _letters_form("lower")}, note=_ASCII),
    Function("upper", "string", _letters("upper"), 1, 1, {"upper": _letters_form("upper")}, note=_ASCII),
    Function("length", "string", _length, 1, 1, _LENGTH),
    Function("substring", "string", _substring, 2, 3, {"substring": _substring_form}),
    Function("substr", "string", _substring, 2, 3),
)
