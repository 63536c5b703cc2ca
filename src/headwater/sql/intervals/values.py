"""Intervals in the typed tree: two operators between an interval and its whole number, and arithmetic made of those.

``amount`` is the number of microseconds or months of an interval, ``interval`` the interval of such a number. Neither
does anything: they change the type. So every operator on intervals is built of operators on whole numbers, with their
overflow, and `lowering` takes the two away.
"""

from __future__ import annotations

from headwater.sql.interval_types import DAY_TO_SECOND, YEAR_TO_MONTH, IntervalType
from headwater.sql.nodes import Call, Literal, Node, call
from headwater.sql.types import INT, LONG

__all__ = ["AMOUNT", "INTERVAL", "amount", "as_interval", "long_amount", "made", "quotient", "remainder", "whole"]

AMOUNT, INTERVAL = "amount", "interval"


def amount(node: Node) -> Node:
    """The number that an interval is: a bigint of microseconds, or an int of months.

    >>> amount(Literal(3, YEAR_TO_MONTH))
    Literal(value=3, dtype=DataType(int32))
    """
    storage = node.dtype.storage_type
    if isinstance(node, Literal):
        return Literal(node.value, storage)
    if isinstance(node, Call) and node.op == INTERVAL:
        return node.args[0]
    return call(AMOUNT, (node,), storage)


def long_amount(node: Node) -> Node:
    """The number that an interval is, as a bigint."""
    return _as(amount(node), LONG)


def _as(node: Node, dtype: object) -> Node:
    """A whole number in the other width."""
    if node.dtype == dtype:
        return node
    if isinstance(node, Literal) and (dtype == LONG or node.value is None):
        return Literal(node.value, dtype)
    return call("cast", (node,), dtype, fallible=dtype != LONG)


def as_interval(number: Node, dtype: IntervalType) -> Node:
    """The interval of a number, which has to be of its storage's type."""
    assert number.dtype == dtype.storage_type, "an interval of another whole number"
    if isinstance(number, Literal):
        return Literal(number.value, dtype)
    if isinstance(number, Call) and number.op == AMOUNT and number.args[0].dtype == dtype:
        return number.args[0]
    return call(INTERVAL, (number,), dtype)


def made(number: Node, *, of_days: bool) -> Node:
    """The interval of all units of a bigint; months have to fit an int."""
    if of_days:
        return as_interval(number, DAY_TO_SECOND)
    if isinstance(number, Literal) and isinstance(number.value, int) and abs(number.value) < 1 << 31:
        return Literal(number.value, YEAR_TO_MONTH)
    return as_interval(_as(number, INT), YEAR_TO_MONTH)


def whole(op: str, left: Node, right: Node) -> Node:
    """``+``, ``-`` or ``*`` of two whole numbers of one type; of constants at once, where the outcome fits."""
    dtype = left.dtype
    if isinstance(left, Literal) and isinstance(right, Literal):
        a, b = left.value, right.value
        if isinstance(a, int) and isinstance(b, int):
            found = a + b if op == "+" else a - b if op == "-" else a * b
            if -(1 << (dtype.bit_width - 1)) <= found < 1 << (dtype.bit_width - 1):
                return Literal(found, dtype)
    return call(op, (left, right), dtype, fallible=True)


def quotient(number: Node, size: int) -> Node:
    """How many whole ``size`` are in a bigint, cut towards zero."""
    if isinstance(number, Literal) and isinstance(number.value, int):
        found = abs(number.value) // size
        return Literal(found if number.value >= 0 else -found, LONG)
    return number if size == 1 else call("div", (number, Literal(size, LONG)), LONG, fallible=True)


def remainder(number: Node, size: int) -> Node:
    """What is left of a bigint, with its sign."""
    if isinstance(number, Literal) and isinstance(number.value, int):
        found = abs(number.value) % size
        return Literal(found if number.value >= 0 else -found, LONG)
    return call("%", (number, Literal(size, LONG)), LONG)
