"""Intervals as texts: ``INTERVAL '1 02:03:04.5' DAY TO SECOND`` and back, as Spark prints and reads them.

The first unit may have any number of digits; those behind it are within their bounds (23 hours, 59 minutes, 59 seconds,
11 months). A text is read only in the form of its type: with just the units of the type, bare or as the whole constant.
"""

from __future__ import annotations

import re

from headwater.sql.interval_types import DAY_UNITS, MONTH_UNITS, IntervalType

__all__ = ["Unreadable", "interval_of_text", "text_of_interval"]

_SEPARATORS = {"hour": " ", "minute": ":", "second": ":", "month": "-"}
_MOST = {"hour": 23, "minute": 59, "second": 59, "month": 11}
_SIGN = r"([+-])?"
_SIZES = {**DAY_UNITS, **MONTH_UNITS}


class Unreadable(ValueError):
    """A text that is no interval of its type, or one too long."""


def text_of_interval(value: int, dtype: IntervalType) -> str:
    """What Spark prints.

    >>> from headwater.sql.interval_types import DAY_TO_SECOND, YEAR_TO_MONTH
    >>> text_of_interval(93_784_500_000, DAY_TO_SECOND), text_of_interval(-14, YEAR_TO_MONTH)
    ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-1-2' YEAR TO MONTH")
    """
    rest, parts = abs(value), ""
    for unit in dtype.units:
        count, rest = divmod(rest, _SIZES[unit])
        text = str(count) if unit in ("day", "year", "month") else f"{count:02d}"
        if unit == "second" and rest:
            text += f".{rest:06d}".rstrip("0")
        parts += text if not parts else _SEPARATORS[unit] + text
    return f"INTERVAL '{'-' if value < 0 else ''}{parts}' {dtype.name.removeprefix('interval ').upper()}"


def _pattern(dtype: IntervalType) -> str:
    out = ""
    for unit in dtype.units:
        digits = r"(\d+)" if not out else _SEPARATORS[unit] + (r"(\d+)" if unit == "month" else r"(\d{1,2})")
        out += digits + (r"(\.\d{1,9})?" if unit == "second" else "")
    return out


def interval_of_text(text: str, dtype: IntervalType) -> int:
    """Microseconds or months.

    >>> from headwater.sql.interval_types import DAY_TO_SECOND, YEAR_TO_MONTH
    >>> interval_of_text("-1 02:03:04", DAY_TO_SECOND), interval_of_text("INTERVAL '1-2' YEAR TO MONTH", YEAR_TO_MONTH)
    (-93784000000, 14)
    """
    bare, words = _pattern(dtype), dtype.name.removeprefix("interval ").upper().replace(" ", r"\s+")
    plain = text.strip(" \t\r\n")
    match = re.fullmatch(_SIGN + bare, plain, re.ASCII)
    signs = 1
    if match is None:
        whole = rf"INTERVAL\s+{_SIGN}'{_SIGN}{bare}'\s+{words}"
        match, signs = re.fullmatch(whole, plain, re.ASCII | re.IGNORECASE), 2
    if match is None:
        raise Unreadable(f"the text {text!r} is no {dtype.name}")
    sign = -1 if match.groups()[:signs].count("-") % 2 else 1
    total = 0
    for at, (unit, digits) in enumerate(zip(dtype.units, match.groups()[signs:], strict=False)):
        if at and int(digits) > _MOST[unit]:
            raise Unreadable(f"the text {text!r} is no {dtype.name}: {digits} is too much for a {unit}")
        total += int(digits) * _SIZES[unit]
    if dtype.last == "second" and (fraction := match.groups()[-1]):
        total += int(fraction[1:].ljust(6, "0")[:6])
    bits = dtype.storage_type.bit_width - 1
    if not -(1 << bits) <= sign * total < 1 << bits:
        raise Unreadable(f"the text {text!r} is too long for an {dtype.name}")
    return sign * total
