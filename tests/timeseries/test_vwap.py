"""Volume-weighted average prices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, assert_close, by_series, random_rows
from tests.timeseries.test_rolling import framed, number

from headwater.timeseries.operators.rolling import row_frame, time_frame
from headwater.timeseries.operators.values import Values
from headwater.timeseries.operators.vwap import Vwap, VwapWindows
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sums(rows: list[dict[str, Any]]) -> tuple[float, float]:
    both = [(r["x"], float(r["d"])) for r in rows if r["x"] is not None and r["d"] is not None]
    return math.fsum(p * v for p, v in both), math.fsum(v for _, v in both)


def price(rows: list[dict[str, Any]]) -> float | None:
    paid, bought = sums(rows)
    return None if bought == 0 else paid / bought


@pytest.mark.parametrize("frame", [None, row_frame(3, 0, "right"), time_frame(1_000_000, 0, "both")], ids=str)
def test_beside_each_row(frame: Any) -> None:
    table = random_rows(3)
    positive = [None if v is None else abs(v) for v in table["d"].to_pylist()]
    table = table.set_column(table.schema.get_field_index("d"), "d", pa.array(positive, pa.decimal128(10, 2)))
    found = answer(Vwap(Values(table), ORDERING, "x", "d", "vwap", frame))
    expected = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            expected.append({**row, "vwap": price(rows[: at + 1] if frame is None else framed(rows, at, frame))})
    assert_close(found, sorted(expected, key=lambda row: row["seq"]))


@pytest.mark.parametrize(("kind", "every"), [("timestamp", 750_000), ("date", 4), ("whole", 7)])
def test_by_windows(kind: str, every: int) -> None:
    table = random_rows(4, kind=kind)
    found = answer(VwapWindows(Values(table), ORDERING, "x", "i", every), by="")
    groups: dict[Any, list[dict[str, Any]]] = {}
    offset = 1_767_225_600_000_000 if kind == "timestamp" else -719_163 if kind == "date" else 0
    for row in table.to_pylist():
        time = number(row["t"])
        if time is not None:
            groups.setdefault((row["s"], (time + offset) // every), []).append(row)
    mine = {(row["s"], ((number(row["t"]) or 0) + offset) // every): row for row in found}
    assert mine.keys() == groups.keys()
    for key, rows in groups.items():
        assert ((number(mine[key]["t"]) or 0) + offset) % every == 0
        both = [(r["x"], r["i"]) for r in rows if r["x"] is not None and r["i"] is not None]
        assert mine[key]["value"] == pytest.approx(math.fsum(p * v for p, v in both))
        assert mine[key]["volume"] == sum(v for _, v in both)


def test_no_rows() -> None:
    table = random_rows(1).slice(0, 0)
    assert run_here(Vwap(Values(table), ORDERING, "x", "i", "vwap")).num_rows == 0
    assert run_here(VwapWindows(Values(table), ORDERING, "x", "i", 10)).num_rows == 0


def test_spark_says_the_same(spark: SparkSession) -> None:
    for kind, every, frame in (("zoned", 750_000, None), ("date", 4, time_frame(3, 0, "both"))):
        table = random_rows(5, kind=kind, nulls=False)
        rows = spark.createDataFrame(table)
        running = Vwap(Values(table), ORDERING, "x", "i", "vwap", frame)
        assert_close(running.frame(rows).toArrow().sort_by("seq").to_pylist(), answer(running))
        windows = VwapWindows(Values(table), ORDERING, "x", "i", every)
        order = [("s", "ascending"), ("t", "ascending")]
        own = windows.frame(rows)
        assert own is not None
        found = own.toArrow()
        assert found.schema.types == windows.schema.types
        assert_close(found.sort_by(order).to_pylist(), run_here(windows).sort_by(order).to_pylist())
