"""Aggregates of the rows so far."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, assert_same, by_series, random_rows

from headwater.base.errors import ExpressionError, HeadwaterError, InputError
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.cumulative import Running, cumulative_node
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = {
    "n": "count(*)",
    "ni": "count(i)",
    "si": "sum(i)",
    "sx": "sum(x)",
    "sf": "sum(f)",
    "ax": "avg(x)",
    "ai": "mean(`i`)",
    "lo": "min(f)",
    "hi": "max(f)",
    "late": "MAX( t )",
    "px": "product(x)",
    "sd": "stddev(x)",
    "sp": "stddev_pop(f)",
    "vs": "variance(i)",
    "vp": "var_pop(x)",
    "i": "min(i)",
}
OTHERS = {"text": "max(name)", "sd": "sum(d)", "list": "collect_list(i)", "twice": "sum(x * 2)", "n": "count(*)"}


def present(rows: list[dict[str, Any]], column: str) -> list[Any]:
    return [r[column] for r in rows if r[column] is not None]


def greatness(value: Any) -> Any:
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def total(values: list[Any]) -> Any:
    found: Any = 0
    for v in values:
        found = found + v
    return found if values else None


SPREADS = {"stddev": 1, "stddev_pop": 0, "variance": 1, "var_pop": 0}


def spread(function: str, values: list[float]) -> float | None:
    mean = squares = 0.0
    for n, value in enumerate(values, 1):
        delta = value - mean
        mean += delta / n
        squares += delta * (delta - delta / n)
    left = len(values) - SPREADS[function]
    if left < 1:
        return None
    return math.sqrt(squares / left) if function.startswith("std") else squares / left


def aggregate(text: str, rows: list[dict[str, Any]]) -> Any:
    function, _, column = text.lower().replace("`", "").replace(" ", "").rstrip(")").partition("(")
    if column == "*":
        return len(rows)
    values = present(rows, column)
    if function == "count":
        return len(values)
    if function == "collect_list":
        return values
    if not values:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=greatness)
    if function == "product":
        return math.prod(map(float, values))
    if function in SPREADS:
        return spread(function, list(map(float, values)))
    if function in ("avg", "mean"):
        return total([0.0, *map(float, values)]) / len(values)
    return total([0.0, *values]) if isinstance(values[0], float) else total(values)


def expected(table: pa.Table, texts: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for rows in by_series(table).values():
        for at, row in enumerate(rows):
            so_far = rows[: at + 1]
            found.append({**row, **{name: aggregate(text, so_far) for name, text in texts.items()}})
    return sorted(found, key=lambda row: row["seq"])


@pytest.mark.parametrize("kind", ["timestamp", "date", "whole"])
@pytest.mark.parametrize("seed", range(4))
def test_plain_aggregates_are_a_loop(seed: int, kind: str) -> None:
    table = random_rows(seed, kind=kind)
    node = cumulative_node(Values(table), ORDERING, TEXTS)
    assert isinstance(node, Running)
    assert_same(answer(node, seed), expected(table, TEXTS))


def test_any_aggregate() -> None:
    table = random_rows(9)
    node = cumulative_node(Values(table), ORDERING, OTHERS)
    assert node.schema.names == [*table.column_names, *OTHERS]
    found = answer(node)
    for row, wanted in zip(found, expected(table, {k: t for k, t in OTHERS.items() if k != "twice"}), strict=True):
        assert {k: row[k] for k in wanted} | {"f": 0} == wanted | {"f": 0}


def test_few_rows() -> None:
    table = random_rows(3)
    for few in (table.slice(0, 0), table.slice(0, 1)):
        assert_same(answer(cumulative_node(Values(few), ORDERING, TEXTS)), expected(few, TEXTS))


@pytest.mark.parametrize("values", [[1 << 62, 1 << 62], [-(1 << 63), -1]])
def test_a_sum_that_does_not_fit_is_an_error(values: list[int]) -> None:
    table = pa.table({"t": [1, 2], "v": values})
    for cut in (None, lambda whole: [whole.slice(0, 1), whole.slice(1)]):
        with pytest.raises(ExpressionError, match="overflow"):
            run_here(cumulative_node(Values(table), Ordering("t"), {"s": "sum(v)"}), pieces=cut, budget_bytes=8)


def test_large_sums_that_fit() -> None:
    top = (1 << 63) - 1
    table = pa.table({"t": [1, 2, 3], "v": [top, -top, top]})
    assert run_here(cumulative_node(Values(table), Ordering("t"), {"s": "sum(v)"}))["s"].to_pylist() == [top, 0, top]


def test_mistakes_are_told_by_the_driver() -> None:
    for text in ("sum(nothing)", "sum(", "product(x * 2)"):
        with pytest.raises(HeadwaterError):
            assert cumulative_node(Values(random_rows(1)), ORDERING, {"a": text}).schema


def test_rows_that_nothing_orders_are_refused() -> None:
    table = pa.table({"t": [1, 1], "v": [1, 2]})
    with pytest.raises(InputError, match="E1021"):
        run_here(cumulative_node(Values(table), Ordering("t"), {"w": "sum(v)"}))


def test_spark_says_the_same(spark: SparkSession) -> None:
    table = random_rows(11, rows=120, kind="zoned")
    node = cumulative_node(Values(table), ORDERING, TEXTS)
    frame = node.frame(spark.createDataFrame(table))
    assert frame is not None
    found = frame.toArrow()
    assert found.schema.types == node.schema.types
    assert_same(sorted(found.to_pylist(), key=lambda row: row["seq"]), answer(node))
