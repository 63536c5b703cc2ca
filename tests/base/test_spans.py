"""Lengths of time: everything that people write, once, and errors that name their argument."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import InputError
from headwater.base.spans import Months, distance, interval, length_of, span

_LENGTHS = {
    "30 sec": timedelta(seconds=30),
    "30 seconds": timedelta(seconds=30),
    "30secs": timedelta(seconds=30),
    "5 min": timedelta(minutes=5),
    "5 mins": timedelta(minutes=5),
    "5m": timedelta(minutes=5),
    "1 hr": timedelta(hours=1),
    "2 hrs": timedelta(hours=2),
    "1h30m": timedelta(minutes=90),
    "1 hour, 30 minutes": timedelta(minutes=90),
    "1.5 h": timedelta(minutes=90),
    "2 days": timedelta(days=2),
    "2 DAYS": timedelta(days=2),
    "1 week": timedelta(days=7),
    "1w": timedelta(days=7),
    "2 wks": timedelta(days=14),
    "100ms": timedelta(milliseconds=100),
    "0.5 ms": timedelta(microseconds=500),
    "7 µs": timedelta(microseconds=7),
    "-10 minutes": timedelta(minutes=-10),
    " 1 s ": timedelta(seconds=1),
}
_CALENDAR = {"1 month": 1, "3mo": 3, "1 quarter": 3, "2 quarters": 6, "1 year": 12, "1.5 years": 18, "1y6mo": 18}


@pytest.mark.parametrize("text", _LENGTHS)
def test_fixed(text: str) -> None:
    assert length_of(text) == interval(text) == distance(text) == _LENGTHS[text]


@pytest.mark.parametrize("text", _CALENDAR)
def test_of_the_calendar(text: str) -> None:
    assert length_of(text) == Months(_CALENDAR[text])
    with pytest.raises(InputError, match=r"`gap` is .*\n.*no fixed length"):
        interval(text, "gap")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("5 parsecs", "`parsecs` is not a unit"),
        ("", "like `30 sec`"),
        ("sec", "like `30 sec`"),
        ("5", "like `30 sec`"),
        ("1M", "a minute or a month"),
        ("1 month 2 days", "no fixed length"),
        ("0.3 us", "not a whole number of microseconds"),
        ("0.5 months", "not a whole number of months"),
        ("99999999999999 days", "longer than time"),
        ("1_0 s", "like `30 sec`"),
    ],
)
def test_what_is_none(text: str, says: str) -> None:
    with pytest.raises(InputError, match="`tolerance` is") as refused:
        length_of(text, "tolerance")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("length", "kind", "says"),
    [
        ("1 s", pa.int64(), "`size` is '1 s'\n.*a whole number, as the times in `t`"),
        ("1 s", pa.date32(), "`size` is '1 s'\n.*whole days, as `t` is a date"),
        (True, pa.int64(), "`size` is True"),
        (1.5, pa.int64(), "`size` is 1.5"),
        ("1 year", pa.timestamp("us"), "`size` is '1 year'\n.*no fixed length"),
    ],
)
def test_of_a_column(length: Any, kind: pa.DataType, says: str) -> None:
    with pytest.raises(InputError, match=says):
        span(length, pa.field("t", kind), "size")
