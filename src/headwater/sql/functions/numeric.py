"""Numbers: rounding, roots, logarithms and signs."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.function import Function
from headwater.sql.nodes import Node, Refused, call
from headwater.sql.operators import arithmetic
from headwater.sql.types import BOOLEAN, family, name_of

__all__ = ["FUNCTIONS"]


def _abs(args: Sequence[Node]) -> Node:
    kind = family(args[0].dtype)
    if kind not in ("integer", "float", "decimal"):
        raise Refused(f"abs() of {name_of(args[0].dtype)}", "pass a number")
    return call("abs", (args[0],), args[0].dtype, fallible=kind == "integer")


def _isnan(args: Sequence[Node]) -> Node:
    if family(args[0].dtype) != "float":
        raise Refused(f"isnan() of {name_of(args[0].dtype)}", "pass a float or a double")
    return call("isnan", (args[0],), BOOLEAN)


FUNCTIONS = (
    Function("abs", "numeric", _abs, 1, 1, {"abs": "abs({})"}),
    Function("isnan", "numeric", _isnan, 1, 1, {"isnan": "coalesce(isnan({}), FALSE)"}),
    Function("mod", "numeric", lambda args: arithmetic("%", args[0], args[1]), 2, 2),
)
