"""time_bucket(): the beginning of the stretch of time in which a timestamp lies, counted from an origin.

Lengths of days and less are counted in microseconds. Lengths of months go by the calendar: a bucket begins as many
months after the origin, on the last day of a month that is too short.
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Function
from headwater.sql.functions.typing import argument
from headwater.sql.interval_types import IntervalType
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock, in UTC
_MICRO = timedelta(microseconds=1)


def _by_months(moment: int, origin: int, months: int) -> int:
    try:
        at, start = (_EPOCH + timedelta(microseconds=m) for m in (moment, origin))
        apart = (at.year - start.year) * 12 + at.month - start.month
        number = apart // months * months
        if _later(start, number) > at:
            number -= months
        return (_later(start, number) - _EPOCH) // _MICRO
    except (OverflowError, ValueError):
        raise Failed("a timestamp outside the years 1 to 9999 is not known here") from None


def _later(start: datetime, months: int) -> datetime:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return start.replace(year=year, month=month + 1, day=min(start.day, calendar.monthrange(year, month + 1)[1]))


_MONTHS = define("time_bucket_months", "BIGINT BIGINT INTEGER", pa.int64(), _by_months)
_MICROS = "({1} + ({0} - {1} - (({0} - {1}) % {2} + {2}) % {2}))".replace("{0}", "epoch_us({0})").replace(
    "{1}", "epoch_us({1})"
)


def _bucket(args: Sequence[Node]) -> Node:
    length, moment = args[0], args[1]
    kind = length.dtype
    if not isinstance(kind, IntervalType) or not isinstance(length, Literal) or not isinstance(length.value, int):
        raise Refused(f"time_bucket() by {name_of(kind)}", "write a constant such as INTERVAL '15' MINUTE")
    if length.value <= 0:
        raise Refused("time_bucket() by a length that is not positive", "write INTERVAL '15' MINUTE")
    if moment.dtype not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise Refused(f"time_bucket() of {name_of(moment.dtype)}", "pass a timestamp")
    dtype = TIMESTAMP_NTZ if moment.dtype == TIMESTAMP_NTZ else TIMESTAMP
    origin = args[2] if len(args) == 3 else Literal("1970-01-01 00:00:00", STRING)
    walls = tuple(cast(cast(argument("z", a, "time_bucket"), dtype), TIMESTAMP_NTZ) for a in (moment, origin))
    op = "time bucket" if kind.of_days else "time bucket of months"
    size = Literal(length.value, LONG if kind.of_days else pa.int32())
    return cast(call(op, (*walls, size), TIMESTAMP_NTZ, fallible=True), dtype)


FUNCTIONS = (
    Function(
        "time_bucket",
        "datetime",
        _bucket,
        2,
        3,
        {
            "time bucket": f"make_timestamp({_MICROS})",
            "time bucket of months": f"make_timestamp({_MONTHS}(epoch_us({{0}}), epoch_us({{1}}), {{2}}))",
        },
        note="of timestamps, by a constant length",
        spark=("TimeBucket",),
    ),
)
