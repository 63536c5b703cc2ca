"""EXTRACT from intervals: each unit that the type has, cut towards zero and with the sign of the whole."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from headwater.sql.interval_types import DAY_UNITS, IntervalType
from headwater.sql.intervals.values import long_amount, quotient, remainder
from headwater.sql.nodes import Literal, Node, Wrong, call
from headwater.sql.types import INT

__all__ = ["interval_part"]

# What a part is counted within: hours of a day, months of a year.
_WITHIN = {"hour": DAY_UNITS["day"], "minute": DAY_UNITS["hour"], "second": DAY_UNITS["minute"], "month": 12}
_SIZES = {**DAY_UNITS, "year": 12, "month": 1}
_DIGITS, _MICROSECOND = pa.decimal128(8, 0), Literal(Decimal("0.000001"), pa.decimal128(6, 6))


def interval_part(name: str, node: Node) -> Node:
    """One unit of an interval: years and days are ints, seconds decimals, the others tinyints."""
    dtype = node.dtype
    assert isinstance(dtype, IntervalType)
    if name not in dtype.units:
        raise Wrong(f"{dtype.name} has no {name}", f"it has {', '.join(dtype.units)}")
    number = long_amount(node)
    if name in _WITHIN:
        number = remainder(number, _WITHIN[name])
    if name == "second":
        digits = call("cast", (number,), _DIGITS, fallible=True)
        return call(
            "cast", (call("*", (digits, _MICROSECOND), pa.decimal128(15, 6)),), pa.decimal128(8, 6), fallible=True
        )
    return call("cast", (quotient(number, _SIZES[name]),), INT if name in ("year", "day") else pa.int8(), fallible=True)
