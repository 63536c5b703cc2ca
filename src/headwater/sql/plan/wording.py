"""Wording: a plan or an expression as people would write it, for pictures and EXPLAIN.

An interval becomes a number of microseconds on its way into a plan. What is computed, and the names of state, go by
that number; what is shown goes by this form of the tree, in which it is a duration again. It is only printed, never
run.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.base.durations import Duration
from headwater.sql.nodes import Call, Literal, Node, Offset, Plan, WindowCall, call, rewrite
from headwater.sql.types import LONG

__all__ = ["worded", "worded_plan"]

_MICROSECONDS = {"microsecond": 1, "day": 86_400_000_000}


def worded(node: Node) -> Node:
    """An expression with durations for numbers of microseconds."""
    return rewrite(node, _change)


def worded_plan(plan: Plan) -> Plan:
    """The same of all expressions of a plan."""
    from headwater.sql.plan.rebuilding import bottom_up, with_expressions

    return bottom_up(plan, lambda one: with_expressions(one, worded))


def _change(node: Node) -> Node | None:
    if isinstance(node, Call) and node.op == "add micros":
        moment, distance = node.args
        if isinstance(distance, Literal) and isinstance(distance.value, int):
            length = Literal(Duration(abs(distance.value)), LONG)
            return call("-" if distance.value < 0 else "+", (worded(moment), length), node.dtype)
    if isinstance(node, WindowCall) and node.frame is not None:
        start, end = (_bound(b) for b in (node.frame.start, node.frame.end))
        if (start, end) != (node.frame.start, node.frame.end):
            return worded(replace(node, frame=replace(node.frame, start=start, end=end)))
    return None


def _bound(bound: int | Offset | None) -> int | Offset | None:
    if isinstance(bound, Offset) and bound.unit in _MICROSECONDS and isinstance(bound.amount, int):
        return replace(bound, amount=Duration(bound.amount * _MICROSECONDS[bound.unit]), unit="")
    return bound
