"""Spans: lengths of time as users write them, in the units of a column."""

from __future__ import annotations

import re
from datetime import timedelta
from numbers import Integral
from typing import Any, overload

import pyarrow as pa

from headwater.base.errors import InputError

__all__ = ["distance", "interval", "span"]

_UNITS = {
    "us": 1,
    "microsecond": 1,
    "ms": 1_000,
    "millisecond": 1_000,
    "s": 1_000_000,
    "second": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "minute": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_DAY = _UNITS["day"]


def span(length: str | int | timedelta, field: pa.Field) -> int:
    """A length in the units of a column: microseconds of a timestamp, days of a date, else the number itself.

    >>> span("1 minute 30 seconds", pa.field("ts", pa.timestamp("us"))), span("2 days", pa.field("d", pa.date32()))
    (90000000, 2)
    """
    length = _checked(length)
    is_date, is_time = pa.types.is_date(field.type), pa.types.is_timestamp(field.type)
    if not is_date and not is_time:
        if pa.types.is_integer(field.type) and isinstance(length, int):
            return length
        raise InputError.bad_argument(field.name, f"{field.type} with {length!r}", "a time column, or a whole number")
    if isinstance(length, int):
        return length
    micros = length // timedelta(microseconds=1) if isinstance(length, timedelta) else _micros(length)
    if is_time:
        return micros
    if micros % _DAY:
        raise InputError.bad_argument(field.name, length, "whole days, for a date")
    return micros // _DAY


def _checked(length: Any) -> str | int | timedelta:
    if not isinstance(length, bool):
        if isinstance(length, Integral):  # numpy's as well
            return int(length)
        if isinstance(length, str | timedelta):
            return length
    raise InputError.bad_argument("length of time", length, "like `10 minutes`, a timedelta or a whole number")


def interval(text: str) -> timedelta:
    """A length of time as it is written.

    >>> interval("-10 minutes")
    datetime.timedelta(days=-1, seconds=85800)
    """
    return timedelta(microseconds=_micros(text))


@overload
def distance(length: str | int | timedelta) -> int | timedelta: ...
@overload
def distance(length: str | int | timedelta | None) -> int | timedelta | None: ...
def distance(length: str | int | timedelta | None) -> int | timedelta | None:
    """A length as operators take it: a number or a timedelta.

    >>> distance("2 s"), distance(5)
    (datetime.timedelta(seconds=2), 5)
    """
    return interval(length) if isinstance(length, str) else length


def _micros(text: str) -> int:
    total = 0
    rest = text.strip().lower()
    if not rest:
        raise InputError.bad_argument("length of time", text, "like `10 minutes` or `1 hour 30 s`")
    while rest:
        found = re.match(r"(-?\d+)\s*([a-z]+)\s*,?\s*", rest)
        unit = None if found is None else _UNITS.get(found[2], _UNITS.get(found[2].removesuffix("s")))
        if found is None or unit is None:
            raise InputError.bad_argument("length of time", text, "like `10 minutes` or `1 hour 30 s`")
        total += int(found[1]) * unit
        rest = rest[found.end() :]
    return total
