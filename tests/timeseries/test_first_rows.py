"""The first and last rows of each series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, assert_same, by_series, random_rows

from headwater.base.errors import InputError
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.first_rows import FirstRows
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("latest", [False, True])
@pytest.mark.parametrize("n", [1, 3, 25, 100])
def test_slices(n: int, latest: bool) -> None:
    table = random_rows(n)
    expected = [row for rows in by_series(table).values() for row in (rows[-n:] if latest else rows[:n])]
    found = answer(FirstRows(Values(table), ORDERING, n, latest), n)
    assert_same(found, sorted(expected, key=lambda row: row["seq"]))


def test_many_chunks() -> None:
    table = pa.table({"t": range(9_000)})
    for latest, expected in ((False, range(5)), (True, range(8_995, 9_000))):
        found = run_here(
            FirstRows(Values(table), Ordering("t"), 5, latest),
            pieces=lambda whole: [whole.slice(k, 500) for k in range(0, whole.num_rows, 500)],
            budget_bytes=20_000,
        )
        assert found["t"].to_pylist() == list(expected)


@pytest.mark.parametrize("latest", [False, True])
def test_ties_matter_only_at_the_edge(latest: bool) -> None:
    table = pa.table({"s": ["a"] * 4, "t": [1, 1, 2, 2], "v": [1, 2, 3, 4]})
    assert run_here(FirstRows(Values(table), Ordering("t", ("s",)), 2, latest)).num_rows == 2
    assert run_here(FirstRows(Values(table), Ordering("t", ("s",)), 4, latest)).num_rows == 4
    for n in (1, 3):
        with pytest.raises(InputError, match="E1021"):
            run_here(FirstRows(Values(table), Ordering("t", ("s",)), n, latest))


def test_spark_says_the_same(spark: SparkSession) -> None:
    table = random_rows(7, kind="zoned")
    for latest in (False, True):
        node = FirstRows(Values(table), ORDERING, 3, latest)
        assert_same(node.frame(spark.createDataFrame(table)).toArrow().sort_by("seq").to_pylist(), answer(node))
