"""Rows before, after and between moments."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import answer, assert_same, random_rows

from headwater.base.errors import InputError
from headwater.timeseries.operators.time_filter import TimeFilter, moment
from headwater.timeseries.operators.values import Values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOMENTS: dict[str, tuple[Any, Any]] = {
    "timestamp": ("2026-01-01 00:00:02.5", dt.datetime(2026, 1, 1, 0, 0, 7)),
    "zoned": ("2026-01-01T01:00:02.500+01:00", dt.datetime(2026, 1, 1, 0, 0, 7, tzinfo=dt.UTC)),
    "date": ("2026-01-05", dt.date(2026, 1, 20)),
    "whole": (5, 20),
}


def cases(table: pa.Table, kind: str) -> list[tuple[TimeFilter, Any]]:
    field = table.schema.field("t")
    start, end = (moment("m", m, field) for m in MOMENTS[kind])
    a, b = start.as_py(), end.as_py()
    return [
        (TimeFilter(Values(table), "t", start, end), lambda t: a <= t <= b),
        (TimeFilter(Values(table), "t", start, end, with_start=False, with_end=False), lambda t: a < t < b),
        (TimeFilter(Values(table), "t", start), lambda t: a <= t),
        (TimeFilter(Values(table), "t", end=end, with_end=False), lambda t: t < b),
    ]


@pytest.mark.parametrize("kind", sorted(MOMENTS))
def test_bounds(kind: str) -> None:
    table = random_rows(1, kind=kind, null_times=True)
    for node, holds in cases(table, kind):
        expected = [row for row in table.to_pylist() if row["t"] is not None and holds(row["t"])]
        assert 0 < len(expected) < table.num_rows
        assert_same(answer(node), sorted(expected, key=lambda row: row["seq"]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("us"), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        (pa.timestamp("us"), "soon"),
        (pa.timestamp("us"), 5),
        (pa.date32(), dt.datetime(2026, 1, 1)),
        (pa.date32(), "2026-01-01 10:00"),
        (pa.int32(), 1 << 40),
        (pa.int32(), True),
        (pa.int64(), "5"),
        (pa.int64(), None),
    ],
)
def test_moments_that_are_none(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(InputError, match="`when` is"):
        moment("when", value, pa.field("t", kind))


def test_spark_says_the_same(spark: SparkSession) -> None:
    table = random_rows(1, kind="zoned", null_times=True)
    rows = spark.createDataFrame(table)
    for node, _ in cases(table, "zoned")[:2]:
        assert_same(node.frame(rows).toArrow().sort_by("seq").to_pylist(), answer(node))
