"""Ticks: round, in order, within the range, few, and in the calendar that datetime knows."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.observe.ticks import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Axis,
    civil,
    days_of,
    moment_text,
    number_text,
    number_ticks,
    spread,
    time_ticks,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 1e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e9 + 0.001, 1e9]
)


@given(FINITE, FINITE, st.integers(4, 12))
def test_numbers(a: float, b: float, most: int) -> None:
    low, high = spread(min(a, b), max(a, b))
    assert low < high
    assert max(low, -1.7e308) <= max(min(a, b), -1.7e308)
    found = number_ticks(low, high, most)
    at = [tick.at for tick in found]
    assert 1 <= len(found) <= most
    assert all(low <= value <= high for value in at)
    assert all(x < y for x, y in pairwise(at))
    assert len({tick.text for tick in found}) == len(found)
    steps = [y / 2 - x / 2 for x, y in pairwise(at)]
    assert all(step == pytest.approx(steps[0], rel=1e-3) for step in steps)
    for tick in found:
        told = tick.text.replace(",", "")
        size = {"M": 1e6, "G": 1e9, "T": 1e12}.get(told[-1], 1.0)
        written = float(told.rstrip("MGT")) * size
        assert written == pytest.approx(tick.at, rel=1e-9, abs=abs(high / 2 - low / 2) * 1e-6)


@given(st.integers(-(10**7), 10**7))
def test_the_calendar(days: int) -> None:
    year, month, day = civil(days)
    assert days_of(year, month, day) == days
    if 1 <= year <= 9999:
        assert dt.date(1970, 1, 1) + dt.timedelta(days=days) == dt.date(year, month, day)


@given(
    st.sampled_from(["timestamp", "date", "integer"]),
    st.integers(-(2**62), 2**62),
    st.integers(1, 2**62) | st.integers(1, 10**6),
    st.integers(2, 12),
)
def test_times(axis: Axis, low: int, length: int, most: int) -> None:
    if axis == "date":
        low, length = low >> 32, max(length >> 32, 1)
    found = time_ticks(low, low + length, axis, most)
    at = [int(tick.at) for tick in found]
    assert len(at) <= most
    assert all(low <= t <= low + length for t in at)
    assert all(x < y for x, y in pairwise(at))


@pytest.mark.parametrize(
    "length", [3, 50, 700 * SECOND, 5 * HOUR, 40 * HOUR, 9 * DAY, 100 * DAY, 3000 * DAY, 10**6 * DAY]
)
def test_there_is_always_a_tick(length: int) -> None:
    for low in range(0, 10**15, 10**14 + 12_345):
        assert time_ticks(low, low + length, "timestamp", 7), (low, length)


def test_what_is_written() -> None:
    start = days_of(2024, 2, 28) * DAY

    def told(low: int, high: int, most: int = 5) -> list[str]:
        return [f"{t.text}|{t.context}" if t.context else t.text for t in time_ticks(low, high, "timestamp", most)]

    assert told(start, start + 2) == ["00:00:00.000000|2024-02-28", "00:00:00.000001", "00:00:00.000002"]
    assert told(start, start + SECOND) == ["00:00:00.0|2024-02-28", "00:00:00.5", "00:00:01.0"]
    assert told(start + HOUR, start + HOUR + 20 * MINUTE) == ["01:00|2024-02-28", "01:05", "01:10", "01:15", "01:20"]
    assert told(start + 18 * HOUR, start + 36 * HOUR) == ["18:00|2024-02-28", "00:00|2024-02-29", "06:00", "12:00"]
    assert told(start, start + 3 * DAY) == ["28 Feb|2024", "29 Feb", "1 Mar", "2 Mar"]
    assert told(start, start + 400 * DAY) == ["Apr|2024", "Jul", "Oct", "Jan|2025", "Apr"]
    assert told(start, start + 4000 * DAY) == ["2026", "2028", "2030", "2032", "2034"]
    assert [t.text for t in time_ticks(0, 10_000, "integer", 3)] == ["0", "5,000", "10,000"]
    assert moment_text(start + HOUR + 5, "timestamp") == "2024-02-28 01:00:00.000005"
    assert number_text(-0.5) == "-0.5"
