"""Choices: if, coalesce and their kin, greatest and least."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.binding import shared
from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import MANY, Builder, Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.operators import cases, compare, is_null, negate, united
from headwater.sql.types import NULL, STRING, family, name_of

__all__ = ["FUNCTIONS", "chosen", "extreme_form"]


def _coalesce(args: Sequence[Node]) -> Node:
    same = united(args, "coalesce")
    return call("coalesce", same, same[0].dtype)


def _nullif(args: Sequence[Node]) -> Node:
    left, right = args
    return shared(left, lambda v: cases([(compare("=", v, right), Literal(None, NULL))], v))


def _if(args: Sequence[Node]) -> Node:
    return cases([(args[0], args[1])], args[2])


def _assert_true(args: Sequence[Node]) -> Node:
    if len(args) == 2:
        raise Refused("assert_true() with a message", "leave the message out")
    given = argument("b", args[0], "assert_true")
    return call("assert true", (given,), NULL, fallible=True)


def _equal_null(args: Sequence[Node]) -> Node:
    return compare("<=>", args[0], args[1])


def chosen(args: Sequence[Node]) -> Node:
    """decode() with pairs: the result beside the first value that is the same, a null being the same as a null."""
    value, *rest = args
    default = rest.pop() if len(rest) % 2 else None

    def choice(v: Node) -> Node:
        pairs = zip(rest[::2], rest[1::2], strict=True)
        found = cases([(compare("<=>", v, key), result) for key, result in pairs], default)
        return cast(found, STRING) if found.dtype == NULL else found

    return shared(value, choice)


def _elt(args: Sequence[Node]) -> Node:
    number, values = argument("i", args[0], "elt"), args[1:]
    if not all(family(v.dtype) == "binary" for v in values):
        values = [argument("s", v, "elt") for v in values]
    return call("elt", (number, *values), values[0].dtype, fallible=True)


def _elt_form(node: Call, a: list[str]) -> str:
    steps = " ".join(f"WHEN {{0}} = {at} THEN {{{at}}}" for at in range(1, len(a)))
    beyond = raise_form(f"elt() counts from 1 to {len(a) - 1}")
    none = f"CAST(NULL AS {duckdb_type(node.dtype)})"
    return f"(CASE WHEN {{0}} IS NULL THEN {none} {steps} ELSE {beyond} END)".format(*a)


def _nvl2(args: Sequence[Node]) -> Node:
    return cases([(negate(is_null(args[0])), args[1])], args[2])


def _extreme(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        for arg in args:
            if family(arg.dtype) == "nested":
                raise Refused(f"{op}() of {name_of(arg.dtype)}", "compare its fields one by one")
        same = united(args, f"{op}()", promote_text=False)
        return call(op, same, same[0].dtype)

    return build


def extreme_form(name: str, dtype: pa.DataType, args: Sequence[str]) -> str:
    """greatest() or least() in DuckDB: of FLOATs, unlike DOUBLEs, they would lose the sign of -0.0."""
    if dtype != pa.float32():
        return f"{name}({', '.join(args)})"
    return f"CAST({name}({', '.join(f'CAST({x} AS DOUBLE)' for x in args)}) AS FLOAT)"


def _greatest_form(node: Call, args: list[str]) -> str:
    return extreme_form(node.op, node.dtype, args)


_COALESCE = {"coalesce": lambda _, a: f"coalesce({', '.join(a)})"}
_ASSERTED = f"(CASE WHEN {{0}} THEN NULL ELSE {raise_form('assert_true(): a condition does not hold')} END)"
FUNCTIONS = (
    Function("coalesce", "conditional", _coalesce, 1, MANY, _COALESCE),
    Function("nvl", "conditional", _coalesce, 2, 2),
    Function("ifnull", "conditional", _coalesce, 2, 2),
    Function("nvl2", "conditional", _nvl2, 3, 3),
    Function("nullif", "conditional", _nullif, 2, 2),
    Function("if", "conditional", _if, 3, 3),
    Function("assert_true", "conditional", _assert_true, 1, 2, {"assert true": _ASSERTED}),
    Function("equal_null", "conditional", _equal_null, 2, 2),
    Function("elt", "conditional", _elt, 2, MANY, {"elt": _elt_form}, spark=("Elt",)),
    Function("isnull", "conditional", lambda args: is_null(args[0]), 1, 1),
    Function("isnotnull", "conditional", lambda args: negate(is_null(args[0])), 1, 1),
    Function("greatest", "conditional", _extreme("greatest"), 2, MANY, {"greatest": _greatest_form}),
    Function("least", "conditional", _extreme("least"), 2, MANY, {"least": _greatest_form}),
)
