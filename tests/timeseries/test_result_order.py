"""Collected rows are in the order of the stream, whatever tasks they come from."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.aggregate import Aggregated
from headwater.timeseries.operators.narrow import Project
from headwater.timeseries.operators.top_k import TopK, TopKOfEach
from headwater.timeseries.operators.values import Values
from headwater.timeseries.result_order import in_order, order_of
from headwater.timeseries.running import stages

ROWS = pa.table(
    {
        "s": pa.array(["b", "a", None, "a", "b", "a"]),
        "t": pa.array([2, 2, 5, 1, 1, 2]),
        "seq": pa.array([0, 2, 0, 0, 0, 1]),
        "v": pa.array([1.5, float("nan"), 0.0, -0.0, None, 7.0]),
        "tags": pa.array([[1], [2], [], None, [3], [4]], pa.list_(pa.int32())),
    }
)
_SERIES = Ordering("t", ("s",), ("seq",))


def test_by_series_time_and_tiebreak() -> None:
    found = in_order(ROWS, order_of(Values(ROWS), _SERIES))
    wanted = [(None, 5, 0), ("a", 1, 0), ("a", 2, 1), ("a", 2, 2), ("b", 1, 0), ("b", 2, 0)]
    assert [(r["s"], r["t"], r["seq"]) for r in found.to_pylist()] == wanted


@pytest.mark.parametrize("seed", range(20))
def test_equals_pythons_sort_both_ways(seed: int) -> None:
    rng = random.Random(seed)
    rows = pa.table(
        {"k": [rng.choice("abc") for _ in range(40)], "n": [rng.randrange(9) for _ in range(40)], "i": range(40)}
    )
    order = tuple((name, rng.random() < 0.5) for name in rng.sample(["k", "n"], 2))
    wanted = rows.to_pylist()
    for name, descends in reversed(order):
        wanted.sort(key=lambda row, name=name: row[name], reverse=descends)
    assert in_order(rows, order).to_pylist() == wanted


def test_operators_that_rank_keep_their_ranks() -> None:
    values = Values(ROWS)
    assert order_of(TopK(values, 3, (("v", True),)), _SERIES) == ()
    each = TopKOfEach(values, ("s",), 2, (("v", True),))
    assert order_of(each, _SERIES) == (("s", False), ("v", True))
    assert order_of(Aggregated(values, ("s", "t"), {"n": "count(*)"}), None) == (("s", False), ("t", False))
    renamed = Project(each, {"series": "`s`", "w": "v + 1"})
    assert order_of(renamed, _SERIES) == (("series", False),)


def test_without_a_time_and_beyond_nested_columns_rows_stay_as_they_come() -> None:
    values = Values(ROWS)
    assert order_of(values, None) == ()
    assert order_of(values, Ordering("t", ("s",), ("tags", "seq"))) == (("s", False), ("t", False))
    assert in_order(ROWS, ()) is ROWS


def test_every_form_that_comes_to_the_driver(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_SMALL_BYTES", 1)
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    try:
        rng = random.Random(3)
        rows = pa.table(
            {
                "s": [rng.choice("dcab") for _ in range(200)],
                "t": [rng.randrange(50) for _ in range(200)],
                "seq": rng.sample(range(200), 200),
                "v": [rng.random() for _ in range(200)],
            }
        )
        lake = hw.connect(tmp_path / "lake", spark=spark)
        lake.write("rows", rows)
        stream = lake.stream("rows", time="t", by="s", tiebreak="seq").shift("v")
        wanted = sorted((r["s"], r["t"], r["seq"]) for r in rows.to_pylist())

        def order(table: Any) -> list[Any]:
            return [(r["s"], r["t"], r["seq"]) for r in table]

        assert order(stream.collect().to_pylist()) == wanted
        assert order(stream.to_arrow().to_pylist()) == wanted
        assert order(stream.to_pandas().to_dict("records")) == wanted
        assert order(stream.to_polars().to_dicts()) == wanted
        as_they_come = order(stream.collect(sort=False).to_pylist())
        assert as_they_come != wanted
        assert sorted(as_they_come) == wanted
        top = stream.top_k(3, by="v").to_pandas()["v"].tolist()
        assert top == sorted(rows["v"].to_pylist(), reverse=True)[:3]
        assert stream.group("s").agg(n="count(*)").collect()["s"].to_pylist() == ["a", "b", "c", "d"]
        assert [part.label for part in stream.plot("v").parts] == ["a", "b", "c", "d"]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
