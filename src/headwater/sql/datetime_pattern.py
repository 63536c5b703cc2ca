"""Java's patterns for dates and times, as Spark uses them in date_format, to_timestamp and their kin: a known part of
them.

A pattern is letters in runs (``yyyy``, ``MM``), texts in quotes, and other characters that stand for themselves. Known
letters: ``y M L d D H h k K m s S a E Q q G`` and, since the zone is always UTC here, ``X x Z z V O``. Everything else
is refused by its letter. Reading knows fewer of them: ``y M L d H h k K m s S a X x``, and texts in English.

Differences from plain Java that Spark makes, kept here: ``y`` is the proleptic year, letters ignore case when read,
``SSS`` reads one to three digits, and what a pattern does not name is 1970-01-01 00:00:00.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

__all__ = ["PatternError", "formatter", "parser"]

_MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
_MONTHS += ["August", "September", "October", "November", "December"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_RUN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']", re.DOTALL)
_YEAR = "[0-9]{4}"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock, in UTC


class PatternError(ValueError):
    """A pattern that is not known here."""


def _pieces(pattern: str) -> list[tuple[str, int | str]]:
    """(letter, count) for letters, ("", text) for texts that stand for themselves."""
    out: list[tuple[str, int | str]] = []
    at = 0
    for match in _RUN.finditer(pattern):
        if match.start() != at:
            break
        at = match.end()
        if match[2]:
            out.append((match[2], len(match[0])))
        elif match[0].startswith("'"):
            out.append(("", "'" if match[0] == "''" else match[1].replace("''", "'")))
        else:
            out.append(("", match[0]))
    if at != len(pattern):
        raise PatternError("a quote that does not end")
    strange = next((text for letter, text in out if letter == "" and re.search(r"[\[\]{}#]", str(text))), None)
    if strange is not None and str(strange) in pattern:
        raise PatternError(f"`{strange}` in a pattern")
    return out


def _padded(least: int, most: int, value: Callable[[datetime], int]) -> Callable[[int], Callable[[datetime], str]]:
    def of(count: int) -> Callable[[datetime], str]:
        if not least <= count <= most:
            raise PatternError("this many letters in a row")
        return lambda t: str(value(t)).rjust(count, "0")

    return of


def _named(
    names: list[str], value: Callable[[datetime], int], short: int
) -> Callable[[int], Callable[[datetime], str]]:
    def of(count: int) -> Callable[[datetime], str]:
        if count > 4:
            raise PatternError("this many letters in a row")
        return lambda t: names[value(t)] if count == 4 else names[value(t)][:short]

    return of


def _year(count: int) -> Callable[[datetime], str]:
    if count > 6:
        raise PatternError("this many letters in a row")
    if count == 2:
        return lambda t: f"{t.year % 100:02d}"
    return lambda t: str(t.year).rjust(count, "0")


def _month(count: int) -> Callable[[datetime], str]:
    if count <= 2:
        return lambda t: str(t.month).rjust(count, "0")
    return _named(_MONTHS, lambda t: t.month - 1, 3)(count)


def _quarter(count: int) -> Callable[[datetime], str]:
    if count > 4:
        raise PatternError("this many letters in a row")

    def text(t: datetime) -> str:
        number = (t.month - 1) // 3 + 1
        return (str(number), f"0{number}", f"Q{number}", _QUARTERS[number - 1])[count - 1]

    return text


def _day_of_year(count: int) -> Callable[[datetime], str]:
    if count > 3:
        raise PatternError("this many letters in a row")
    return lambda t: str(t.timetuple().tm_yday).rjust(count, "0")


def _fraction(count: int) -> Callable[[datetime], str]:
    if count > 9:
        raise PatternError("this many letters in a row")
    return lambda t: f"{t.microsecond:06d}000"[:count]


def _fixed(*texts: str) -> Callable[[int], Callable[[datetime], str]]:
    def of(count: int) -> Callable[[datetime], str]:
        if count > len(texts) or not texts[count - 1]:
            raise PatternError("this many letters in a row")
        return lambda _: texts[count - 1]

    return of


def _half(count: int) -> Callable[[datetime], str]:
    if count != 1:
        raise PatternError("this many letters in a row")
    return lambda t: "AM" if t.hour < 12 else "PM"


_WRITERS: dict[str, Callable[[int], Callable[[datetime], str]]] = {
    "y": _year,
    "M": _month,
    "L": _month,
    "d": _padded(1, 2, lambda t: t.day),
    "D": _day_of_year,
    "H": _padded(1, 2, lambda t: t.hour),
    "h": _padded(1, 2, lambda t: t.hour % 12 or 12),
    "k": _padded(1, 2, lambda t: t.hour or 24),
    "K": _padded(1, 2, lambda t: t.hour % 12),
    "m": _padded(1, 2, lambda t: t.minute),
    "s": _padded(1, 2, lambda t: t.second),
    "S": _fraction,
    "a": _half,
    "E": _named(_DAYS, lambda t: t.weekday(), 3),
    "Q": _quarter,
    "q": _quarter,
    "G": _fixed("AD", "AD", "AD", "Anno Domini"),
}
_ZONES: dict[str, Callable[[int], Callable[[datetime], str]]] = {
    "X": _fixed("Z", "Z", "Z", "Z", "Z"),
    "x": _fixed("+00", "+0000", "+00:00", "+0000", "+00:00"),
    "Z": _fixed("+0000", "+0000", "+0000", "GMT", "Z"),
    "z": _fixed("UTC", "UTC", "UTC", "Coordinated Universal Time"),
    "V": _fixed("", "UTC"),
    "O": _fixed("GMT", "", "", "GMT"),
}


@functools.lru_cache(maxsize=256)
def formatter(pattern: str, *, zoned: bool = True) -> Callable[[int], str]:
    """A function from microseconds since 1970 to a text; outside the years 1 to 9999 it raises OverflowError.

    >>> formatter("EEE dd MMM yyyy, h:mm a")(0)
    'Thu 01 Jan 1970, 12:00 AM'
    """
    parts: list[Callable[[datetime], str]] = []
    for letter, count in _pieces(pattern):
        if letter == "":
            parts.append(lambda _, text=str(count): text)  # type: ignore[misc]
            continue
        writer = _WRITERS.get(letter) or (_ZONES.get(letter) if zoned else None)
        if writer is None:
            raise PatternError(f"the pattern letter `{letter}`")
        try:
            parts.append(writer(int(count)))
        except PatternError:
            raise PatternError(f"the pattern letters `{letter * int(count)}`") from None

    def write(micros: int) -> str:
        moment = _EPOCH + timedelta(microseconds=micros)
        return "".join(part(moment) for part in parts)

    return write


_NUMBER_FIELDS = {"d": "day", "H": "hour", "h": "clock12", "k": "clock24", "K": "hour12", "m": "minute", "s": "second"}
_READS_FIXED_ZONE = {1: r"Z|[+-][0-9]{2}(?:[0-9]{2})?", 2: r"Z|[+-][0-9]{4}", 3: r"Z|[+-][0-9]{2}:[0-9]{2}"}


@functools.lru_cache(maxsize=256)
def parser(pattern: str) -> Callable[[str], int | None]:
    """A function from a text to microseconds since 1970, or None where the text does not follow the pattern.

    >>> parser("dd/MM/yyyy HH:mm")("02/01/1970 00:01"), parser("yyyy-MM-dd")("1970-1-2")
    (86460000000, None)
    """
    pieces = _pieces(pattern)
    expression, fields = "", []
    for at, (letter, count) in enumerate(pieces):
        if letter == "":
            expression += re.escape(str(count))
            continue
        after, text = pieces[at + 1] if at + 1 < len(pieces) else ("", "")
        beside = after not in ("", "a", "X", "x") or (after == "" and str(text)[:1].isdigit())
        field, form = _read(letter, int(count), beside=beside)
        if field in fields:
            raise PatternError(f"the pattern letter `{letter}` twice")
        fields.append(field)
        expression += f"({form})"
    compiled = re.compile(expression, re.IGNORECASE | re.ASCII | re.DOTALL)

    # A year with a sign is read by Spark, but does not belong to the years known here.
    year = f"({_YEAR})"
    signed = re.compile(expression.replace(year, "[+-][0-9]{4,9}"), compiled.flags) if year in expression else None

    def read(text: str) -> int | None:
        match = compiled.fullmatch(text)
        if match is None and signed is not None and signed.fullmatch(text):
            raise OverflowError("a year outside 1 to 9999")
        return None if match is None else _resolved(dict(zip(fields, match.groups(), strict=True)))

    return read


def _read(letter: str, count: int, *, beside: bool) -> tuple[str, str]:
    """The field a run of letters reads, and the form of its text."""
    refusal = PatternError(f"the pattern letters `{letter * count}` when reading a text")
    if letter == "y" and count in (2, 4):
        return f"year{count}", f"[0-9]{{{count}}}"
    if letter in "ML" and count in (3, 4):
        return "month_name", "|".join(m if count == 4 else m[:3] for m in _MONTHS)
    if letter in "ML":
        letter, field = "M", "month"
    else:
        field = _NUMBER_FIELDS.get(letter, "")
    if field:
        if count > 2 or (count == 1 and beside):
            raise refusal
        return field, "[0-9]{2}" if count == 2 else "[0-9]{1,19}"
    if letter == "S" and count <= 9:
        return "fraction", f"[0-9]{{1,{count}}}"
    if letter == "a" and count == 1:
        return "half", "AM|PM"
    if letter == "X" and count in _READS_FIXED_ZONE:
        return "zone", _READS_FIXED_ZONE[count]
    if letter == "x" and count in _READS_FIXED_ZONE:
        return "zone", _READS_FIXED_ZONE[count].removeprefix("Z|")
    raise refusal


def _resolved(found: dict[str, str]) -> int | None:
    year = int(found["year4"]) if "year4" in found else 2000 + int(found["year2"]) if "year2" in found else 1970
    if year == 0:
        raise OverflowError("a year outside 1 to 9999")
    name = found.get("month_name", "").lower()
    month = next((i + 1 for i, m in enumerate(_MONTHS) if name and m.lower().startswith(name)), 1)
    hour = _hour(found)
    if hour is None:
        return None
    try:
        day = date(year, int(found.get("month", month)), int(found.get("day", 1)))
        wall = datetime(day.year, day.month, day.day, hour, int(found.get("minute", 0)), int(found.get("second", 0)))  # noqa: DTZ001
    except (ValueError, OverflowError):
        return None
    micros = (wall - _EPOCH) // timedelta(microseconds=1) + int(found.get("fraction", "").ljust(6, "0")[:6])
    zone = found.get("zone", "Z").upper()
    if zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        if int(digits) > 1800 or int(digits[2:]) > 59:
            return None
        offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000_000
        micros -= offset if zone[0] == "+" else -offset
    return micros


def _hour(found: dict[str, str]) -> int | None:
    half = found.get("half", "").upper()
    if "hour" in found:
        hour = int(found["hour"])
        return None if hour > 23 or (half and (hour >= 12) != (half == "PM")) else hour
    if "clock24" in found:
        hour = int(found["clock24"])
        if not 1 <= hour <= 24 or (half and (hour % 24 >= 12) != (half == "PM")):
            return None
        return hour % 24
    for field, low, high in (("clock12", 1, 12), ("hour12", 0, 11)):
        if field in found:
            hour = int(found[field])
            return None if not low <= hour <= high else hour % 12 + (12 if half == "PM" else 0)
    return 12 if half == "PM" else 0
