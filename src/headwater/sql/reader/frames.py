"""How far does a RANGE frame reach? Its bounds in the type of the one key that it is ordered by.

Along whole numbers a bound is a whole number; along decimals and doubles any number that their type holds as it is
written; along dates a number of days, or an interval of days or months; along timestamps an interval. Both bounds have
one unit, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from headwater.sql.casts import cast
from headwater.sql.intervals.constants import Interval
from headwater.sql.nodes import Frame, Literal, Node, Offset, Ordering, Refused
from headwater.sql.types import DATE, INT, family

__all__ = ["checked_frame", "offset"]

_HINT = "order by one number, date or timestamp, or use ROWS"


def _distance(value: Node | Interval, key: Node) -> Offset | int:
    kind, dtype = family(key.dtype), key.dtype
    if isinstance(value, Interval):
        if kind not in ("date", "timestamp", "timestamp_ntz") or (kind == "date" and value.micros):
            raise Refused("RANGE with this interval over this order", _HINT)
        found = [(value.months, "month"), (value.days, "day"), (value.micros, "microsecond")]
        amount, unit = next(((n, u) for n, u in found if n), (0, ""))
        return Offset(amount, unit, dtype) if amount else 0
    number = value.value if isinstance(value, Literal) else None
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        raise Refused("a frame whose bound is no constant number", "write 3 PRECEDING")
    if number == 0:
        return 0
    if kind == "integer" and isinstance(number, int):
        return number
    if kind == "date" and value.dtype == INT:
        assert isinstance(number, int)
        return Offset(number, "day", DATE)
    if kind in ("float", "decimal"):
        same = cast(value, dtype)
        if isinstance(same, Literal) and isinstance(same.value, float | Decimal) and same.value != 0:
            return Offset(same.value, "", dtype)
    raise Refused("RANGE with this offset over this order", _HINT)


def offset(value: Node | Interval, order: Sequence[Ordering], unit: str, *, before: bool) -> Offset | int:
    """The bound that is ``value`` away from the current row."""
    if unit == "rows":
        number = value.value if isinstance(value, Literal) else None
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise Refused("a frame whose bound is no whole number", "write 3 PRECEDING")
        return -number if before else number
    if len(order) != 1:
        raise Refused("RANGE with an offset over this order", _HINT)
    found = _distance(value, order[0].node)
    if not _number(found) >= 0:
        raise Refused("a frame whose bound is negative", "write 3 PRECEDING or 3 FOLLOWING")
    if not before:
        return found
    return Offset(-_number(found), found.unit, found.dtype) if isinstance(found, Offset) else -found


def checked_frame(frame: Frame, *written: object) -> bool:
    """Does the frame begin before it ends? Intervals ``written`` in two units are refused."""
    names = [str(w.args["unit"].name).upper().removesuffix("S") for w in written if isinstance(w, exp.Interval)]
    units = {b.unit for b in (frame.start, frame.end) if isinstance(b, Offset)}
    if len(units) > 1 or len({"DAY" if n == "WEEK" else n for n in names}) > 1:
        raise Refused("a frame with bounds of two units", "write both in days, in months or in seconds")
    if frame.start is None or frame.end is None:
        return True
    return bool(_number(frame.start) <= _number(frame.end))


def _number(bound: Offset | int) -> int | float | Decimal:
    return bound.amount if isinstance(bound, Offset) else bound
