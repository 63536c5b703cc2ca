"""Dates and timestamps from the year 1 to 9999, few and many, within the table of common years and outside it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headwater.sql.vectorised.calendar import days_of_months, days_of_parts, months_of_days, years_of_days

from .agreement import differences

_PARTS = "year quarter month day dayofyear weekofyear dayofweek weekday last_day unix_date"
_TEXTS = [f"{p}(day)" for p in _PARTS.split()]
_TEXTS += [f"trunc(day, '{u}')" for u in ("year", "quarter", "month", "week")]
_TEXTS += [
    f"date_trunc('{u}', ts)"
    for u in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
]
_TEXTS += [
    f"{p}(ts)"
    for p in (
        "hour",
        "minute",
        "second",
        "unix_seconds",
        "unix_millis",
        "unix_micros",
        "year",
        "date_format"[:0] or "day",
    )
]
_TEXTS += [
    "date_add(day, n)",
    "date_sub(day, 7)",
    "datediff(day, date'2000-02-29')",
    "add_months(day, n)",
    "next_day(day, 'TU')",
]
_TEXTS += [
    "timestampadd(HOUR, n, ts)",
    "timestampadd(MONTH, n, ts)",
    "timestampdiff(MINUTE, ts, timestamp'2000-01-01 00:00:00')",
]
_TEXTS += [
    "CAST(day AS string)",
    "CAST(ts AS date)",
    "CAST(day AS timestamp)",
    "date_part('YEAROFWEEK', day)",
    "date_part('SECONDS', ts)",
]
_DAYS = (
    st.dates()
    | st.dates(date(1895, 1, 1), date(1905, 1, 1))
    | st.dates(date(2095, 1, 1), date(2105, 1, 1))
    | st.dates(date(2020, 1, 1), date(2025, 1, 1))
)


@settings(max_examples=max(3, settings().max_examples // 8), phases=[Phase.generate])
@given(
    days=st.lists(st.none() | _DAYS, min_size=12, max_size=12),
    seconds=st.lists(st.integers(0, 86_399_999_999), min_size=12, max_size=12),
    counts=st.lists(st.integers(-20, 20), min_size=12, max_size=12),
)
def test_parts_and_steps(days: list[date | None], seconds: list[int], counts: list[int]) -> None:
    clocks = [
        None if d is None else datetime(d.year, d.month, d.day, tzinfo=UTC) + timedelta(microseconds=s)
        for d, s in zip(days, seconds, strict=True)
    ]
    table = pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "ts": pa.array(clocks, pa.timestamp("us", tz="UTC")),
            "n": pa.array(counts, pa.int32()),
        }
    )
    found = differences(_TEXTS, table)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rows", [3, 2000])
@pytest.mark.parametrize("first", [-719_162, -30_000, -25_567, 0, 47_000, 2_930_000])
def test_counts_are_pythons(first: int, rows: int) -> None:
    days = np.arange(first, first + rows)
    known = [date(1970, 1, 1) + timedelta(days=int(d)) for d in days if d <= 2_932_896]
    days = days[: len(known)]
    assert (years_of_days(days) + 1970).tolist() == [d.year for d in known]
    assert months_of_days(days).tolist() == [(d.year - 1970) * 12 + d.month - 1 for d in known]
    assert (days - days_of_months(months_of_days(days)) + 1).tolist() == [d.day for d in known]
    parts = [np.array([getattr(d, part) for d in known]) for part in ("year", "month", "day")]
    back, good = days_of_parts(*parts)
    assert back.tolist() == days.tolist() and good.all()


def test_days_that_do_not_exist() -> None:
    year, month, day = (
        np.array([2023, 2024, 2024, 2024, 2024]),
        np.array([2, 2, 13, 0, 4]),
        np.array([29, 30, 1, 1, 31]),
    )
    assert not days_of_parts(year, month, day)[1].any()
