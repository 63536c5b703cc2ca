"""group().apply: a function on each group."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import bag_of, everywhere, relation

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.methods.relational import RelationalMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

SCHEMA = {"k": pa.string(), "rows": pa.int64(), "total": pa.int64()}


def summary(key: tuple[Any, ...], rows: pa.Table) -> dict[str, list[Any]]:
    return {"k": [key[0]], "rows": [rows.num_rows], "total": [sum(v for v in rows["n"].to_pylist() if v is not None)]}


@pytest.mark.parametrize("seed", range(4))
def test_each_group_is_there_as_a_whole(seed: int) -> None:
    table = relation(seed)
    node = RelationalMethods(Values(table)).group("k").apply(summary, schema=SCHEMA).plan
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in table.to_pylist():
        groups[row["k"]].append(row["n"])
    expected = [{"k": k, "rows": len(v), "total": sum(n for n in v if n is not None)} for k, v in groups.items()]
    assert everywhere(node, seed) == bag_of(expected)


def test_nan_and_null_are_keys() -> None:
    table = pa.table({"f": [float("nan"), None, 0.0, -0.0, float("nan"), None]})
    node = (
        RelationalMethods(Values(table)).group("f").apply(lambda t: {"rows": [t.num_rows]}, schema={"rows": pa.int64()})
    )
    assert everywhere(node.plan, 0) == bag_of([{"rows": 2}] * 3)


def test_rows_come_by_time_where_there_is_one() -> None:
    table = pa.table({"k": [1, 1, 2, 1], "t": [3, 1, 5, 2], "seq": [0, 0, 0, 0]})
    stream = RelationalMethods(Values(table), Ordering("t", ("k",), ("seq",)))
    node = stream.group("k").apply(lambda t: {"t": [t["t"].to_pylist()]}, schema={"t": pa.list_(pa.int64())}).plan
    assert everywhere(node, 0) == bag_of([{"t": [1, 2, 3]}, {"t": [5]}])


@pytest.mark.parametrize("batch", ["polars", "pandas"])
def test_other_batches(batch: str) -> None:
    stream = RelationalMethods(Values(pa.table({"k": [1, 1, 2]})))
    found = run_here(stream.group("k").apply(lambda t: t.head(1), schema={"k": pa.int64()}, batch=batch).plan)
    assert found["k"].to_pylist() == [1, 2]


def test_mistakes() -> None:
    stream = RelationalMethods(Values(pa.table({"k": [1], "l": [[1]]})))
    with pytest.raises(UnsupportedError):
        stream.group("l").apply(summary, schema=SCHEMA)
    with pytest.raises(InputError):
        stream.group("k").apply(summary, schema=5)
