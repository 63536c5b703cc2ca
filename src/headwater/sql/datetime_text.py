"""Dates and timestamps as Spark reads them from texts without a pattern: ``2024``, ``2024-2-9``,
``2024-02-09T1:2:3.5+02:00``.

Blanks and control characters at both ends do not count. A date may end after the year or the month, and whatever
follows a blank or a ``T`` behind the day is not read. A timestamp may end after any of its parts; its zone follows the
seconds. A text that is none of this gives None; one that Spark would read but that has no meaning here (a year outside
1 to 9999, a time without a date, a zone by one of Java's old short names) raises `Unreadable`, so that nobody takes it
for a null.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

__all__ = ["Unreadable", "days_of", "micros_of", "zone_of"]

_EPOCH = date(1970, 1, 1)
_MOMENT = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock, in UTC
_BLANKS = "".join(map(chr, range(33))) + "\x7f"
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})"
    r"(?::([0-9]{1,2})(?::([0-9]{1,2})(?:(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_TIME_ONLY = re.compile(r"T?[0-9]{1,2}:|T[0-9]", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{2}))?)?", re.ASCII)
_UTC_NAMES = {"Z", "UTC", "GMT", "UT", "Etc/UTC", "Etc/GMT"}
_REGION = re.compile(r"[A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+)+", re.ASCII)


class Unreadable(ValueError):
    """Spark reads this text, but what it says is not known here."""


@functools.lru_cache(maxsize=256)
def zone_of(name: str) -> timezone | ZoneInfo | None:
    """A zone by its offset or by its region's name, or None.

    >>> zone_of("+02:00")
    datetime.timezone(datetime.timedelta(seconds=7200))
    """
    if name in _UTC_NAMES:
        return UTC
    if match := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        whole = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes > 59 or seconds > 59 or whole > timedelta(hours=18):
            return None
        return timezone(whole if match[1] == "+" else -whole)
    if _REGION.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            return None
    return None


def days_of(text: str) -> int | None:
    """The days since 1970 of a text that is a date.

    >>> days_of(" 1970-1-2 "), days_of("1970-02-30")
    (1, None)
    """
    match = _DATE.fullmatch(text.strip(_BLANKS))
    if match is None:
        return None
    year = _year(match[1], match[2])
    try:
        return (date(year, int(match[3] or 1), int(match[4] or 1)) - _EPOCH).days
    except ValueError:
        return None


def micros_of(text: str, *, zoned: bool = True) -> int | None:
    """The microseconds since 1970 of a text that is a timestamp, in UTC; not ``zoned``, its zone is left out of
    account.

    >>> micros_of("1970-01-01 00:00:01.5"), micros_of("1970-01-01T02:00:00+02:00")
    (1500000, 0)
    """
    text = text.strip(_BLANKS)
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        if zoned and _TIME_ONLY.match(text):
            raise Unreadable("a time without a date")
        return None
    year = _year(match[1], match[2])
    parts = [int(match[i] or (1 if i < 5 else 0)) for i in (3, 4, 5, 6, 7)]
    fraction = int((match[8] or "")[:6].ljust(6, "0"))
    try:
        wall = datetime(year, parts[0], parts[1], parts[2], parts[3], parts[4], fraction)  # noqa: DTZ001
    except ValueError:
        return None
    micros = (wall - _MOMENT) // timedelta(microseconds=1)
    if match[9] is None:
        return micros
    zone = zone_of(match[9].strip(" "))
    if zone is None:
        raise Unreadable(f"a timestamp with the zone {match[9].strip()!r}")
    if not zoned:
        return micros
    offset = wall.replace(tzinfo=zone).utcoffset()
    assert offset is not None
    return micros - offset // timedelta(microseconds=1)


def _year(sign: str, digits: str) -> int:
    year = int(digits)
    if sign == "-" or not 1 <= year <= 9999:
        raise Unreadable("a year outside 1 to 9999")
    return year
