"""Bits of whole numbers: ``& | ^ ~`` and shifts."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.casts import cast
from headwater.sql.functions.function import Builder, Function
from headwater.sql.nodes import Node, Refused, call
from headwater.sql.types import INT, LONG, family, name_of, wider

__all__ = ["FUNCTIONS"]


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
    if family(args[0].dtype) != "integer":
        raise Refused(f"bit_count() of {name_of(args[0].dtype)}", "use a whole number")
    return call("bit_count", (cast(args[0], LONG),), INT)


FUNCTIONS = (
    Function("&", "bitwise", _two("&"), 2, 2, {"&": "CAST({0} & {1} AS {type})"}),
    Function("|", "bitwise", _two("|"), 2, 2, {"|": "CAST({0} | {1} AS {type})"}),
    Function("^", "bitwise", _two("^"), 2, 2, {"^": "CAST(xor({0}, {1}) AS {type})"}),
    Function("~", "bitwise", _not, 1, 1, {"~": "CAST(~{0} AS {type})"}),
    Function("bit_count", "bitwise", _count, 1, 1, {"bit_count": "CAST(bit_count({0}) AS {type})"}),
)
