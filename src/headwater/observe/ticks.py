"""Where an axis has its ticks, and what is written there: numbers, whole numbers, dates and moments.

The problem: data ranges from microseconds to millennia and from 1e-300 to 1e300, and a reader wants a few round values.
The idea: the smallest step of a fixed list (1, 2 and 5 of every power of ten; for times the steps of clocks and
calendars) that gives no more ticks than were asked for. Times are whole numbers: microseconds or days since 1970, in
the calendar that is used today, for all years there are. A tick of a time has two texts: what is written at it, and,
where that changes, what it is part of (the day of an hour, the year of a month).

Invariants: ticks lie within the range, ascending, and no two are the same; there are at most as many as were asked
for; the same range gives the same ticks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Axis",
    "Tick",
    "civil",
    "days_of",
    "log_ticks",
    "moment_text",
    "number_text",
    "number_ticks",
    "spread",
    "time_ticks",
]

Axis = Literal["timestamp", "date", "integer"]

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
_BELOW_A_DAY = (
    *(m * 10**k for k in range(6) for m in (1, 2, 5)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
)
_DAYS = (1, 2, 5, 10)
_MONTHS = (1, 2, 3, 6)
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LARGEST = 1.7e308
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, its text, and a second text where that is another than at the tick before."""

    at: float
    text: str
    context: str = ""


# -- numbers -------------------------------------------------------------------------------------------------------


def spread(low: float, high: float) -> tuple[float, float]:
    """A range with something in it: one value, or values that are next to equal, get room around them.

    >>> spread(5.0, 5.0), spread(0.0, 0.0), spread(1.0, 2.0)
    ((4.5, 5.5), (-1.0, 1.0), (1.0, 2.0))
    """
    most = max(abs(low), abs(high))
    if high / 2 - low / 2 > max(most * 1e-11, 1e-300):
        return low, high
    room = most / 10 if most > 1e-300 else 1.0
    return max(low - room, -_LARGEST), min(high + room, _LARGEST)


def number_ticks(low: float, high: float, most: int = 6) -> list[Tick]:
    """Round numbers from ``low`` to ``high``, which differ.

    >>> [tick.text for tick in number_ticks(0.0, 1.3)]
    ['0.0', '0.5', '1.0']
    >>> [tick.text for tick in number_ticks(-2e6, 9e6)]
    ['-2M', '0', '2M', '4M', '6M', '8M']
    """
    # By halves, for a range may be wider than the widest number.
    raw = min(2 * ((high / 2 - low / 2) / max(most - 1, 1)), _LARGEST)
    power = math.floor(math.log10(raw))
    for mantissa, exponent in ((1, power), (2, power), (5, power), (1, power + 1), (2, power + 1)):
        first, last = (
            _steps(value, mantissa, exponent, side) for value, side in ((low, math.ceil), (high, math.floor))
        )
        if last - first < most:
            break
    write = _written(max(abs(low), abs(high)), exponent)
    found = (_multiple(i, mantissa, exponent) for i in range(first, last + 1))
    return [Tick(value, write(value)) for value in found if low <= value <= high]


def log_ticks(low: float, high: float, most: int = 6) -> list[Tick]:
    """Round numbers between two powers of ten, each at its logarithm: 1, 2 and 5 of every power, or only powers.

    >>> [(tick.at, tick.text) for tick in log_ticks(-2.1, 1.2)]
    [(-2.0, '0.01'), (-1.0, '0.1'), (0.0, '1'), (1.0, '10')]
    >>> [tick.text for tick in log_ticks(5.9, 6.8)]
    ['1M', '2M', '5M']
    """
    powers = range(math.floor(low), math.ceil(high) + 1)
    found: list[Tick] = []
    for mantissas, step in (((1, 2, 5), 1), *(((1,), n) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500))):
        values = [(math.log10(m) + power, m, power) for power in powers if power % step == 0 for m in mantissas]
        found = [Tick(at, _power_text(m, power)) for at, m, power in values if low <= at <= high]
        if len(found) <= most:
            break
    return found


def _power_text(mantissa: int, power: int) -> str:
    """``mantissa`` times a power of ten.

    >>> _power_text(5, -3), _power_text(2, 4), _power_text(1, 7), _power_text(1, 20)
    ('0.005', '20,000', '10M', '1e+20')
    """
    if not -4 <= power < 15:
        return f"{mantissa}e{power:+03d}"
    if power < 0:
        return f"{mantissa * 10.0**power:.{-power}f}"
    size, unit = next(pair for pair in _UNITS if 10**power >= pair[0] or pair[0] == 1.0)
    return f"{mantissa * 10**power / size:,.0f}{unit}"


def _steps(value: float, mantissa: int, exponent: int, side: Callable[[float], int]) -> int:
    # A hair beside a multiple is on it: 0.3 is three times 0.1.
    scaled = value / mantissa * 10.0**-exponent if exponent <= 0 else value / mantissa / 10.0**exponent
    near = round(scaled)
    return near if abs(scaled - near) < 1e-9 * max(1.0, abs(scaled)) else side(scaled)


def _multiple(count: int, mantissa: int, exponent: int) -> float:
    if exponent < -300:
        return count * mantissa * 10.0**exponent
    return count * mantissa / 10**-exponent if exponent < 0 else float(count * mantissa * 10**exponent)


def _written(largest: float, exponent: int) -> Callable[[float], str]:
    """How the numbers of an axis are written, all alike."""
    if largest >= 1e15 or largest < 1e-5:
        digits = min(max(math.floor(math.log10(largest)) - exponent, 0), 15)
        return lambda value: f"{value:.{digits}e}" if value else "0"
    size, unit = next(pair for pair in _UNITS if largest >= pair[0] or pair[0] == 1.0)
    digits = min(max(round(math.log10(size)) - exponent, 0), 15)
    return lambda value: f"{value / size + 0.0:,.{digits}f}{unit}" if value or not unit else "0"


def number_text(value: float) -> str:
    """A number in a few digits.

    >>> number_text(1234.5), number_text(0.00012345), number_text(7.0), number_text(1.5e9)
    ('1,234', '0.0001234', '7', '1.5e+09')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e7 or size < 1e-4:
        return f"{value:.4g}"
    digits = max(3 - math.floor(math.log10(size)), 0)
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# -- times ---------------------------------------------------------------------------------------------------------


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01.

    >>> civil(0), civil(19_792), civil(-1)
    ((1970, 1, 1), (2024, 3, 10), (1969, 12, 31))
    """
    # Years that begin in March have their odd day at the end, and repeat every 400 years, which are 146,097 days.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    date = day - (153 * month + 2) // 5 + 1
    return era * 400 + year + (month >= 10), month + 3 if month < 10 else month - 9, date


def days_of(year: int, month: int, day: int = 1) -> int:
    """The days from 1970-01-01 to a date.

    >>> days_of(1970, 1), days_of(2024, 3, 10)
    (0, 19792)
    """
    year -= month <= 2
    era, year = divmod(year, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year * 365 + year // 4 - year // 100 + of_year - 719_468


def time_ticks(low: int, high: int, axis: Axis, most: int = 7) -> list[Tick]:
    """Round times from ``low`` to ``high``, in the unit of the axis.

    >>> start = days_of(2024, 3, 10) * DAY
    >>> [(t.text, t.context) for t in time_ticks(start + 23 * HOUR, start + 25 * HOUR, "timestamp", 3)]
    [('23:00', '2024-03-10'), ('00:00', '2024-03-11'), ('01:00', '')]
    >>> [(t.text, t.context) for t in time_ticks(19_700, 19_792, "date", 4)]
    [('Jan', '2024'), ('Feb', ''), ('Mar', '')]
    """
    if axis == "integer":
        return _whole_ticks(low, high, most)
    if axis == "timestamp":
        for step in _BELOW_A_DAY:
            if high // step + -low // step < most:
                return _clock_ticks(low, high, step)
    unit = DAY if axis == "timestamp" else 1
    days = -(-low // unit), high // unit
    for step in _DAYS:
        found = _days(*days, step)
        if len(found) <= most:
            return _told(
                [(d * unit, f"{civil(d)[2]} {_MONTH_NAMES[civil(d)[1] - 1]}", str(civil(d)[0])) for d in found]
            )
    for months in _MONTHS:
        found = _months(*days, months)
        if len(found) <= most:
            return _told([(d * unit, _MONTH_NAMES[civil(d)[1] - 1], str(civil(d)[0])) for d in found])
    years = 1
    while len(found := _months(*days, 12 * years)) > most:
        years = _next_step(years)
    return _told([(d * unit, str(civil(d)[0]), "") for d in found])


def moment_text(at: int, axis: Axis) -> str:
    """A time in full.

    >>> moment_text(1_500_000, "timestamp"), moment_text(1, "date"), moment_text(12345, "integer")
    ('1970-01-01 00:00:01.5', '1970-01-02', '12345')
    """
    if axis == "integer":
        return str(at)
    days, rest = divmod(at, DAY) if axis == "timestamp" else (at, 0)
    step = 10 ** _zeros(rest % SECOND) if rest % SECOND else SECOND if rest % MINUTE else MINUTE
    clock = f" {_clock(rest, step)}" if axis == "timestamp" else ""
    year, month, day = civil(days)
    return f"{year:04d}-{month:02d}-{day:02d}{clock}"


def _next_step(step: int) -> int:
    """1, 2, 5, 10, 20, 50 …"""
    return step * 5 // 2 if str(step)[0] == "2" else step * 2


def _whole_ticks(low: int, high: int, most: int) -> list[Tick]:
    step = 1
    while high // step + -low // step >= most:
        step = _next_step(step)
    return [Tick(i * step, f"{i * step:,}") for i in range(-(-low // step), high // step + 1)]


def _clock_ticks(low: int, high: int, step: int) -> list[Tick]:
    found = []
    for at in range(-(-low // step) * step, high + 1, step):
        days, rest = divmod(at, DAY)
        year, month, day = civil(days)
        found.append((at, _clock(rest, step), f"{year:04d}-{month:02d}-{day:02d}"))
    return _told(found)


def _clock(of_day: int, step: int) -> str:
    """The time of a day, as exactly as steps are."""
    minutes, rest = divmod(of_day, MINUTE)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}"
    if step % MINUTE == 0:
        return text
    seconds, micros = divmod(rest, SECOND)
    text += f":{seconds:02d}"
    return text if step % SECOND == 0 else f"{text}.{micros:06d}"[: len(text) + 7 - _zeros(step)]


def _zeros(step: int) -> int:
    """With how many zeros a number of microseconds ends."""
    return len(f"{step:06d}") - len(f"{step:06d}".rstrip("0"))


def _days(first: int, last: int, step: int) -> list[int]:
    """Days whose number in the month is round: the 1st, the 3rd …; the 1st, the 6th, and so on,
    none close to the next 1st.
    """
    if last - first > 400:
        return list(range(401))  # too many, whatever the step
    most = {1: 31, 2: 29, 5: 26, 10: 21}[step]
    return [d for d in range(first, last + 1) if (civil(d)[2] - 1) % step == 0 and civil(d)[2] <= most]


def _months(first: int, last: int, step: int) -> list[int]:
    """The first days of every so many months, counted from the year 0."""
    (year, month, _), (to_year, to_month, _) = civil(first), civil(last)
    begin, end = year * 12 + month - 1, to_year * 12 + to_month - 1
    starts = range(-(-begin // step) * step, end + 1, step)
    if len(starts) > 400:
        return list(starts[:400])
    return [d for d in (days_of(m // 12, m % 12 + 1) for m in starts) if first <= d <= last]


def _told(found: list[tuple[int, str, str]]) -> list[Tick]:
    """Ticks that say what they are part of where that is new."""
    before = [None, *(context for _, _, context in found)]
    return [Tick(at, text, "" if context == before[k] else context) for k, (at, text, context) in enumerate(found)]
