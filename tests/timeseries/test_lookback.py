"""The features of the rows before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, assert_same, by_series, random_rows

from headwater.timeseries.operators.lookback import Lookback
from headwater.timeseries.operators.values import Values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("size", [1, 3, 80])
def test_lists_are_a_loop(size: int, exact: bool) -> None:
    table = random_rows(size)
    node = Lookback(Values(table), ORDERING, ("x", "i"), size, "features", exact)
    assert node.schema.field("features").type == pa.list_(pa.list_(pa.float64()))
    expected = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            seen = rows[max(0, at - size) : at]
            if not exact or len(seen) == size:
                lists = [[r["x"], None if r["i"] is None else float(r["i"])] for r in seen]
                expected.append({**row, "features": lists})
    assert_same(answer(node), sorted(expected, key=lambda row: row["seq"]))


def test_whole_numbers_stay_whole_and_no_rows_are_none() -> None:
    table = random_rows(2)
    node = Lookback(Values(table), ORDERING, ("i",), 2, "f")
    assert node.schema.field("f").type == pa.list_(pa.list_(pa.int64()))
    assert answer(Lookback(Values(table.slice(0, 0)), ORDERING, ("i",), 2, "f")) == []


def test_spark_says_the_same(spark: SparkSession) -> None:
    table = random_rows(7, kind="zoned")
    for exact in (False, True):
        node = Lookback(Values(table), ORDERING, ("x", "i"), 3, "features", exact)
        found = node.frame(spark.createDataFrame(table)).toArrow().sort_by("seq").to_pylist()
        assert_same(found, answer(node))
