"""Bits of whole numbers: ``& | ^ ~``, shifts, and single bits. A shift counts modulo the width, as in Java."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Call, Node, Refused, call
from headwater.sql.types import INT, LONG, family, name_of, wider
from headwater.sql.udfs import define

__all__ = ["FUNCTIONS"]

_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


def _two(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        for arg in args:
            if family(arg.dtype) != "integer":
                raise Refused(f"`{op}` of {name_of(arg.dtype)}", "use whole numbers")
        meet = wider(args[0].dtype, args[1].dtype)
        assert meet is not None
        return call(op, tuple(cast(a, meet) for a in args), meet)

    return build


def _not(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) != "integer":
        raise Refused(f"`~` of {name_of(args[0].dtype)}", "use a whole number")
    return call("~", (args[0],), args[0].dtype)


def _count(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) not in ("integer", "boolean", "null"):
        raise Refused(f"bit_count() of {name_of(args[0].dtype)}", "use a whole number")
    return call("bit_count", (cast(args[0], LONG),), INT)


def _shifted(op: str, bits: int) -> str:
    half, mask = 1 << (bits - 1), (1 << bits) - 1

    def call_(value: int, count: int) -> int:
        count &= bits - 1
        found = value << count if op == "left" else value >> count if op == "right" else (value & mask) >> count
        return ((found + half) & mask) - half

    name = "BIGINT" if bits == 64 else "INTEGER"
    return define(f"shift_{op}_{bits}", f"{name} INTEGER", LONG if bits == 64 else INT, call_)


def _shift(name: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        value = args[0] if args[0].dtype == LONG else argument("i", args[0], name)
        return call(name, (value, argument("i", args[1], name)), value.dtype)

    return build


def _shift_form(op: str) -> Form:
    udfs = {dtype: _shifted(op, bits) for dtype, bits in ((INT, 32), (LONG, 64))}
    return lambda node, a: f"{udfs[node.dtype]}({a[0]}, {a[1]})"


def _get(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) != "integer":
        raise Refused(f"getbit() of {name_of(args[0].dtype)}", "use a whole number")
    return call("getbit", (args[0], argument("i", args[1], "getbit")), pa.int8(), fallible=True)


def _get_form(node: Call, a: list[str]) -> str:
    bits = _BITS[node.args[0].dtype]
    why = raise_form(f"a bit outside 0 to {bits - 1}")
    bit = f"CAST((CAST({a[0]} AS BIGINT) >> {a[1]}) & 1 AS TINYINT)"
    nothing = f"{a[0]} IS NULL OR {a[1]} IS NULL"
    return f"(CASE WHEN {nothing} THEN NULL WHEN {a[1]} BETWEEN 0 AND {bits - 1} THEN {bit} ELSE {why} END)"


FUNCTIONS = (
    Function("&", "bitwise", _two("&"), 2, 2, {"&": "CAST({0} & {1} AS {type})"}),
    Function("|", "bitwise", _two("|"), 2, 2, {"|": "CAST({0} | {1} AS {type})"}),
    Function("^", "bitwise", _two("^"), 2, 2, {"^": "CAST(xor({0}, {1}) AS {type})"}),
    Function("~", "bitwise", _not, 1, 1, {"~": "CAST(~{0} AS {type})"}),
    Function("bit_count", "bitwise", _count, 1, 1, {"bit_count": "CAST(bit_count({0}) AS {type})"}),
    Function("shiftleft", "bitwise", _shift("shiftleft"), 2, 2, {"shiftleft": _shift_form("left")}),
    Function("shiftright", "bitwise", _shift("shiftright"), 2, 2, {"shiftright": _shift_form("right")}),
    Function(
        "shiftrightunsigned",
        "bitwise",
        _shift("shiftrightunsigned"),
        2,
        2,
        {"shiftrightunsigned": _shift_form("unsigned")},
    ),
    Function("getbit", "bitwise", _get, 2, 2, {"getbit": _get_form}),
    Function("bit_get", "bitwise", _get, 2, 2),
)
