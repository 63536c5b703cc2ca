"""Aggregates of the rows around a row, by time and by number."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, assert_close, assert_same, by_series, cutter, random_rows
from tests.timeseries.test_cumulative import aggregate

from headwater.base.errors import ExpressionError, HeadwaterError, InputError
from headwater.base.spans import span
from headwater.timeseries.frames import Frame
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.rolling import rolling_node, row_frame, time_frame
from headwater.timeseries.operators.series import OverSeries
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = {
    "n": "count(*)",
    "nx": "count(x)",
    "si": "sum(i)",
    "sx": "sum(x)",
    "sf": "sum(f)",
    "ax": "avg(x)",
    "lo": "min(f)",
    "hi": "max(i)",
    "text": "max(name)",
    "d": "sum(d)",
}


TEXTS_OF_V = {"a": "sum(v)", "mean": "avg(v)", "sd": "stddev(v)", "var": "var_pop(v)"}


def node_of(table: pa.Table, frame: Frame, texts: dict[str, str] = TEXTS, least: int = 0) -> OverSeries:
    return rolling_node(Values(table), ORDERING, texts, frame=frame, least=least, shown="rolling")


def number(time: Any) -> int | None:
    if isinstance(time, dt.datetime):
        return (time.replace(tzinfo=None) - dt.datetime(2026, 1, 1)) // dt.timedelta(microseconds=1)
    return time.toordinal() if isinstance(time, dt.date) else time


def framed(rows: list[dict[str, Any]], at: int, frame: Frame) -> list[dict[str, Any]]:
    assert frame.begin is not None
    assert frame.end is not None
    if not frame.in_time:
        return [r for k, r in enumerate(rows) if frame.begin <= k - at <= frame.end]
    here = number(rows[at]["t"])
    if here is None:
        return [r for r in rows if r["t"] is None]
    return [r for r in rows if r["t"] is not None and frame.begin <= (number(r["t"]) or 0) - here <= frame.end]


def expected(table: pa.Table, frame: Frame, texts: dict[str, str], least: int = 0) -> list[dict[str, Any]]:
    found = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            seen = framed(rows, at, frame)
            new = {}
            for name, text in texts.items():
                column = text.partition("(")[2].rstrip(")")
                enough = len([r for r in seen if column == "*" or r[column] is not None]) >= least
                new[name] = aggregate(text, seen) if enough else None
            found.append({**row, **new})
    return sorted(found, key=lambda row: row["seq"])


ROWS = [
    row_frame(1, 0, "right"),
    row_frame(4, 0, "right"),
    row_frame(3, 0, "left"),
    row_frame(3, 2, "both"),
    row_frame(25, 0, "neither"),
]


@pytest.mark.parametrize("frame", ROWS, ids=str)
def test_frames_of_rows(frame: Frame) -> None:
    table = random_rows(frame.begin or 0)
    assert_same(answer(node_of(table, frame)), expected(table, frame, TEXTS))


@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
@pytest.mark.parametrize(
    ("kind", "size", "ahead"),
    [("timestamp", "1 s 500 ms", "0s"), ("date", "3 days", "1 day"), ("whole", 5, 2), ("zoned", "250 ms", "0s")],
)
def test_frames_in_time(kind: str, size: Any, ahead: Any, closed: str) -> None:
    table = random_rows(len(closed), kind=kind)
    field = table.schema.field("t")
    frame = time_frame(span(size, field), span(ahead, field), closed)
    assert_same(answer(node_of(table, frame)), expected(table, frame, TEXTS))


@pytest.mark.parametrize("frame", [row_frame(4, 0, "right"), time_frame(1_000_000, 0, "both")], ids=str)
def test_too_few_values_give_none(frame: Frame) -> None:
    table = random_rows(5)
    assert_same(answer(node_of(table, frame, least=2)), expected(table, frame, TEXTS, least=2))


@pytest.mark.parametrize("frame", [row_frame(4, 0, "right"), time_frame(1_000_000, 0, "both")], ids=str)
def test_aggregates_may_stand_in_an_expression(frame: Frame) -> None:
    table = random_rows(6)
    texts = {"spread": "max(i) - min(i) + count(*)", "away": "i - max(i)"}
    parts = {"hi": "max(i)", "lo": "min(i)", "n": "count(*)"}

    def of(row: dict[str, Any]) -> dict[str, Any]:
        hi, lo, n = (row.pop(name) for name in parts)
        row["spread"] = None if hi is None else hi - lo + n
        row["away"] = None if row["i"] is None else row["i"] - hi
        return row

    assert_same(answer(node_of(table, frame, texts)), [of(row) for row in expected(table, frame, parts)])


def test_no_rows() -> None:
    assert answer(node_of(random_rows(1).slice(0, 0), ROWS[1])) == []


def test_long_frames_of_doubles_do_not_depend_on_cuts() -> None:
    rng = np.random.default_rng(1)
    n = 9_000
    values = rng.normal(size=n) * 10.0 ** rng.integers(-12, 12, n)
    table = pa.table({"t": np.arange(n), "s": rng.integers(0, 2, n), "v": values})
    series = table["s"].to_pylist()
    for frame in (row_frame(700, 0, "right"), time_frame(5_000, 0, "both"), row_frame(40, 0, "right")):
        node = rolling_node(Values(table), Ordering("t", ("s",)), TEXTS_OF_V, frame=frame, least=0, shown="")
        rows = run_here(node).sort_by([("t", "ascending")])
        whole, deviation = rows["a"].to_numpy(), rows["sd"].to_numpy()
        for seed in range(3):
            cut = cutter(random.Random(seed))
            again = run_here(node, pieces=cut, parts=2, budget_bytes=40_000).sort_by([("t", "ascending")])
            for name in TEXTS_OF_V:
                assert rows[name].to_numpy().tobytes() == again[name].to_numpy().tobytes()
        for at in rng.integers(0, n, 40):
            t, s = int(at), series[int(at)]
            assert frame.begin is not None
            seen = [k for k in range(t + 1) if series[k] == s]
            seen = [k for k in seen if k >= t + frame.begin] if frame.in_time else seen[frame.begin - 1 :]
            exact = math.fsum(values[seen])
            assert whole[t] == pytest.approx(exact, abs=1e-13 * np.abs(values[seen]).sum())
            if len(seen) > 1:
                assert deviation[t] == pytest.approx(np.std(values[seen], ddof=1), rel=1e-9)


def test_ties_are_no_matter_to_frames_in_time() -> None:
    table = pa.table({"t": [1, 1, 2], "v": [1, 2, 3]})
    texts = {"s": "sum(v)", "m": "max(v + 1)"}
    node = rolling_node(Values(table), Ordering("t"), texts, frame=time_frame(1, 0, "both"), least=0, shown="")
    assert run_here(node)["s"].to_pylist() == [3, 3, 6]
    for frame, more in ((row_frame(2, 0, "right"), "sum(v)"), (time_frame(1, 0, "both"), "collect_list(v)")):
        node = rolling_node(Values(table), Ordering("t"), {"a": more}, frame=frame, least=0, shown="")
        with pytest.raises(InputError, match="E1021"):
            run_here(node)


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    table = pa.table({"t": [1, 2, 3], "v": [1 << 62, 1 << 62, -5]})
    fits = rolling_node(
        Values(table), Ordering("t"), {"s": "sum(v)"}, frame=row_frame(1, 0, "right"), least=0, shown=""
    )
    assert run_here(fits)["s"].to_pylist() == table["v"].to_pylist()
    too_much = rolling_node(
        Values(table), Ordering("t"), {"s": "sum(v)"}, frame=row_frame(2, 0, "right"), least=0, shown=""
    )
    with pytest.raises(ExpressionError, match="overflow"):
        run_here(too_much)


def test_mistakes_are_told_by_the_driver() -> None:
    with pytest.raises(InputError, match="closed"):
        time_frame(1, 0, "open")
    with pytest.raises(HeadwaterError):
        assert node_of(random_rows(1), ROWS[1], {"a": "sum(nothing)"}).schema


def test_times_at_the_ends_of_their_range() -> None:
    most = (1 << 63) - 1
    table = pa.table({"t": [-most, most, most - 1], "v": [1, 2, 3]})
    node = rolling_node(
        Values(table), Ordering("t"), {"s": "sum(v)"}, frame=time_frame(10, 10, "both"), least=0, shown=""
    )
    assert run_here(node)["s"].to_pylist() == [1, 5, 5]


def test_spark_says_the_same(spark: SparkSession) -> None:
    cases = [
        ("zoned", time_frame(1_500_000, 0, "right")),
        ("date", time_frame(3, 1, "both")),
        ("whole", row_frame(4, 1, "right")),
    ]
    for kind, frame in cases:
        table = random_rows(11, rows=120, kind=kind)
        node = node_of(table, frame, least=2 if kind == "date" else 0)
        found = node.frame(spark.createDataFrame(table))
        assert found is not None
        rows = found.toArrow()
        assert rows.schema.types == node.schema.types
        # Spark adds up rows of the same time in any order.
        compare = assert_close if frame.in_time else assert_same
        compare(sorted(rows.to_pylist(), key=lambda row: row["seq"]), answer(node))
