"""quantiles and median: types, nulls, NaN; and how they compare with Spark's."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import everywhere, relation

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.statistics import StatisticsMethods
from headwater.timeseries.operators.quantiles import Quantiles
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBABILITIES = [0.0, 0.1, 0.5, 0.9, 1.0]


def exact(values: list[Any], p: float) -> Any:
    there = sorted(v for v in values if v is not None and v == v)
    return there[max(1, math.ceil(p * len(there))) - 1] if there else None


@pytest.mark.parametrize("seed", range(6))
def test_few_rows_are_exact_and_keep_their_types(seed: int) -> None:
    table = relation(seed)
    names = ["n", "f", "v", "d", "t"]
    node = StatisticsMethods(Values(table)).quantiles(names, probabilities=PROBABILITIES).plan
    everywhere(node, seed)
    found = run_here(node)
    assert [found.schema.field(n).type for n in names] == [table.schema.field(n).type for n in names]
    for name in names:
        assert found[name].to_pylist() == [exact(table[name].to_pylist(), p) for p in PROBABILITIES], name


def test_types() -> None:
    table = pa.table(
        {
            "f32": pa.array([-1.5, -0.0, 0.1, math.inf, None, math.nan], pa.float32()),
            "i8": pa.array([-128, 127, 0, None, 5, 5], pa.int8()),
            "u32": pa.array([2**32 - 1, 0, 1, None, 3, 3], pa.uint32()),
            "d32": pa.array([dt.date(1960, 1, 1), dt.date(2020, 2, 29), None, None, None, None]),
            "dec": pa.array(
                [Decimal("-1.25"), Decimal("3.50"), Decimal("0.00"), None, None, None], pa.decimal128(18, 2)
            ),
            "dur": pa.array([5, -5, None, None, None, None], pa.duration("ms")),
            "none": pa.array([None] * 6, pa.float64()),
        }
    )
    found = run_here(StatisticsMethods(Values(table)).quantiles(table.column_names, probabilities=[0.25, 0.5, 1]).plan)
    for name in table.column_names:
        kind = table.schema.field(name).type
        assert found.schema.field(name).type == kind
        assert found[name].to_pylist() == [exact(table[name].to_pylist(), p) for p in (0.25, 0.5, 1)], name


def test_thousands_of_columns() -> None:
    random = np.random.default_rng(0)
    table = pa.table({f"c{i}": random.normal(i, 1, 300) for i in range(2000)})
    found = run_here(StatisticsMethods(Values(table)).median(error=0.05).plan)
    assert found.num_rows == 1 and found.num_columns == 2000
    for i in (0, 999, 1999):
        assert found[f"c{i}"][0].as_py() == exact(table[f"c{i}"].to_pylist(), 0.5)


def test_ranks_are_as_near_as_sparks(spark: SparkSession) -> None:
    random = np.random.default_rng(5)
    table = pa.table({"a": random.normal(size=50_000), "b": np.round(random.exponential(size=50_000), 1)})
    table = table.append_column("c", pa.array(random.random(50_000), mask=random.random(50_000) < 0.1))
    names = ["a", "b", "c"]
    there = spark.createDataFrame(table).approxQuantile(names, PROBABILITIES, 0.01)
    node = StatisticsMethods(Values(table)).quantiles(names, probabilities=PROBABILITIES, error=0.01).plan
    ours = run_here(node, pieces=lambda t: [t.slice(i, 9000) for i in range(0, t.num_rows, 9000)])
    for name, spark_found in zip(names, there, strict=True):
        values = np.sort(np.asarray(table[name].drop_null()))
        n = len(values)
        for p, mine, theirs in zip(PROBABILITIES, ours[name].to_pylist(), spark_found, strict=True):
            for value, allowed in ((mine, 0.01), (theirs, 0.0101)):
                first, last = np.searchsorted(values, value), np.searchsorted(values, value, "right")
                assert first / n - allowed <= p <= last / n + allowed, (name, p)


def test_mistakes() -> None:
    stream = StatisticsMethods(Values(pa.table({"v": [1], "s": ["a"], "w": pa.array([1], pa.decimal128(30, 2))})))
    with pytest.raises(InputError, match="between 0 and 1"):
        stream.quantiles("v", probabilities=[1.5])
    with pytest.raises(InputError, match="between 0 and 1"):
        stream.quantiles("v", probabilities=[])
    with pytest.raises(InputError, match="a share"):
        stream.quantiles("v", error=-0.1)
    for name in ("s", "w"):
        with pytest.raises(UnsupportedError):
            stream.quantiles(name)
    with pytest.raises(InputError, match="at least one column of numbers"):
        StatisticsMethods(Values(pa.table({"s": ["a"]}))).quantiles()
    with pytest.raises(InputError):
        StatisticsMethods(Values(pa.table({"probability": [1]}))).quantiles()
    assert isinstance(stream.quantiles().plan, Quantiles) and stream.quantiles().columns == ["probability", "v"]
