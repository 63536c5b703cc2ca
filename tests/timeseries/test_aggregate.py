"""group().agg, agg, distinct, count_distinct: against sums by hand, and Spark."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import bag, bag_of, everywhere, relation

from headwater.base.errors import HeadwaterError, InputError, NotFoundError, UnsupportedError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.operators.aggregate import Aggregated
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def key(value: Any) -> Any:
    return "nan" if value != value else value + 0.0 if isinstance(value, float) else value


def small(table: pa.Table) -> pa.Table:
    """Without sums that overflow."""
    return table.drop_columns(["v"])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("keys", [["k"], ["f"], ["k", "n"], []], ids=lambda keys: "-".join(keys) or "all")
def test_aggregates_of_groups(keys: list[str], seed: int) -> None:
    table = small(relation(seed))
    node = (
        RelationalMethods(Values(table))
        .group(*keys)
        .agg(rows="count(*)", there="count(n)", total="sum(n) + 0", most="max(t)", different="count(DISTINCT d)")
        .plan
    )
    groups: dict[Any, list[Any]] = defaultdict(list)
    if not keys:
        groups[()] = []
    for row in table.to_pylist():
        groups[tuple(key(row[k]) for k in keys)].append(row)
    expected = []
    for rows in groups.values():
        numbers = [r["n"] for r in rows if r["n"] is not None]
        times = [r["t"] for r in rows if r["t"] is not None]
        expected.append(
            {
                **({k: rows[0][k] for k in keys} if keys else {}),
                "rows": len(rows),
                "there": len(numbers),
                "total": sum(numbers) if numbers else None,
                "most": max(times, default=None),
                "different": len({r["d"] for r in rows} - {None}),
            }
        )
    assert everywhere(node, seed) == bag_of(expected)


@pytest.mark.parametrize("seed", range(4))
def test_distinct(seed: int) -> None:
    table = relation(seed)
    stream = RelationalMethods(Values(table))
    for keys in (["f"], ["k", "n"], []):
        names = keys or table.column_names
        found = everywhere(stream.distinct(*keys).plan, seed)
        assert set(found.values()) <= {1}
        assert set(found) == set(bag(table.select(names)))
    values = {row["f"] for row in table.to_pylist() if row["f"] is not None and row["f"] == row["f"]}
    nan = any(row["f"] is not None and row["f"] != row["f"] for row in table.to_pylist())
    (count,) = run_here(stream.count_distinct("f").plan).to_pylist()
    assert count == {"count": len(values) + nan}


def test_shortcuts() -> None:
    stream = RelationalMethods(Values(pa.table({"k": ["a", "a", None], "v": [1, 2, None]})))
    assert run_here(stream.sum("v").plan).to_pylist() == [{"v": 3}]
    assert run_here(stream.min("V").plan).to_pylist() == [{"v": 1}]
    assert run_here(stream.mean("v").plan).to_pylist() == [{"v": 1.5}]
    assert run_here(stream.group().count().plan).to_pylist() == [{"count": 3}]
    assert run_here(stream.group("k").max("v").plan).sort_by("v").to_pylist() == [
        {"k": "a", "v": 2},
        {"k": None, "v": None},
    ]


def test_a_group_larger_than_the_budget_streams() -> None:
    table = pa.table({"k": [0] * 20_000, "v": range(20_000)})
    node = RelationalMethods(Values(table)).group("k").sum("v").plan
    assert isinstance(node, Aggregated) and node.text.once
    found = run_here(node, pieces=lambda t: [t.slice(0, 7000), t.slice(7000)], budget_bytes=1_000)
    assert found["v"].to_pylist() == [sum(range(20_000))]


def test_overflow_is_an_error() -> None:
    node = RelationalMethods(Values(pa.table({"v": [2**63 - 1, 1]}))).sum("v").plan
    with pytest.raises(HeadwaterError):
        run_here(node)


def test_spark_has_the_same_rows(spark: SparkSession) -> None:
    table = small(relation(3, rows=80))
    frame = spark.createDataFrame(table)
    stream = RelationalMethods(Values(table))
    aggregates = {
        "rows": "count(*)",
        "low": "min(f)",
        "high": "max(f)",
        "mean": "avg(n)",
        "total": "sum(d)",
        "share": "sum(n) / count(*)",
        "some": "bool_or(b)",
        "spread": "stddev(n)",
    }
    for node in (
        stream.group("k").agg(aggregates).plan,
        stream.group("f", "b").agg(aggregates).plan,
        stream.agg(aggregates).plan,
        stream.distinct("f", "k").plan,
        stream.distinct().plan,
    ):
        assert isinstance(node, Aggregated)
        there = node.frame(frame).toArrow()
        assert bag(there, 12) == bag(run_here(node, parts=2), 12), node.line()
        assert there.schema.types == node.schema.types


def test_mistakes() -> None:
    stream = RelationalMethods(Values(pa.table({"k": [1], "v": [1], "l": [[1]]})))
    with pytest.raises(NotFoundError):
        stream.group("x")
    with pytest.raises(InputError):
        stream.group("k").agg()
    with pytest.raises(InputError):
        stream.group("k").agg(K="count(*)")
    with pytest.raises(HeadwaterError):
        stream.group("k").agg(x="v")
    for text in ("v", "1", "sum(v) OVER ()", "sum(sum(v)) OVER ()", "(SELECT max(v) FROM rows)"):
        with pytest.raises(HeadwaterError):
            stream.agg(x=text)
    with pytest.raises(UnsupportedError, match=r"say by what: min_by\(value, time\)"):
        stream.group("k").agg(x="first(v)")
    with pytest.raises(HeadwaterError):
        stream.distinct()
