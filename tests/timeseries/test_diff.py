"""How much a column has changed since so many rows before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, assert_same, by_series, random_rows

from headwater.base.errors import ExpressionError
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.diff import Diff, difference_node
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"di": "i", "df": "f", "dt": "t", "dd": "d"}


def expected(table: pa.Table, n: int) -> list[dict[str, Any]]:
    found = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            other = rows[at - n] if 0 <= at - n < len(rows) else {}
            new = {}
            for name, column in COLUMNS.items():
                a, b = row[column], other.get(column)
                new[name] = None if a is None or b is None else a - b
            found.append({**row, **new})
    return sorted(found, key=lambda row: row["seq"])


@pytest.mark.parametrize("n", [1, 2, -1])
@pytest.mark.parametrize("kind", ["timestamp", "date", "whole"])
def test_diff_is_a_loop(n: int, kind: str) -> None:
    table = random_rows(n, kind=kind)
    found = answer(difference_node(Values(table), ORDERING, COLUMNS, n))
    assert_same([{k: r[k] for k in e} for r, e in zip(found, expected(table, n), strict=True)], expected(table, n))


def test_what_does_not_fit_is_an_error() -> None:
    table = pa.table({"t": [1, 2], "v": pa.array([-100, 100], pa.int8())})
    with pytest.raises(ExpressionError, match="overflow"):
        run_here(Diff(Values(table), Ordering("t"), {"w": "v"}, 1))


def test_spark_says_the_same(spark: SparkSession) -> None:
    for kind in ("zoned", "date"):
        table = random_rows(5, kind=kind)
        node = Diff(Values(table), ORDERING, {k: v for k, v in COLUMNS.items() if v != "d"}, 1)
        found = node.frame(spark.createDataFrame(table)).toArrow()
        assert found.schema.types == node.schema.types
        assert_same(sorted(found.to_pylist(), key=lambda row: row["seq"]), answer(node))


def test_nan_stays_nan() -> None:
    table = pa.table({"t": [1, 2], "v": [math.nan, 1.0]})
    assert math.isnan(run_here(Diff(Values(table), Ordering("t"), {"w": "v"}, 1))["w"][1].as_py())
