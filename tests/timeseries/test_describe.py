"""describe: counts, moments and quartiles of each column."""

from __future__ import annotations

import math
import statistics

import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom
from tests.timeseries.relation_cases import relation

from headwater.timeseries.methods.statistics import StatisticsMethods
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here


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
