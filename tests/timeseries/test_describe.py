"""describe: counts, moments and quartiles of each column."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom
from tests.timeseries.relation_cases import relation
from tests.timeseries.series_cases import TIMES, answer, by_series, random_rows

from headwater.timeseries.methods.statistics import StatisticsMethods
from headwater.timeseries.operators.describe_series import SERIES_NAMES
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream


@pytest.mark.parametrize("seed", range(6))
def test_a_row_about_each_column(seed: int) -> None:
    table = relation(seed).append_column("l", pa.array([[1]] * relation(seed).num_rows, pa.list_(pa.int8())))
    # Infinite values have no mean, and 1e300 no square.
    table = table.set_column(
        2,
        "f",
        pa.array([v if v is None or abs(v) < 5 or v != v else 7.5 for v in table["f"].to_pylist()], pa.float64()),
    )
    stream = StatisticsMethods(Values(table)).describe()
    for cut in (None, CutAtRandom(seed)):
        found = run_here(stream.plan, pieces=cut)
        assert found.schema.equals(stream.schema)
        for row in found.to_pylist():
            values = table[row["column"]].to_pylist()
            there = [v for v in values if v is not None and v == v]
            assert row["count"] == len(there)
            assert row["nulls"] == values.count(None)
            assert row["nans"] == len(values) - len(there) - row["nulls"]
            numbers = row["column"] in {"n", "f", "v", "d"} and there
            if not numbers:
                assert [row[n] for n in ("mean", "stddev", "min", "p50", "max")] == [None] * 5
                continue
            floats = [float(v) for v in there]
            assert row["mean"] == pytest.approx(math.fsum(floats) / len(floats), rel=1e-9, abs=1e-9)
            assert (row["min"], row["max"]) == (min(floats), max(floats))
            assert row["p50"] == sorted(floats)[max(1, math.ceil(len(floats) / 2)) - 1]
            if len(floats) > 1:
                assert row["stddev"] == pytest.approx(statistics.stdev(floats), rel=1e-9, abs=1e-12)
            else:
                assert row["stddev"] is None


def test_large_values_that_are_close_together() -> None:
    table = pa.table({"v": [1e15 + i for i in range(4)]})
    (row,) = run_here(
        StatisticsMethods(Values(table)).describe("v").plan, pieces=lambda t: [t.slice(i, 1) for i in range(4)]
    ).to_pylist()
    assert row["stddev"] == pytest.approx(statistics.stdev(range(4)))


@pytest.mark.parametrize("kind", TIMES)
def test_the_time_of_a_stream(kind: str) -> None:
    table = random_rows(4, kind=kind, null_times=True)
    stream = Stream(Values(table)).ordered("t", by="s", tiebreak="seq")
    for cut in (None, CutAtRandom(1)):
        about = {row["column"]: row for row in run_here(stream.describe().plan, pieces=cut).to_pylist()}
        times = [t for t in table["t"].to_pylist() if t is not None]
        row = about["t"]
        assert (row["count"], row["nulls"]) == (len(times), table["t"].null_count)
        ends = pa.array([min(times), max(times)], table.schema.field("t").type).cast(pa.string()).to_pylist()
        assert [row["first"], row["last"]] == ends
        series: dict[object, int] = {}
        for key in table["s"].to_pylist():
            series[key] = series.get(key, 0) + 1
        found = (row["series"], row["fewest_rows"], row["most_rows"])
        assert found == (len(series), min(series.values()), max(series.values()))
        assert about["x"]["first"] is None
        assert about["x"]["series"] is None


def test_no_rows_and_no_keys() -> None:
    rows = pa.table({"t": pa.array([3, 1], pa.int64()), "d": pa.array([5, None], pa.date32())})
    stream = Stream(Values(rows)).ordered("t")
    time, other = run_here(stream.describe().plan).to_pylist()
    assert (time["first"], time["last"], time["series"], time["most_rows"]) == ("1", "3", 1, 2)
    assert (time["min"], time["mean"]) == (1.0, 2.0)
    assert (other["first"], other["last"], other["series"]) == ("1970-01-06", "1970-01-06", None)
    time, _ = run_here(Stream(Values(rows.slice(0, 0))).ordered("t").describe().plan).to_pylist()
    assert (time["first"], time["series"], time["count"]) == (None, 0, 0)


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("seed", range(3))
def test_each_series(kind: str, seed: int) -> None:
    table = random_rows(seed, kind=kind)
    stream = Stream(Values(table)).ordered("t", by="s", tiebreak="seq").describe_series()
    assert stream.ordering is not None
    found = {row["s"]: row for row in answer(stream.plan, by="")}
    wanted = {}
    for (key,), rows in by_series(table).items():
        times = [row["t"] for row in rows]
        gaps = [b - a for a, b in pairwise(times)]
        if kind == "date":
            gaps = [gap.days for gap in gaps]
        ends = (min(gaps), max(gaps)) if gaps else (None, None)
        wanted[key] = dict(zip(("s", *SERIES_NAMES), (key, len(rows), times[0], times[-1], *ends), strict=True))
    assert found == wanted
