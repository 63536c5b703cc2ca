"""gramian, covariance, correlation: against sums of fractions, and Spark."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.statistics import StatisticsMethods
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ["a", "b", "c", "d"]


def rows(seed: int, *, nulls: bool) -> pa.Table:
    r = random.Random(seed)
    count = r.choice([0, 1, 2, 40])

    def column(make: Any) -> list[Any]:
        return [None if nulls and r.random() < 0.3 else make() for _ in range(count)]

    return pa.table(
        {
            "a": pa.array(column(lambda: 1e9 + r.random()), pa.float64()),
            "b": pa.array(column(lambda: r.randint(-5, 5)), pa.int32()),
            "c": pa.array(column(lambda: 4.25), pa.float64()),
            "d": pa.array(column(lambda: r.gauss(0, 1)), pa.float64()),
            "s": pa.array(["x"] * count, pa.string()),
        }
    )


def exact(table: pa.Table, kind: str, x: str, y: str, ddof: int) -> float | None:
    pairs = [
        (Fraction(a), Fraction(b))
        for a, b in zip(table[x].to_pylist(), table[y].to_pylist(), strict=True)
        if a is not None and b is not None
    ]
    if kind == "gramian":
        return float(sum(a * b for a, b in pairs))
    if len(pairs) <= ddof:
        return None
    n = len(pairs)
    ma, mb = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
    both = sum((a - ma) * (b - mb) for a, b in pairs)
    if kind == "covariance":
        return float(both / (n - ddof))
    va, vb = sum((a - ma) ** 2 for a, _ in pairs), sum((b - mb) ** 2 for _, b in pairs)
    return float(both) / math.sqrt(float(va) * float(vb)) if va and vb else math.nan


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("kind", "ddof"), [("gramian", 0), ("covariance", 1), ("covariance", 0), ("correlation", 1)])
def test_matrices(kind: str, ddof: int, seed: int, nulls: bool) -> None:
    table = rows(seed, nulls=nulls)
    stream = StatisticsMethods(Values(table))
    found = stream.covariance(ddof=ddof) if kind == "covariance" else getattr(stream, kind)()
    for cut in (lambda t: [t], CutAtRandom(seed), lambda t: [t.slice(i, 1) for i in range(t.num_rows)]):
        matrix = run_here(found.plan, pieces=cut)
        assert matrix.schema.equals(found.schema) and matrix["column"].to_pylist() == NAMES
        for x in NAMES:
            for y, value in zip(NAMES, matrix[x].to_pylist(), strict=True):
                expected = exact(table, kind, x, y, ddof)
                assert (value is None) == (expected is None)
                if expected is not None:
                    assert value == pytest.approx(expected, rel=1e-7, abs=1e-9, nan_ok=True), (x, y)


def test_broken_values_break_the_pairs_that_count_them() -> None:
    table = pa.table({"a": [1.0, math.inf, 2.0], "b": [1.0, None, 4.0], "c": [1.0, 3.0, 7.0]})
    for parts in (1, 3):
        found = run_here(
            StatisticsMethods(Values(table)).covariance().plan,
            pieces=lambda t, parts=parts: [t.slice(i, 4 - parts) for i in range(0, 3, 4 - parts)],  # type: ignore[misc]
        )
        assert np.isnan(found["a"][0].as_py()) and np.isnan(found["a"][2].as_py())
        assert found["a"][1].as_py() == pytest.approx(1.5) and found["b"][2].as_py() == pytest.approx(9.0)


def test_spark_has_the_same_values(spark: SparkSession) -> None:
    table = next(t for seed in range(20) if (t := rows(seed, nulls=True)).num_rows == 40)
    frame = spark.createDataFrame(table)
    pairs = [(x, y) for x in NAMES for y in NAMES]
    for kind, function in (("covariance", "covar_samp"), ("correlation", "corr")):
        # In ANSI mode Spark stops at a column that has one value only, dividing by its spread; here that is NaN.
        (there,) = (
            frame.selectExpr(
                *[f"{function}({x}, {y}) AS `{x}-{y}`" for x, y in pairs if kind == "covariance" or "c" not in {x, y}]
            )
            .toArrow()
            .to_pylist()
        )
        found = run_here(getattr(StatisticsMethods(Values(table)), kind)().plan)
        for x, y in pairs:
            value = found[x][NAMES.index(y)].as_py()
            if kind == "correlation" and "c" in {x, y}:
                assert math.isnan(value)
                continue
            # Spark's sums are not relative to a centre: of values around 1e9 it keeps fewer digits.
            assert value == pytest.approx(there[f"{x}-{y}"], rel=1e-4, abs=1e-6, nan_ok=True), (kind, x, y)


def test_mistakes() -> None:
    stream = StatisticsMethods(Values(pa.table({"v": [1], "s": ["a"]})))
    with pytest.raises(UnsupportedError):
        stream.gramian(["s"])
    with pytest.raises(InputError, match="population"):
        stream.covariance(ddof=2)
    with pytest.raises(InputError):
        StatisticsMethods(Values(pa.table({"column": [1]}))).correlation()
