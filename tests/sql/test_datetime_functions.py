"""Dates and timestamps against Spark: parts, steps, patterns, zones, over leap days, the years 1 and 9999, and before 1970."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import parse

from .conftest import fixture_lines

Differences = Callable[[pa.Table, Sequence[str]], list[str]]

_YEARS = [1, 2, 1582, 1899, 1900, 1969, 1970, 1971, 2000, 2023, 2024, 2038, 9998, 9999]
_SECONDS = ["0", "59.999999", "60", "60.000001", "61", "12.5", "-1"]


def _moment(rng: random.Random) -> datetime:
    year = rng.choice(_YEARS) if rng.random() < 0.6 else rng.randint(1, 9999)
    month, day = rng.choice([1, 2, 2, 3, 10, 12]), rng.choice([1, 15, 28, 29, 30, 31])
    clock = (rng.choice([0, 1, 11, 12, 13, 23]), rng.choice([0, 30, 59]), rng.choice([0, 1, 59]))
    micros = rng.choice([0, 1, 120_000, 123_456, 500_000, 999_999])
    while True:
        try:
            return datetime(year, month, day, *clock, micros)
        except ValueError:
            day -= 1


def _table(seed: int, rows: int = 40) -> pa.Table:
    rng = random.Random(seed)
    first, second = ([*(_moment(rng) for _ in range(rows)), None] for _ in range(2))
    zoned = pa.timestamp("us", tz="UTC")
    spans = range(rows + 1)
    return pa.table(
        {
            "ts": pa.array([t and t.replace(tzinfo=UTC) for t in first], zoned),
            "nt0": pa.array([t and t.replace(tzinfo=UTC) for t in second], zoned),
            "day": pa.array([t and t.date() for t in first]),
            "day2": pa.array([t and t.date() for t in second]),
            "s": pa.array([t and rng.choice([str(t), t.date().isoformat(), t.isoformat()]) for t in first]),
            "n": pa.array([rng.randint(-400, 400) for _ in spans], pa.int32()),
            "l": pa.array([rng.randint(-62_135_596_800, 253_402_300_799) for _ in spans], pa.int64()),
            "d": pa.array([rng.uniform(-1e10, 1e10) for _ in spans]),
            "p": pa.array([Decimal(rng.randint(-(10**10), 10**10)) / 1000 for _ in spans], pa.decimal128(12, 3)),
            "fs": pa.array([t and f"{t.day:02d}/{t.month:02d}/{t.year:04d} {t:%H:%M:%S}" for t in first]),
            "y": pa.array([t and t.year for t in first], pa.int32()),
            "mo": pa.array([rng.randint(0, 13) for _ in spans], pa.int32()),
            "dd": pa.array([rng.randint(0, 32) for _ in spans], pa.int32()),
            "se": pa.array([Decimal(rng.choice(_SECONDS)) for _ in spans], pa.decimal128(16, 6)),
        }
    )


@pytest.mark.spark
@settings(max_examples=max(1, settings().max_examples // 50), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_dates_and_timestamps_are_sparks(differences: Differences, seed: int) -> None:
    found = differences(_table(seed), fixture_lines("datetime.sql"))
    assert not found, "\n".join(found)


_PATTERN_TEXTS = """2024-02-29|2024-2-9|24-02-29|2024-02-30|2024-13-01|0001-01-01|0000-01-01|9999-12-31|12345-01-01|+12345-01-01
-2024-01-01|2024-02-29 |2024-02-29 10:11:12|2024-02-29 1:2:3|2024-02-29 24:00:00|2024-02-29 10:11:12.5|2024-02-29 10:11:12.123456789
2024-02-29T10:11:12Z|2024-02-29T10:11:12+02:00|2024-02-29T10:11:12+0200|2024-02-29T10:11:12+02|20240229|20240229101112|202402|2024
29 Feb 2024|29 FEB 2024|29 february 2024|1 mar 24|29/02/24|10:11|10:11 PM|22:11 PM|12:00 am|0:11 PM|2/9/2024|02/09/2024||abc
2024-02-29 10|10|1|01|001|2024-060|Thu 29 Feb 2024|2024-02-29 10:11:12 PM|１０|2024-02-29 10:11:12 UTC|2024-02-29x|10:11 pm|99"""


@pytest.mark.spark
def test_texts_are_read_by_patterns_as_in_spark(differences: Differences) -> None:
    texts = [t for line in _PATTERN_TEXTS.split("\n") for t in line.split("|")]
    found = differences(pa.table({"s": pa.array([*texts, None])}), fixture_lines("patterns.sql"))
    assert not found, "\n".join(found)


_PLAIN_TEXTS = """2024-02-29|2023-02-29| 2024-2-9 |2024|2024-13|2024-1-32|2024-02-29T|2024-02-29 xyz|2024-02-29T12|2024-02-29 12
2024-02-29 12:3|2024-02-29 12:3:4|2024-02-29 12:30:45.|2024-02-29 12:30:45.1234567|2024-02-29 12:30:45.123456789Z|2024-02-29 12:30:45 Z
2024-02-29 12:30:45+1|2024-02-29 12:30:45-01:30|2024-02-29 12:30:45 UTC+2|2024-02-29 12:30:45 America/Los_Angeles
2024-03-31 02:30:00Europe/Berlin|2024-10-27 02:30:00 Europe/Berlin|1890-01-01 00:00:00 Europe/Berlin|2024-02-29 24:00:00
2024-02-29 12:60:00|2024-02-29 12:00:60|12:30:00|T12:30||  |abc|20240229|2024/02/29|+2024-01-01|-2024-01-01|99999-01-01|0000-01-01
0001-01-01|9999-12-31 23:59:59.999999|0001-01-01 00:00:00+10:00|2024-02-29-|2024--1|2024-02-29 1:2:3.4+18:00|2024-02-29 1:2:3.4+19:00
2024-02-29 1:2:3 +5:3|2024-02-29 12:30:45.5+02:00:30|2024-02-29 12:30Z|2024-02-29Z|2024-02-29 12:30:45 PST|2024-02-29 12:30:45EST
2024-02-29 12:30:45 foo|１２|2024-02-29 12:30:45.1.2|2024-02-29  12:30:45"""


@pytest.mark.spark
def test_texts_are_cast_as_in_spark(differences: Differences) -> None:
    texts = [t for line in _PLAIN_TEXTS.split("\n") for t in line.split("|")]
    table = pa.table({"s": pa.array([*texts, "2024-02-29\t", "\x00 2024-02-29\x1f", "2024-02-29 12:30:45\n", None])})
    casts = [f"{word}(s AS {t})" for word in ("CAST", "TRY_CAST") for t in ("date", "timestamp", "timestamp_ntz")]
    found = differences(table, casts)
    assert not found, "\n".join(found)


_REFUSED = [f"date_format(ts, '{p}')" for p in ("YYYY", "w", "u", "e", "[yyyy]", "n", "F", "B", "aa", "ddd", "HHH")]
_REFUSED += [
    "to_timestamp(s, 'EEE')",
    "to_timestamp(s, 'yyyy-DDD')",
    "timestampdiff(DAYOFYEAR, ts, ts)",
    "next_day(day, 'x')",
]


@pytest.mark.parametrize("text", _REFUSED)
def test_other_letters_and_units_are_refused_by_name(text: str) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("s", pa.string()), ("day", pa.date32())])
    with pytest.raises(ExpressionError) as caught:
        parse(text, schema=schema)
    assert caught.value.code == "E1302"
