"""Constant intervals, and dates and timestamps moved by them.

Months and years move to the same day of another month, or to its last day; days and weeks are days of a date; hours and
less are for timestamps. All in UTC, where a day has 24 hours. Constants are moved while the text is read, so that ``day
< date'1995-01-01' + INTERVAL '1' YEAR`` compares a column with a constant and can skip files.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from headwater.sql.interval_types import DAY_UNITS, MONTH_UNITS, IntervalType, wider_interval
from headwater.sql.intervals.texts import Unreadable, interval_of_text
from headwater.sql.nodes import Literal, Node, Refused, Wrong, call
from headwater.sql.types import INT, LONG, family, name_of

__all__ = ["Interval", "add_interval", "constant_interval", "interval_literal", "interval_text"]

_MONTHS = {"YEAR": 12, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_MICROS = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_SMALL = {"MILLISECOND": 1_000, "MICROSECOND": 1}
_PART = r"([+-]?)\s*([0-9]+)(?:\.([0-9]{1,9}))?\s+([a-z]+)"
_WORDS = re.compile(rf"\s*(?:interval\s+)?{_PART}(?:\s+{_PART})*\s*", re.IGNORECASE)

_AMOUNT = re.compile(r"\s*([+-]?)\s*([0-9]+)(?:\.([0-9]{1,9}))?\s*", re.ASCII)
# The unit that a type has for it, and its length in microseconds or months.
_SIZES = {
    **{name: (name, size) for name, size in (*MONTH_UNITS.items(), *DAY_UNITS.items())},
    "week": ("day", 7 * DAY_UNITS["day"]),
    "millisecond": ("second", 1_000),
    "microsecond": ("second", 1),
}


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
    for sign, whole, fraction, unit in _parts(text):
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


def constant_interval(value: int, dtype: IntervalType) -> Interval:
    """The constant of a type as months, days or microseconds.

    >>> from headwater.sql.interval_types import DAY_TO_SECOND
    >>> constant_interval(-86_400_000_000, DAY_TO_SECOND)
    Interval(months=0, days=-1, micros=0)
    """
    if not dtype.of_days:
        return Interval(months=value)
    days, rest = divmod(value, DAY_UNITS["day"])
    return Interval(micros=value) if rest or dtype.first != "day" else Interval(days=days)


def interval_literal(text: str, first: str | None, last: str | None = None) -> Literal:
    """``INTERVAL '3' DAY``, ``INTERVAL '1 02' DAY TO HOUR``, or without units ``INTERVAL '1 day 2 hours'``.

    >>> interval_literal("3", "WEEKS").value, interval_literal("1 day 2 hours", None).dtype.name
    (1814400000000, 'interval day to hour')
    """
    if first is None:
        if _WORDS.fullmatch(text) is None:
            raise Refused(f"the interval '{text}'", "write INTERVAL '3' DAY, or INTERVAL '1 day 2 hours'")
        parts = [_one(f"{p[0]}{p[1]}{'.' + p[2] if p[2] else ''}", p[3]) for p in _parts(text)]
    elif last is None:
        parts = [_one(text, first)]
    else:
        try:
            dtype = IntervalType(first.lower(), last.lower())
            return Literal(interval_of_text(text, dtype), dtype)
        except (Unreadable, KeyError, ValueError):
            shown = f"INTERVAL '{text}' {first.upper()} TO {last.upper()}"
            raise Wrong(f"{shown} has no meaning", "write INTERVAL '1 02:03:04' DAY TO SECOND") from None
    value, dtype = parts[0]
    for more, kind in parts[1:]:
        meet = wider_interval(dtype, kind)
        if meet is None:
            raise Refused(f"the interval '{text}'", "do not mix months with days or less")
        value, dtype = value + more, meet
    bits = dtype.storage_type.bit_width - 1
    if not -(1 << bits) <= value < 1 << bits:
        raise Refused(f"an interval of {text} {(first or '').lower()}".rstrip(), "use a smaller one")
    return Literal(value, dtype)


def _parts(text: str) -> list[tuple[str, str, str, str]]:
    return re.findall(_PART, text, re.IGNORECASE)


def _one(text: str, unit: str) -> tuple[int, IntervalType]:
    found, size = _SIZES.get(unit.lower().removesuffix("s"), (None, 0))
    if found is None:
        raise Refused(f"an interval in {unit.lower()}", "use YEAR, MONTH, WEEK, DAY, HOUR, MINUTE or SECOND")
    match = _AMOUNT.fullmatch(text)
    if match is None or (match[3] and unit.lower().removesuffix("s") != "second"):
        raise Refused("this interval", "write INTERVAL '3' MONTH, of one unit and a whole number")
    value = int(match[2]) * size + (int(match[3].ljust(6, "0")[:6]) if match[3] else 0)
    return -value if match[1] == "-" else value, IntervalType(found, found)


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
