"""Durations as people read and write them: ``1 minute 30 seconds``, ``5m``, ``90 s``."""

from __future__ import annotations

import re
from datetime import timedelta

from headwater.base.errors import InputError

__all__ = ["Duration", "duration_words", "parse_duration_ms"]

_UNITS = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)

_UNITS_MS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "w": 604_800_000,
    "week": 604_800_000,
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


class Duration(int):
    """A number of microseconds that is printed as a duration.

    >>> Duration(-90_000_000).words
    '1 minute 30 seconds'
    """

    __slots__ = ()

    @property
    def words(self) -> str:
        """Without its sign."""
        return duration_words(self)


def duration_words(microseconds: int) -> str:
    """A duration without its sign, in the units that it has.

    >>> duration_words(3_600_000_000), duration_words(-90_000_000), duration_words(1), duration_words(0)
    ('1 hour', '1 minute 30 seconds', '1 microsecond', '0 seconds')
    """
    left, said = abs(microseconds), []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            said.append(f"{count:,} {name}{'' if count == 1 else 's'}")
    return " ".join(said) or "0 seconds"


def parse_duration_ms(given: str | timedelta | float, name: str) -> int:
    """Milliseconds of a duration; a number is seconds. ``name`` is the argument's, for errors.

    >>> parse_duration_ms("5m", "ttl"), parse_duration_ms("1 day 2 hours", "ttl"), parse_duration_ms(0.5, "ttl")
    (300000, 93600000, 500)
    """
    total = 0.0
    if isinstance(given, timedelta):
        total = given.total_seconds() * 1_000
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        total = given * 1_000
    elif isinstance(given, str):
        text, at = given.strip().lower(), 0
        while at < len(text):
            found = _PART.match(text, at)
            unit = None if found is None else _UNITS_MS.get(found[2]) or _UNITS_MS.get(found[2].removesuffix("s"))
            if found is None or unit is None:
                raise _bad(given, name)
            total += float(found[1]) * unit
            at = found.end()
    if not 0 < total < 2**53:
        raise _bad(given, name)
    return round(total)


def _bad(given: object, name: str) -> InputError:
    return InputError.bad_argument(name, given, "a length of time, such as '30 s', '5m', '1 hour' or '7 days'")
