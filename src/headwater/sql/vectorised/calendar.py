"""Dates and their parts, by numpy's calendar: the proleptic Gregorian one, as Spark's.

A date is a count of days since 1970, a wall clock one of microseconds. numpy counts months and years since 1970 from
days in one call each, and everything else follows from the three counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from headwater.sql.nodes import Call
from headwater.sql.types import DATE, INT, family
from headwater.sql.vectorised.frame import OVERFLOW, Frame, Kernel, both, count_true
from headwater.sql.vectorised.integers import outside, within
from headwater.sql.vectorised.vector import Operand, Vector, dense

__all__ = ["OPERATORS", "days_of_months", "days_of_parts", "months_of_days", "truncated_days", "years_of_days"]

_DAYS, _MONTHS, _YEARS = np.dtype("M8[D]"), np.dtype("M8[M]"), np.dtype("M8[Y]")
_MOST_DAYS = (1 << 31) - 2
_MANY = 512
_FIRST, _END = -25_567, 47_482
_FIRST_MONTH, _END_MONTH = -840, 1561
_is_rare, _is_rare_month = within(_FIRST, _END - 1), within(_FIRST_MONTH, _END_MONTH - 1)


def months_of_days(days: Any) -> Any:
    """Months since January 1970.

    >>> months_of_days(np.array([-1, 31])).tolist()
    [-1, 1]
    """
    if len(days) >= _MANY and not count_true(_is_rare(days)):
        return _month_table()[days - _FIRST].astype(np.int64)
    return days.view(_DAYS).astype(_MONTHS).view(np.int64)


def years_of_days(days: Any) -> Any:
    """Years since 1970."""
    if len(days) >= _MANY:
        return months_of_days(days) // 12
    return days.view(_DAYS).astype(_YEARS).view(np.int64)


@functools.lru_cache(maxsize=1)
def _month_table() -> Any:
    """The months of the days of the years 1900 to 2099: looking up is ten times faster than counting."""
    return np.arange(_FIRST, _END).view(_DAYS).astype(_MONTHS).view(np.int64).astype(np.int16)


def days_of_months(months: Any) -> Any:
    """The first days of months that are counted from January 1970."""
    if len(months) >= _MANY and not count_true(_is_rare_month(months)):
        return _first_days()[months - _FIRST_MONTH]
    return months.view(_MONTHS).astype(_DAYS).view(np.int64)


@functools.lru_cache(maxsize=1)
def _first_days() -> Any:
    return np.arange(_FIRST_MONTH, _END_MONTH).view(_MONTHS).astype(_DAYS).view(np.int64)


def _days_of_years(years: Any) -> Any:
    return days_of_months(years * 12)


def days_of_parts(year: Any, month: Any, day: Any) -> tuple[Any, Any]:
    """Days since 1970, and where the parts are a date at all.

    >>> days_of_parts(np.array([1970]), np.array([2]), np.array([29]))[1].tolist()
    [False]
    """
    months = (year - 1970) * 12 + month - 1
    first = days_of_months(months)
    length = days_of_months(months + 1) - first
    good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    return first + day - 1, good


def _week(days: Any) -> Any:
    thursday = days - (days + 3) % 7 + 3
    return (thursday - _days_of_years(years_of_days(thursday))) // 7 + 1


def _iso_year(days: Any) -> Any:
    return years_of_days(days - (days + 3) % 7 + 3) + 1970


def _month_end(days: Any) -> Any:
    return days_of_months(months_of_days(days) + 1) - 1


def truncated_days(unit: str) -> Callable[[Any], Any]:
    """The first day of the year, quarter, month or week of a day."""
    return {
        "year": lambda days: _days_of_years(years_of_days(days)),
        "quarter": lambda days: days_of_months(months_of_days(days) // 3 * 3),
        "month": lambda days: days_of_months(months_of_days(days)),
        "week": lambda days: days - (days + 3) % 7,
    }[unit]


_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": lambda days: years_of_days(days) + 1970,
    "month": lambda days: months_of_days(days) % 12 + 1,
    "day": lambda days: days - days_of_months(months_of_days(days)) + 1,
    "quarter": lambda days: months_of_days(days) % 12 // 3 + 1,
    "dayofyear": lambda days: days - _days_of_years(years_of_days(days)) + 1,
    "weekofyear": _week,
    "yearofweek": _iso_year,
    "dayofweek": lambda days: (days + 4) % 7 + 1,
    "weekday": lambda days: (days + 3) % 7,
    "isoweekday": lambda days: (days + 3) % 7 + 1,
    "unix_date": lambda days: days,
}


def _part(node: Call) -> Kernel | None:
    if family(node.args[0].dtype) != "date":
        return None
    body = _PARTS[node.op]
    return lambda _, a: Vector(INT, body(a.values), a.valid)


def _last(_: Call) -> Kernel:
    return lambda _, a: Vector(DATE, _month_end(a.values), a.valid)


def _moved(node: Call) -> Kernel | None:
    if family(node.args[0].dtype) != "date":
        return None
    sign = -1 if node.op == "date -" else 1

    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid = both(a.valid, b.valid)
        found = a.values - b.values if sign < 0 else a.values + b.values
        frame.check(outside(found, -_MOST_DAYS, _MOST_DAYS), valid, OVERFLOW)
        return Vector(DATE, found, valid)

    return kernel


def _difference(_: Call) -> Kernel:
    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid, found = both(a.valid, b.valid), a.values - b.values
        frame.check(outside(found, -(1 << 31), (1 << 31) - 1), valid, OVERFLOW)
        return Vector(INT, found, valid)

    return kernel


def _truncated(node: Call) -> Kernel | None:
    unit = getattr(node.args[1], "value", None)
    if not isinstance(unit, str):
        return None
    body = truncated_days(unit)
    return lambda _, a, __: Vector(DATE, body(a.values), a.valid)


def _next(_: Call) -> Kernel:
    def kernel(frame: Frame, a: Operand, b: Operand) -> Operand:
        valid, days = both(a.valid, b.valid), a.values
        found = days + (b.values - ((days + 3) % 7 + 1) + 13) % 7 + 1
        frame.check(outside(found, -_MOST_DAYS, _MOST_DAYS), valid, OVERFLOW)
        return Vector(DATE, found, valid)

    return kernel


def _from_count(_: Call) -> Kernel:
    def kernel(frame: Frame, a: Operand) -> Operand:
        frame.check(outside(a.values, -_MOST_DAYS, _MOST_DAYS), a.valid, OVERFLOW)
        return Vector(DATE, a.values, a.valid)

    return kernel


def _made(_: Call) -> Kernel:
    def kernel(frame: Frame, *parts: Operand) -> Operand:
        year, month, day = (dense(p, frame.rows) for p in parts)
        valid = both(both(year.valid, month.valid), day.valid)
        # What lies under nulls may be any number, and months are counted from years.
        found, good = days_of_parts(np.clip(year.values, -(1 << 31), 1 << 31), month.values, day.values)
        frame.check(~good | outside(found, -_MOST_DAYS, _MOST_DAYS), valid, "these parts are no date")
        return Vector(DATE, found, valid)

    return kernel


OPERATORS = {
    "make_date": _made,
    **dict.fromkeys(_PARTS, _part),
    "last_day": _last,
    "date +": _moved,
    "date -": _moved,
    "datediff": _difference,
    "trunc day": _truncated,
    "next_day": _next,
    "date_from_unix_date": _from_count,
}
