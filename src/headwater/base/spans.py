"""Lengths of time as users write them: the one place where they are read.

A length is a whole number and a unit, or several of them: ``30 sec``, ``5 min``, ``1h30m``, ``2 days``,
``-10 minutes``. Case and blanks do not matter, units may be in the plural, and numbers may have decimals (``1.5 h``) as
long as whole microseconds come of them. Months, quarters and years have no fixed length: they are read as a number of
months (`Months`), and only what lays steps along a calendar takes them. A single ``M`` is a month to some libraries
and a minute to others, so it is refused.

Every error names the argument that it came by.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from numbers import Integral
from typing import Any, overload

import pyarrow as pa

from headwater.base.errors import InputError

__all__ = ["EXAMPLES", "Months", "distance", "interval", "length_of", "span"]

EXAMPLES = "`30 sec`, `5 min`, `1h30m`, `2 days` or `1 week`"
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_FIXED = {
    **dict.fromkeys(("us", "µs", "μs", "usec", "micro", "microsecond"), 1),
    **dict.fromkeys(("ms", "msec", "milli", "millisecond"), 1_000),
    **dict.fromkeys(("s", "sec", "second"), _SECOND),
    **dict.fromkeys(("m", "min", "minute"), 60 * _SECOND),
    **dict.fromkeys(("h", "hr", "hour"), 3_600 * _SECOND),
    **dict.fromkeys(("d", "day"), _DAY),
    **dict.fromkeys(("w", "wk", "week"), 7 * _DAY),
}
_CALENDAR = {
    **dict.fromkeys(("mo", "mon", "month"), 1),
    **dict.fromkeys(("q", "qtr", "quarter"), 3),
    **dict.fromkeys(("y", "yr", "year"), 12),
}
_PART = re.compile(r"(-?\d+(?:\.\d+)?)\s*([^\W\d_]+)\s*,?\s*")


@dataclass(frozen=True, slots=True)
class Months:
    """A length of the calendar: so many months, of 28 to 31 days each."""

    count: int


def length_of(length: str, argument: str = "length of time") -> timedelta | Months:
    """A length as it is written, fixed or of the calendar; errors name the argument.

    >>> length_of("1h30m"), length_of("1 year")
    (datetime.timedelta(seconds=5400), Months(count=12))
    >>> length_of("5 parsecs", "tolerance")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1001]: `tolerance` is '5 parsecs'
      hint: expected a length of time like `30 sec`, ...; `parsecs` is not a unit of time
    """
    micros, months = Fraction(0), Fraction(0)
    fixed = calendar = False
    rest = length.strip()
    if not rest:
        raise _refused(argument, length)
    while rest:
        found = _PART.match(rest)
        if found is None:
            raise _refused(argument, length)
        number, unit = Fraction(found[1]), found[2]
        if unit == "M":
            raise _refused(argument, length, "a single `M` may be a minute or a month: write `min` or `month`")
        if (size := _unit(unit, _FIXED)) is not None:
            micros, fixed = micros + number * size, True
        elif (size := _unit(unit, _CALENDAR)) is not None:
            months, calendar = months + number * size, True
        else:
            raise _refused(argument, length, f"`{unit}` is not a unit of time")
        rest = rest[found.end() :]
    if fixed and calendar:
        raise _refused(argument, length, "months have no fixed length and cannot be added to days and hours")
    total = months if calendar else micros
    if total.denominator != 1:
        raise _refused(argument, length, f"it is not a whole number of {'months' if calendar else 'microseconds'}")
    if calendar:
        return Months(int(total))
    try:
        return timedelta(microseconds=int(total))
    except OverflowError:
        raise _refused(argument, length, "it is longer than time is measured") from None


def _unit(text: str, units: dict[str, int]) -> int | None:
    text = text.lower()
    return units.get(text, units.get(text.removesuffix("s")))


def _refused(argument: str, length: Any, why: str = "") -> InputError:
    expected = f"a length of time like {EXAMPLES}"
    return InputError.bad_argument(argument, length, f"{expected}; {why}" if why else expected)


def span(length: str | int | timedelta, field: pa.Field, argument: str = "length of time") -> int:
    """A fixed length in the units of a column: microseconds of a timestamp, days of a date, else the number itself.

    >>> span("1 minute 30 seconds", pa.field("ts", pa.timestamp("us"))), span("2 days", pa.field("d", pa.date32()))
    (90000000, 2)
    """
    given = _checked(length, argument)
    is_date, is_time = pa.types.is_date(field.type), pa.types.is_timestamp(field.type)
    if not is_date and not is_time:
        if pa.types.is_integer(field.type) and isinstance(given, int):
            return given
        if pa.types.is_integer(field.type):
            raise InputError.bad_argument(argument, length, f"a whole number, as the times in `{field.name}` are")
        raise InputError.bad_argument(field.name, f"{field.type} with {length!r}", "a time column, or a whole number")
    if isinstance(given, int):
        return given
    fixed = interval(given, argument) if isinstance(given, str) else given
    micros = fixed // timedelta(microseconds=1)
    if is_time:
        return micros
    if micros % _DAY:
        raise InputError.bad_argument(argument, length, f"whole days, as `{field.name}` is a date")
    return micros // _DAY


def _checked(length: Any, argument: str) -> str | int | timedelta:
    if not isinstance(length, bool):
        if isinstance(length, Integral):  # numpy's as well
            return int(length)
        if isinstance(length, str | timedelta):
            return length
    raise InputError.bad_argument(argument, length, f"a length of time like {EXAMPLES}, a timedelta or a whole number")


def interval(text: str, argument: str = "length of time") -> timedelta:
    """A fixed length of time as it is written.

    >>> interval("-10 minutes")
    datetime.timedelta(days=-1, seconds=85800)
    """
    found = length_of(text, argument)
    if isinstance(found, Months):
        why = "months and years have no fixed length; only tumbling windows, resample, bars and grids take them"
        raise InputError.bad_argument(argument, text, f"a fixed length, like `30 days`: {why}")
    return found


@overload
def distance(length: str | int | timedelta, argument: str = ...) -> int | timedelta: ...
@overload
def distance(length: str | int | timedelta | None, argument: str = ...) -> int | timedelta | None: ...
def distance(length: str | int | timedelta | None, argument: str = "length of time") -> int | timedelta | None:
    """A length as operators take it: a number or a timedelta.

    >>> distance("2 s"), distance(5)
    (datetime.timedelta(seconds=2), 5)
    """
    return interval(length, argument) if isinstance(length, str) else length
