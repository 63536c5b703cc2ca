"""The argument of an aggregate with a FILTER is computed for the rows that pass it, and for no others.

``sum(10 / q) FILTER (WHERE q <> 0)`` divides by no zero in Spark. Engines and circuits compute arguments for all rows
first, so one that may fail waits for the condition here.
"""

from __future__ import annotations

from headwater.sql.nodes import Literal, Node, call

__all__ = ["guarded"]


def guarded(argument: Node, where: Node | None) -> Node:
    """An argument that is null for rows that the condition does not take, if computing it could fail for them."""
    if where is None or not argument.fallible:
        return argument
    return call("case", (where, argument, Literal(None, argument.dtype)), argument.dtype)
