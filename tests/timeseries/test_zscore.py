"""Distances from the mean in standard deviations."""

from __future__ import annotations

import random
import statistics
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, assert_close, by_series, cutter, random_rows
from tests.timeseries.test_rolling import framed

from headwater.timeseries.frames import Frame
from headwater.timeseries.operators.rolling import row_frame, time_frame
from headwater.timeseries.operators.series import OverSeries, Windowed
from headwater.timeseries.operators.values import Values
from headwater.timeseries.operators.zscore import zscore_node
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMES = [Frame(None, None), row_frame(4, 0, "right"), time_frame(1_000_000, 0, "both")]


def score(rows: list[dict[str, Any]], value: float | None) -> float | None:
    values = [r["x"] for r in rows if r["x"] is not None]
    if value is None or len(values) < 2 or statistics.stdev(values) == 0:
        return None
    return float((value - statistics.fmean(values)) / statistics.stdev(values))


@pytest.mark.parametrize("frame", FRAMES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_a_loop(frame: Frame, seed: int) -> None:
    table = random_rows(seed)
    node = zscore_node(Values(table), ORDERING, {"z": "x"}, frame=frame)
    expected = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            seen = rows if frame.begin is None else framed(rows, at, frame)
            expected.append({"seq": row["seq"], "z": score(seen, row["x"])})
    expected.sort(key=lambda row: row["seq"])
    for parts, budget in ((1, 1 << 28), (3, 700)):
        found = run_here(node, pieces=cutter(random.Random(seed)), parts=parts, budget_bytes=budget)
        assert_close(found.select(["seq", "z"]).sort_by("seq").to_pylist(), expected)


def test_nothing_varies() -> None:
    table = random_rows(1).slice(0, 6)
    same = table.set_column(table.schema.get_field_index("x"), "x", pa.array([2.5] * 6))
    found = run_here(zscore_node(Values(same), ORDERING, {"z": "x"}, frame=FRAMES[0]))
    assert set(found["z"].to_pylist()) == {None}


def test_spark_says_the_same(spark: SparkSession) -> None:
    table = random_rows(6, kind="zoned")
    columns: dict[str, Windowed] = {}
    for number, frame in enumerate(FRAMES):
        columns |= zscore_node(Values(table), ORDERING, {f"z{number}": "x"}, frame=frame, least=2).columns
    node = OverSeries(Values(table), ORDERING, columns, "zscore")
    rows = node.frame(spark.createDataFrame(table))
    assert rows is not None
    assert_close(rows.toArrow().sort_by("seq").to_pylist(), run_here(node).sort_by("seq").to_pylist())
