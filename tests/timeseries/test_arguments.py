"""Arguments that are not what they should be are typed errors, where they are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream

ROWS = pa.table({"k": ["a", "a", "b"], "t": [1, 2, 3], "v": [1.0, 2.0, 0.0]})


@pytest.fixture
def rows(tmp_path: Path) -> Stream:
    return hw.connect(tmp_path).stream(ROWS, time="t", by="k")


def test_names_as_a_list(rows: Stream) -> None:
    assert rows.select(["k", "v"]).columns == ["k", "v"]
    assert rows.drop(["k", "v"]).columns == ["t"]
    assert run_here(rows.group(["k"]).sum(["v"]).plan).sort_by("k")["v"].to_pylist() == [3.0, 0.0]
    assert rows.distinct(["k", "v"]).columns == ["k", "v"]


WRONG: dict[str, Callable[[Any], Any]] = {
    "columns": lambda s: s.select(3),
    "column": lambda s: s.drop([3]),
    "group": lambda s: s.group({"a": 1}, None),
    "by": lambda s: s.ordered("t", by=3),
    "tolerance 1.5": lambda s: s.join_asof(s, tolerance=1.5),
    "tolerance nothing": lambda s: s.join_asof(s, tolerance=""),
    "tolerance True": lambda s: s.join_asof(s, tolerance=True),
    "by of a join": lambda s: s.join_asof(s, by=3),
    "before": lambda s: s.join_range(s, before="  "),
    "alpha": lambda s: s.ema("v", alpha="x"),
    "alpha True": lambda s: s.ema("v", alpha=True),
    "span_rows": lambda s: s.ema("v", span_rows="3"),
    "other": lambda s: s.join_asof(3),
    "other without the time": lambda s: s.join_asof(pa.table({"k": ["a"]})),
    "function": lambda s: s.transform(3, schema=s.schema),
    "a condition of Arrow": lambda s: s.filter(pc.field("v") > 1),
    "a condition that is a number": lambda s: s.filter(1),
    "a column of Arrow": lambda s: s.with_columns(w=pc.field("v") + 1),
    "a selected number": lambda s: s.select(w=1),
    "an aggregate": lambda s: s.group("k").agg(w=pc.field("v")),
}


@pytest.mark.parametrize("title", WRONG)
def test_refused(rows: Stream, title: str) -> None:
    with pytest.raises(HeadwaterError) as refused:
        WRONG[title](rows)
    assert refused.value.hint


def test_expressions_are_asked_for_as_text(rows: Stream) -> None:
    wrong: Any = pc.field("v") > 1
    calls: list[Callable[[], Stream]] = [
        lambda: rows.filter(wrong),
        lambda: rows.with_columns(w=wrong),
        lambda: rows.select(w=wrong),
    ]
    for call in calls:
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.hint is not None and "Spark SQL as text" in refused.value.hint


def test_rows_at_hand_can_be_joined(rows: Stream) -> None:
    import polars as pl

    two: Any = np.int64(2)
    other = pa.table({"k": ["a", "b"], "t": [0, 0], "w": [7, 8]})
    for given in (other, other.to_pandas(), pl.from_arrow(other)):
        assert run_here(rows.join_asof(given).plan).sort_by("t")["w"].to_pylist() == [7, 7, 8]
        assert run_here(rows.join_range(given, before=2).plan).sort_by("t")["w"].to_pylist() == [7, 7]
    assert run_here(rows.join_asof(other, tolerance=two).plan).sort_by("t")["w"].to_pylist() == [7, 7, None]


def _fails(rows: pa.Table) -> pa.Table:
    return _inner(rows)


def _inner(rows: pa.Table) -> pa.Table:
    raise KeyError("price")


class _Walk:
    def __init__(self, method: str) -> None:
        self.method = method

    def _maybe(self, method: str) -> None:
        if method == self.method:
            raise ValueError("no more")

    def start(self, key: dict[str, Any]) -> dict[str, Any]:
        self._maybe("start")
        return {}

    def step(self, state: Any, batch: pa.Table) -> None:
        self._maybe("step")

    def finish(self, state: Any) -> None:
        self._maybe("finish")


RAISING: dict[str, Callable[[Stream], Stream]] = {
    "transform with _fails()": lambda s: s.transform(_fails, schema=s.schema),
    "apply with _fails()": lambda s: s.group("k").apply(_fails, schema=s.schema),
    "cogroup with": lambda s: s.group("k").cogroup(s.group("k"), lambda a, b: _fails(a), schema=s.schema),
    "with_columns w = _fails()": lambda s: s.with_columns(w=(_fails, pa.int64())),
    "_Walk.start": lambda s: s.stateful_transform(_Walk("start"), s.schema),
    "_Walk.step": lambda s: s.stateful_transform(_Walk("step"), s.schema),
    "_Walk.finish": lambda s: s.stateful_transform(_Walk("finish"), s.schema),
}


@pytest.mark.parametrize("operator", RAISING)
def test_what_a_function_raises(rows: Stream, operator: str) -> None:
    with pytest.raises(InputError, match=r"raised (KeyError: 'price'|ValueError: no more)") as refused:
        run_here(RAISING[operator](rows).plan)
    assert refused.value.code == "E1023"
    assert refused.value.message.startswith(operator)
    assert refused.value.where is not None
    where = refused.value.where.splitlines()
    assert "test_arguments.py" in where[0] and "raise " in where[-1]
    assert not any("operators" in line for line in where)


def test_what_a_function_raises_in_a_task(spark: Any, tmp_path: Path) -> None:
    stream = hw.connect(tmp_path, spark=spark).stream(ROWS, time="t", by="k")

    def broken(rows: pa.Table) -> pa.Table:
        return rows.select(["nowhere"])

    with pytest.raises(InputError, match=r"transform with broken\(\) raised KeyError") as refused:
        stream.transform(broken, schema=ROWS.schema).collect()
    assert refused.value.where is not None and "in broken" in refused.value.where
