"""Texts: their length, case, parts and padding; positions count characters (code points) from 1."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import MANY, Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import BOOLEAN, INT, NULL, STRING, family, name_of

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
_NULLS = "CASE WHEN {} THEN NULL ELSE {} END"


def _strict(body: str) -> Form:
    """A template whose parts stand under conditions, made null where an operand is null."""

    def form(_: Call, a: list[str]) -> str:
        return "(" + _NULLS.format(" OR ".join(f"{x} IS NULL" for x in a), body.format(*a)) + ")"

    return form


def _ascii_only(name: str, body: str) -> Form:
    why = raise_form(f"{name}() of text outside ASCII is not the same in every engine")

    def form(_: Call, a: list[str]) -> str:
        nothing = " OR ".join(f"{x} IS NULL" for x in a)
        guard = " AND ".join(f"strlen({x}) = length({x})" for x in a)
        return f"(CASE WHEN {nothing} THEN NULL WHEN {guard} THEN {body.format(*a)} ELSE {why} END)"

    return form


def _trim_of(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        return call(op, tuple(argument("s", a, op) for a in args), STRING)

    return build


def _trim(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        return call(op, (argument("s", args[0], op), Literal(" ", STRING)), STRING)

    return build


def _trim_form(function: str) -> Form:
    return lambda _, a: f"{function}({a[0]}, {a[1]})"


def _locate(args: Sequence[Node]) -> Node:
    needle, text = argument("s", args[0], "locate"), argument("s", args[1], "locate")
    if len(args) == 3 and not (isinstance(args[2], Literal) and args[2].value == 1):
        raise Refused("locate() from another place than 1", "search in a substring")
    return call("instr", (text, needle), INT)


def _concat_ws(args: Sequence[Node]) -> Node:
    return call("concat_ws", tuple(argument("s", a, "concat_ws") for a in args), STRING)


def _concat_ws_form(_: Call, a: list[str]) -> str:
    # Without anything to join there is nothing, and not a null.
    joined = f"concat_ws({', '.join(a)})" if len(a) > 1 else "''"
    return f"(CASE WHEN {a[0]} IS NULL THEN NULL ELSE {joined} END)"


def _padded(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        pad = argument("s", args[2], op) if len(args) == 3 else Literal(" ", STRING)
        if not isinstance(pad, Literal) or not pad.value:
            raise Refused(f"{op}() with a padding that is no constant, or empty,", f"write {op}(s, 5, ' ')")
        return call(op, (argument("s", args[0], op), argument("i", args[1], op), pad), STRING)

    return build


def _marked(op: str) -> Builder:
    """split_part and substring_index: the mark and the number are constants."""

    def build(args: Sequence[Node]) -> Node:
        text, mark, number = argument("s", args[0], op), args[1], args[2]
        constant = isinstance(mark, Literal) and mark.value and isinstance(number, Literal)
        if not constant or not isinstance(number, Literal) or not isinstance(number.value, int) or not number.value:
            raise Refused(f"{op}() with a mark or number that is no constant", f"write {op}(s, ',', 1)")
        return call(op, (text, argument("s", mark, op), argument("i", number, op)), STRING)

    return build


def _substring_index_form(node: Call, a: list[str]) -> str:
    count = node.args[2]
    assert isinstance(count, Literal) and isinstance(count.value, int)
    part = f"[:{count.value}]" if count.value > 0 else f"[{count.value}:]"
    return f"array_to_string(string_split({a[0]}, {a[1]}){part}, {a[1]})"


FUNCTIONS: tuple[Function, ...] = (
    Function("concat", "string", _concat, 0, MANY, {"||": lambda _, a: "(" + " || ".join(a) + ")"}),
    Function("lower", "string", _letters("lower"), 1, 1, {"lower": _letters_form("lower")}, note=_ASCII),
    Function("upper", "string", _letters("upper"), 1, 1, {"upper": _letters_form("upper")}, note=_ASCII),
    Function("length", "string", _length, 1, 1, _LENGTH),
    Function("substring", "string", _substring, 2, 3, {"substring": _substring_form}),
    Function("substr", "string", _substring, 2, 3),
    Function("char_length", "string", _length, 1, 1),
    Function("character_length", "string", _length, 1, 1),
    Function("len", "string", _length, 1, 1),
    Function("ucase", "string", _letters("upper"), 1, 1, note=_ASCII),
    Function("lcase", "string", _letters("lower"), 1, 1, note=_ASCII),
    simple("octet_length", "string", "s", INT, "CAST(strlen({0}) AS {type})", op="octets"),
    simple("bit_length", "string", "s", INT, "CAST(8 * strlen({0}) AS {type})"),
    Function("trim", "string", _trim("trim"), 1, 1, {"trim": _trim_form("trim")}),
    Function("ltrim", "string", _trim("ltrim"), 1, 1, {"ltrim": _trim_form("ltrim")}),
    Function("rtrim", "string", _trim("rtrim"), 1, 1, {"rtrim": _trim_form("rtrim")}),
    Function("btrim", "string", _trim("trim"), 1, 1),
    Function("trim of", "string", _trim_of("trim"), 2, 2, note="TRIM(BOTH x FROM s)"),
    Function("ltrim of", "string", _trim_of("ltrim"), 2, 2, note="TRIM(LEADING x FROM s)"),
    Function("rtrim of", "string", _trim_of("rtrim"), 2, 2, note="TRIM(TRAILING x FROM s)"),
    simple("instr", "string", "ss", INT, "CAST(instr({0}, {1}) AS {type})"),
    Function("locate", "string", _locate, 2, 3),
    Function("position", "string", _locate, 2, 3),
    simple("contains", "string", "ss", BOOLEAN, "contains({0}, {1})"),
    simple("startswith", "string", "ss", BOOLEAN, "starts_with({0}, {1})"),
    simple("endswith", "string", "ss", BOOLEAN, "ends_with({0}, {1})"),
    simple("left", "string", "si", STRING, _strict("left({0}, greatest({1}, 0))")),
    simple("right", "string", "si", STRING, _strict("right({0}, greatest({1}, 0))")),
    simple("repeat", "string", "si", STRING, _strict("repeat({0}, greatest({1}, 0))")),
    simple("space", "string", "i", STRING, _strict("repeat(' ', greatest({0}, 0))")),
    simple("replace", "string", "sss", STRING, _strict("CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END")),
    simple("reverse", "string", "s", STRING, _ascii_only("reverse", "reverse({0})"), fallible=True, note="ASCII only"),
    simple(
        "translate",
        "string",
        "sss",
        STRING,
        _ascii_only("translate", "translate({0}, {1}, {2})"),
        fallible=True,
        note="ASCII only",
    ),
    simple("ascii", "string", "s", INT, "CAST(ascii({0}) AS {type})"),
    Function("concat_ws", "string", _concat_ws, 1, MANY, {"concat_ws": _concat_ws_form}),
    Function("lpad", "string", _padded("lpad"), 2, 3, {"lpad": _strict("lpad({0}, greatest({1}, 0), {2})")}),
    Function("rpad", "string", _padded("rpad"), 2, 3, {"rpad": _strict("rpad({0}, greatest({1}, 0), {2})")}),
    Function("split_part", "string", _marked("split_part"), 3, 3, {"split_part": "split_part({0}, {1}, {2})"}),
    Function("substring_index", "string", _marked("substring_index"), 3, 3, {"substring_index": _substring_index_form}),
)
