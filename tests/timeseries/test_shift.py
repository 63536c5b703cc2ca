"""A value so many rows before or after in the series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, assert_same, by_series, random_rows

from headwater.base.errors import InputError
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.shift import Shift
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"i2": "i", "f2": "f", "n2": "name", "tags2": "tags", "t2": "t", "d": "d"}


def expected(table: pa.Table, columns: dict[str, str], n: int, fills: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            inside = 0 <= at - n < len(rows)
            new = {name: rows[at - n][c] if inside else fills.get(c) for name, c in columns.items()}
            found.append({**row, **new})
    return sorted(found, key=lambda row: row["seq"])


@pytest.mark.parametrize("n", [0, 1, 3, 70, -1, -4])
@pytest.mark.parametrize("kind", ["timestamp", "date", "whole"])
def test_shift_is_a_loop(n: int, kind: str) -> None:
    table = random_rows(n, kind=kind)
    fills = {"i": 7, "name": "none", "tags": [9]}
    node = Shift(Values(table), ORDERING, COLUMNS, n, fills)
    assert_same(answer(node), expected(table, COLUMNS, n, fills))


def test_no_rows_and_one() -> None:
    table = random_rows(1)
    for few in (table.slice(0, 0), table.slice(0, 1)):
        assert_same(answer(Shift(Values(few), ORDERING, COLUMNS, 1, {})), expected(few, COLUMNS, 1, {}))


def test_rows_that_nothing_orders_are_refused() -> None:
    table = pa.table({"t": [1, 1], "v": [1, 2]})
    with pytest.raises(InputError, match="E1021"):
        run_here(Shift(Values(table), Ordering("t"), {"w": "v"}, 1, {}))


def test_other_columns_of_any_type_pass_by() -> None:
    odd = pa.array([{"a": [1]}, None], pa.struct([("a", pa.list_(pa.int8()))]))
    table = pa.table(
        {
            "t": [2, 1],
            "odd": odd,
            "code": pa.array(["x", "y"]).dictionary_encode(),
            **{f"c{k}": [1, 2] for k in range(300)},
        }
    )
    found = run_here(Shift(Values(table), Ordering("t"), {"before": "odd", "code2": "code"}, 1, {}))
    assert found.select(table.column_names).equals(table.take([1, 0]))
    assert found["before"].to_pylist() == [None, None]
    assert found["code2"].to_pylist() == [None, "y"]


def test_spark_says_the_same(spark: SparkSession) -> None:
    for n, fills in ((2, {}), (-1, {"i": 7, "name": "none"})):
        table = random_rows(n, kind="zoned")
        node = Shift(Values(table), ORDERING, COLUMNS, n, fills)
        found = node.frame(spark.createDataFrame(table)).toArrow().to_pylist()
        assert_same(sorted(found, key=lambda row: row["seq"]), answer(node))
