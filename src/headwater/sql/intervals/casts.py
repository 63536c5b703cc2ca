"""CAST from and to intervals.

A number is a count of the last unit of the type: ``CAST(INTERVAL '1' DAY AS INT)`` is 1, and of ``INTERVAL '1 00' DAY
TO HOUR`` it is 24. Decimals also keep the fraction of a second. An interval of fewer units loses what is below its last
one.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from headwater.sql.interval_types import IntervalType
from headwater.sql.intervals.texts import Unreadable, interval_of_text
from headwater.sql.intervals.values import amount, as_interval, long_amount, quotient, remainder, whole
from headwater.sql.nodes import Call, Literal, Node, Refused, Wrong, call
from headwater.sql.types import LONG, STRING, family, name_of

__all__ = ["interval_cast"]

Cast = Callable[[Node, pa.DataType], Node]
_MICROSECOND = Literal(Decimal("0.000001"), pa.decimal128(6, 6))


def interval_cast(node: Node, target: pa.DataType, cast: Cast) -> Node:
    """The value in the other type, one of which is an interval's; ``cast`` is for all other types."""
    if node.dtype == pa.null():
        return Literal(None, target) if isinstance(node, Literal) else Call("cast", (node,), target, node.fallible)
    if isinstance(target, IntervalType):
        found = _to_interval(node, target, cast)
    else:
        assert isinstance(node.dtype, IntervalType)
        found = _from_interval(node, node.dtype, target, cast)
    if found is None:
        raise Refused(f"a cast of {name_of(node.dtype)} to {name_of(target)}", "cast it to bigint or string first")
    return found


def _from_interval(node: Node, source: IntervalType, target: pa.DataType, cast: Cast) -> Node | None:
    kind = family(target)
    if kind == "integer":
        return cast(quotient(long_amount(node), source.unit), target)
    if kind == "decimal" and source.last == "second":
        digits = cast(long_amount(node), pa.decimal128(20, 0))
        return cast(call("*", (digits, _MICROSECOND), pa.decimal128(27, 6)), target)
    if kind == "decimal":
        return cast(quotient(long_amount(node), source.unit), target)
    if kind == "string":
        return call("interval text", (long_amount(node), Literal(source.name, STRING)), STRING)
    return None


def _to_interval(node: Node, target: IntervalType, cast: Cast) -> Node | None:
    source, kind = node.dtype, family(node.dtype)
    if isinstance(source, IntervalType):
        if source.of_days != target.of_days:
            return None
        if target.unit <= source.unit:
            return as_interval(amount(node), target)
        number = long_amount(node)
        return as_interval(cast(whole("-", number, remainder(number, target.unit)), target.storage_type), target)
    if kind == "integer":
        number = cast(node, LONG)
        if target.unit > 1:
            number = whole("*", number, Literal(target.unit, LONG))
        return as_interval(cast(number, target.storage_type), target)
    if kind == "string":
        if isinstance(node, Literal) and isinstance(node.value, str):
            try:
                return Literal(interval_of_text(node.value, target), target)
            except Unreadable as unreadable:
                raise Wrong(str(unreadable), "write it as the type says, such as '1 02:03:04'") from None
        number = call("interval of text", (node, Literal(target.name, STRING)), LONG, fallible=True)
        return as_interval(cast(number, target.storage_type), target)
    return None
