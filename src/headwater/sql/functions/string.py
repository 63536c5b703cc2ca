"""Texts: their length, case, parts and padding; positions count characters (code points) from 1."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.nodes import Call, Literal, Node, call
from headwater.sql.types import BOOLEAN, INT, STRING, family

__all__ = ["FUNCTIONS"]


def _concat(args: Sequence[Node]) -> Node:
    if args and all(family(a.dtype) == "binary" for a in args):
        return call("||", tuple(args), pa.binary()) if len(args) > 1 else args[0]
    texts = tuple(cast(a, STRING) for a in args)
    if len(texts) < 2:
        return texts[0] if texts else Literal("", STRING)
    return call("||", texts, STRING)


def _length(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) == "binary":
        return call("octet_length", (args[0],), INT)
    return call("length", (cast(args[0], STRING),), INT)


_LENGTH: dict[str, Form] = {
    "length": "CAST(length({}) AS {type})",
    "octet_length": "CAST(octet_length({}) AS {type})",
}


def _octets(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) == "binary":
        return call("octet_length", (args[0],), INT)
    return call("octets", (argument("s", args[0], "octet_length"),), INT)


def _bit_length(args: Sequence[Node]) -> Node:
    return call("bits", (_octets(args),), INT)


def _replace(args: Sequence[Node]) -> Node:
    put = args[2] if len(args) == 3 else Literal("", STRING)
    return call("replace", tuple(argument("s", a, "replace") for a in (*args[:2], put)), STRING)


def _substring(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) == "binary":
        length = argument("i", args[2], "substring") if len(args) == 3 else Literal(2**31 - 1, INT)
        return call("cut bytes", (args[0], argument("i", args[1], "substring"), length), pa.binary())
    counts = [argument("i", count, "substring") for count in args[1:]]
    return call("substring", (cast(args[0], STRING), *counts), STRING)


def _substring_form(_: Call, a: list[str]) -> str:
    x, start = a[0], f"CAST({a[1]} AS BIGINT)"
    size = f"CAST(length({x}) AS BIGINT)"
    # Spark counts from 1 (0 is 1 too), from the end when negative; what lies before the text is cut off the length.
    first = f"(CASE WHEN {start} > 0 THEN {start} - 1 WHEN {start} < 0 THEN {size} + {start} ELSE 0 END)"
    if len(a) == 2:
        return f"(CASE WHEN {a[1]} IS NULL THEN NULL ELSE substring({x}, greatest({first}, 0) + 1) END)"
    last = f"least(greatest({first} + CAST({a[2]} AS BIGINT), 0), {size})"
    whole = f"substring({x}, greatest({first}, 0) + 1, greatest({last} - greatest({first}, 0), 0))"
    return f"(CASE WHEN {x} IS NULL OR {a[1]} IS NULL OR {a[2]} IS NULL THEN NULL ELSE {whole} END)"


_NULLS = "CASE WHEN {} THEN NULL ELSE {} END"


def _strict(body: str) -> Form:
    """A template whose parts stand under conditions, made null where an operand is null."""

    def form(_: Call, a: list[str]) -> str:
        return "(" + _NULLS.format(" OR ".join(f"{x} IS NULL" for x in a), body.format(*a)) + ")"

    return form


def _trim_of(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        return call(op, tuple(argument("s", a, op) for a in args), STRING)

    return build


def _trim(op: str, *, text_first: bool = False) -> Builder:
    """trim(x, s) takes the characters first, btrim(s, x) the text."""

    def build(args: Sequence[Node]) -> Node:
        given = [argument("s", a, op) for a in args]
        if len(given) == 1:
            return call(op, (given[0], Literal(" ", STRING)), STRING)
        return call(op, tuple(given if text_first else given[::-1]), STRING)

    return build


def _trim_form(function: str) -> Form:
    return lambda _, a: f"{function}({a[0]}, {a[1]})"


def _quoted(args: Sequence[Node]) -> Node:
    """In single quotes, those inside with a backslash before them."""
    text, mark = argument("s", args[0], "quote"), Literal("'", STRING)
    inside = call("replace", (text, mark, Literal("\\'", STRING)), STRING)
    return call("||", (mark, inside, mark), STRING)


def _concat_ws(args: Sequence[Node]) -> Node:
    return call("concat_ws", tuple(argument("s", a, "concat_ws") for a in args), STRING)


def _concat_ws_form(_: Call, a: list[str]) -> str:
    # Without anything to join there is nothing, and not a null.
    joined = f"concat_ws({', '.join(a)})" if len(a) > 1 else "''"
    return f"(CASE WHEN {a[0]} IS NULL THEN NULL ELSE {joined} END)"


_REPLACE = "CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END"
FUNCTIONS: tuple[Function, ...] = (
    Function("concat", "string", _concat, 0, MANY, {"||": lambda _, a: "(" + " || ".join(a) + ")"}),
    Function("length", "string", _length, 1, 1, _LENGTH),
    Function("substring", "string", _substring, 2, 3, {"substring": _substring_form}),
    Function("substr", "string", _substring, 2, 3),
    Function("char_length", "string", _length, 1, 1),
    Function("character_length", "string", _length, 1, 1),
    Function("len", "string", _length, 1, 1),
    Function("octet_length", "string", _octets, 1, 1, {"octets": "CAST(strlen({0}) AS {type})"}),
    Function("bit_length", "string", _bit_length, 1, 1, {"bits": "CAST(8 * {0} AS {type})"}),
    Function("trim", "string", _trim("trim"), 1, 2, {"trim": _trim_form("trim")}),
    Function("ltrim", "string", _trim("ltrim"), 1, 2, {"ltrim": _trim_form("ltrim")}),
    Function("rtrim", "string", _trim("rtrim"), 1, 2, {"rtrim": _trim_form("rtrim")}),
    Function("btrim", "string", _trim("trim", text_first=True), 1, 2),
    Function("trim of", "string", _trim_of("trim"), 2, 2, note="TRIM(BOTH x FROM s)"),
    Function("ltrim of", "string", _trim_of("ltrim"), 2, 2, note="TRIM(LEADING x FROM s)"),
    Function("rtrim of", "string", _trim_of("rtrim"), 2, 2, note="TRIM(TRAILING x FROM s)"),
    simple("instr", "string", "ss", INT, "CAST(instr({0}, {1}) AS {type})"),
    simple("contains", "string", "ss", BOOLEAN, "contains({0}, {1})"),
    simple("startswith", "string", "ss", BOOLEAN, "starts_with({0}, {1})"),
    simple("endswith", "string", "ss", BOOLEAN, "ends_with({0}, {1})"),
    simple("repeat", "string", "si", STRING, _strict("repeat({0}, greatest({1}, 0))")),
    simple("space", "string", "i", STRING, _strict("repeat(' ', greatest({0}, 0))")),
    Function("replace", "string", _replace, 2, 3, {"replace": _strict(_REPLACE)}),
    Function("quote", "string", _quoted, 1, 1, spark=("Quote",)),
    simple("ascii", "string", "s", INT, "CAST(ascii({0}) AS {type})"),
    Function("concat_ws", "string", _concat_ws, 1, MANY, {"concat_ws": _concat_ws_form}),
)
