"""Dates and timestamps moved by an interval of one unit.

Months and years move to the same day of another month, or to its last day; days and weeks are days of a date; hours and less are for
timestamps. All in UTC, where a day has 24 hours. Constants are moved while the text is read, so that
``day < date'1995-01-01' + INTERVAL '1' YEAR`` compares a column with a constant and can skip files.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import INT, LONG, family, name_of

__all__ = ["Interval", "add_interval", "interval_text"]

_MONTHS = {"YEAR": 12, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_MICROS = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_SMALL = {"MILLISECOND": 1_000, "MICROSECOND": 1}
_PART = r"([+-]?)\s*([0-9]+)(?:\.([0-9]{1,9}))?\s+([a-z]+)"
_WORDS = re.compile(rf"\s*(?:interval\s+)?{_PART}(?:\s+{_PART})*\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Interval:
    """Months, or days, or microseconds: never two of them."""

    months: int = 0
    days: int = 0
    micros: int = 0

    @classmethod
    def of(cls, amount: int, unit: str) -> Interval:
        """``amount`` of a unit as Spark names it, in the singular or plural.

        >>> Interval.of(3, "months")
        Interval(months=3, days=0, micros=0)
        """
        name = unit.upper().removesuffix("S")
        if abs(amount) > 100_000_000:
            raise Refused(f"an interval of {amount} {unit.lower()}", "use a smaller one")
        if name in _MONTHS:
            return cls(months=amount * _MONTHS[name])
        if name in _DAYS:
            return cls(days=amount * _DAYS[name])
        if name in _MICROS:
            return cls(micros=amount * _MICROS[name])
        raise Refused(f"an interval in {unit.lower()}", "use YEAR, MONTH, WEEK, DAY, HOUR, MINUTE or SECOND")

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.micros)


def interval_text(text: str) -> Interval:
    """An interval as a text: '10 minutes', '1 hour 30 minutes', '1.5 seconds'; of months, or of days and less.

    >>> interval_text("interval 1 hour 30 minutes").micros, interval_text("2 weeks")
    (5400000000, Interval(months=0, days=14, micros=0))
    """
    if _WORDS.fullmatch(text) is None:
        raise Refused(f"the interval '{text}'", "write '10 minutes', or '1 hour 30 minutes'")
    months = days = micros = 0
    for sign, whole, fraction, unit in re.findall(_PART, text, re.IGNORECASE):
        name = unit.upper().removesuffix("S")
        factor = -1 if sign == "-" else 1
        if fraction and name != "SECOND":
            raise Refused(f"the interval '{text}'", "only seconds have a fraction")
        if name in _SMALL:
            micros += factor * int(whole) * _SMALL[name]
            continue
        part = Interval.of(factor * int(whole), unit)
        months, days, micros = months + part.months, days + part.days, micros + part.micros
        micros += factor * int(fraction.ljust(6, "0")[:6]) if fraction else 0
    if months and (days or micros):
        raise Refused(f"the interval '{text}'", "do not mix months with days or less")
    return Interval(micros=days * 86_400_000_000 + micros) if micros else Interval(months, days)


def add_interval(node: Node, interval: Interval) -> Node:
    """The moment or day, moved.

    >>> from headwater.sql.types import DATE
    >>> add_interval(Literal(date(2024, 1, 31), DATE), Interval(months=1)).value
    datetime.date(2024, 2, 29)
    """
    kind = family(node.dtype)
    if kind not in ("date", "timestamp", "timestamp_ntz"):
        raise Refused(f"{name_of(node.dtype)} with an interval", "cast it to a date or a timestamp first")
    if kind == "date" and interval.micros:
        raise Refused("a date with an interval of hours or less", "cast the date to a timestamp first")
    if isinstance(node, Literal) and isinstance(node.value, date):
        try:
            return Literal(_moved(node.value, interval), node.dtype)
        except (OverflowError, ValueError):
            raise Refused("a date outside the years 1 to 9999", "use an interval that stays within") from None
    if kind == "date" and interval.days:
        return call("date +", (node, Literal(interval.days, INT)), node.dtype, fallible=True)
    if interval.months:
        return call("add months", (node, Literal(interval.months, INT)), node.dtype, fallible=True)
    micros = interval.days * 86_400_000_000 + interval.micros
    return call("add micros", (node, Literal(micros, LONG)), node.dtype, fallible=True)


def _moved(value: date, interval: Interval) -> date:
    if interval.months:
        whole = value.year * 12 + value.month - 1 + interval.months
        year, month = divmod(whole, 12)
        return value.replace(year=year, month=month + 1, day=min(value.day, calendar.monthrange(year, month + 1)[1]))
    if isinstance(value, datetime):
        return value + timedelta(days=interval.days, microseconds=interval.micros)
    return value + timedelta(days=interval.days)
