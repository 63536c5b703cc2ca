"""``+ - * /`` with intervals: moments and their differences, sums of intervals, and intervals times or through numbers.

As Spark has it: a difference of dates is an interval of days, any other difference goes from days to seconds, and days
are those of UTC. A date moved by days stays a date, and by hours becomes a timestamp. A product or a quotient has all
units, and is rounded half away from zero to whole microseconds or months.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headwater.sql.interval_types import DAY, DAY_TO_SECOND, DAY_UNITS, IntervalType, is_interval, wider_interval
from headwater.sql.intervals.constants import add_interval, constant_interval
from headwater.sql.intervals.values import amount, as_interval, long_amount, made, quotient, whole
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import DATE, DOUBLE, INT, LONG, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, family, name_of

__all__ = ["interval_absolute", "interval_arithmetic", "interval_minus", "moved"]

Cast = Callable[[Node, pa.DataType], Node]
_MOMENTS = {"date", "timestamp", "timestamp_ntz"}


def interval_arithmetic(op: str, left: Node, right: Node, cast: Cast) -> Node | None:
    """The node of an operator in which an interval or two moments take part; None where none does."""
    moments = [family(n.dtype) in _MOMENTS for n in (left, right)]
    intervals = [is_interval(n.dtype) for n in (left, right)]
    if op == "-" and moments[0] and (moments[1] or right.dtype == STRING):
        return _difference(left, right, cast)
    if not any(intervals):
        return None
    if op == "+" and any(moments):
        return moved(right, left, cast) if intervals[0] else moved(left, right, cast)
    if op == "-" and moments[0]:
        return moved(left, right, cast, back=True)
    if op in "+-" and (all(intervals) or NULL in (left.dtype, right.dtype)):
        return _sum(op, left, right, cast)
    if op == "*" and not all(intervals):
        return _product(left, right, cast) if intervals[0] else _product(right, left, cast)
    if op == "/" and not intervals[1]:
        return _quotient(left, right, cast)
    raise Refused(f"`{op}` of {name_of(left.dtype)} and {name_of(right.dtype)}", "cast the interval to a number first")


def _difference(end: Node, start: Node, cast: Cast) -> Node:
    if start.dtype == STRING:
        start = cast(start, end.dtype)
    if end.dtype == start.dtype == DATE:
        days = cast(call("datediff", (end, start), INT, fallible=True), LONG)
        return as_interval(whole("*", days, Literal(DAY_UNITS["day"], LONG)), DAY)
    # In UTC, moments with a zone and without one are the same microseconds.
    walls = [cast(n if n.dtype != DATE else cast(n, TIMESTAMP), TIMESTAMP_NTZ) for n in (start, end)]
    micros = call("timestampdiff", (*walls, Literal(1, LONG)), LONG, fallible=True)
    return as_interval(micros, DAY_TO_SECOND)


def moved(moment: Node, interval: Node, cast: Cast, *, back: bool = False) -> Node:
    """A date or timestamp that is later, or earlier, by an interval."""
    dtype = interval.dtype
    assert isinstance(dtype, IntervalType)
    if moment.dtype == DATE and dtype.of_days and dtype != DAY:
        moment = cast(moment, TIMESTAMP)
    if isinstance(interval, Literal) and isinstance(interval.value, int):
        length = constant_interval(interval.value, dtype)
        return add_interval(moment, -length if back else length)
    number: Node = amount(interval)
    if moment.dtype == DATE and dtype == DAY:
        number = cast(quotient(number, DAY_UNITS["day"]), INT)
    if back:
        number = call("minus", (number,), number.dtype, fallible=True)
    op = "add micros" if number.dtype == LONG else "date +" if dtype == DAY else "add months"
    return call(op, (moment, number), moment.dtype, fallible=True)


def _sum(op: str, left: Node, right: Node, cast: Cast) -> Node:
    kinds = [n.dtype for n in (left, right) if isinstance(n.dtype, IntervalType)]
    meet = wider_interval(kinds[0], kinds[-1])
    if meet is None:
        raise Refused(f"`{op}` of {name_of(left.dtype)} and {name_of(right.dtype)}", "months have no length in days")
    return as_interval(whole(op, amount(cast(left, meet)), amount(cast(right, meet))), meet)


def _factor(node: Node, cast: Cast) -> Node:
    if node.dtype == NULL:
        return cast(node, INT)
    if node.dtype == STRING or family(node.dtype) == "float":
        return cast(node, DOUBLE)
    if family(node.dtype) not in ("integer", "decimal"):
        raise Refused(f"an interval with {name_of(node.dtype)}", "multiply and divide intervals by numbers")
    return node


def _product(interval: Node, other: Node, cast: Cast) -> Node:
    number, by = long_amount(interval), _factor(other, cast)
    if family(by.dtype) == "integer":
        found = whole("*", number, cast(by, LONG))
    elif by.dtype == DOUBLE:
        found = call("half up", (call("*", (cast(number, DOUBLE), by), DOUBLE),), LONG, fallible=True)
    else:
        found = call("interval * decimal", (number, cast(by, STRING)), LONG, fallible=True)
    return made(found, of_days=_of_days(interval))


def _quotient(interval: Node, other: Node, cast: Cast) -> Node:
    number, by = long_amount(interval), _factor(other, cast)
    if family(by.dtype) == "integer":
        found = call("half up /", (number, cast(by, LONG)), LONG, fallible=True)
    elif by.dtype == DOUBLE:
        found = call("half up", (call("/", (cast(number, DOUBLE), by), DOUBLE, fallible=True),), LONG, fallible=True)
    else:
        found = call("interval / decimal", (number, cast(by, STRING)), LONG, fallible=True)
    return made(found, of_days=_of_days(interval))


def _of_days(node: Node) -> bool:
    assert isinstance(node.dtype, IntervalType)
    return node.dtype.of_days


def interval_minus(node: Node) -> Node:
    """The interval the other way round."""
    assert isinstance(node.dtype, IntervalType)
    number = amount(node)
    least = -(1 << (number.dtype.bit_width - 1))
    if isinstance(node, Literal) and isinstance(node.value, int) and node.value != least:
        return Literal(-node.value, node.dtype)
    return as_interval(call("minus", (number,), number.dtype, fallible=True), node.dtype)


def interval_absolute(node: Node) -> Node:
    """abs() of an interval."""
    assert isinstance(node.dtype, IntervalType)
    number = amount(node)
    return as_interval(call("abs", (number,), number.dtype, fallible=True), node.dtype)
