"""Sources are asked for what is needed, and no more; the rows are the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import InputError
from headwater.timeseries.node import Node
from headwater.timeseries.operators.asof import AsOf
from headwater.timeseries.running.here import run_here
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.stream import Stream


def _sources(node: Node) -> list[DeltaSource]:
    return [node] if isinstance(node, DeltaSource) else [s for below in node.inputs for s in _sources(below)]


def _lake(folder: Path) -> hw.Lake:
    lake = hw.connect(folder)
    for start in (0, 100):
        rows = {n: list(range(start, start + 100)) for n in ("t", "k", "a", "b", "c", "d")}
        lake.write("wide", pa.table(rows))
    return lake


def test_columns_that_nobody_reads_are_not_read(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    wide = lake.stream("wide", time="t", by="k")
    picked = narrowed(wide.filter("a > 3").select("t", "b", twice="b * 2").plan)
    assert [s.names for s in _sources(picked)] == [("t", "a", "b")]
    assert picked.schema.names == ["t", "b", "twice"]
    joined = narrowed(wide.select("t", "k", "a").join_asof(wide).select("t", "c").plan)
    assert [s.names for s in _sources(joined)] == [("t", "k"), ("t", "k", "c")]
    # What an operator hands on unasked cannot be left out.
    assert [s.names for s in _sources(narrowed(wide.plan))] == [("t", "k", "a", "b", "c", "d")]


def test_a_table_that_is_read_twice_is_read_for_each(tmp_path: Path) -> None:
    wide = _lake(tmp_path).stream("wide", time="t", by="k")
    kept = wide.filter("a > 3")
    plan = narrowed(kept.select("t", "k", "b").join_asof(kept.select("t", "k", "c")).plan)
    assert isinstance(plan, AsOf)
    assert plan.schema.names == ["t", "k", "b", "t_right", "c"]
    assert [s.names for s in _sources(plan)] == [("t", "k", "a", "b"), ("t", "k", "a", "c")]


def test_names_that_a_join_gave_stay(tmp_path: Path) -> None:
    wide = _lake(tmp_path).stream("wide", time="t", by="k")
    for joined in (wide.join_asof(wide), wide.join_range(wide, before=1)):
        plan = narrowed(joined.select("t", other="c_right").plan)
        assert plan.schema.names == ["t", "other"]
        assert [s.names for s in _sources(plan)] == [("t", "k"), ("t", "k", "c")]
        assert run_here(plan).num_rows == 200


CONDITIONS: dict[str, Callable[[Stream], Stream]] = {
    "one": lambda s: s.filter("t >= 150"),
    "two": lambda s: s.filter("a < 190").filter("t >= 150"),
    "below a choice": lambda s: s.select("t", "a").filter("t >= 150"),
    "below other names": lambda s: s.rename(t="u", a="t").drop("b").filter("u >= 150"),
    "below a column twice": lambda s: s.select("t", "a", v="`t`").filter("v >= 150"),
    "below new columns": lambda s: s.with_columns(n="a + 1").with_columns(m=lambda rows: rows["n"]).filter("t >= 150"),
    "after": lambda s: s.after(150),
    "between": lambda s: s.filter("a > 3").between(150, 170),
    "before": lambda s: s.rename(t="u").before(50),
}


@pytest.mark.parametrize("title", CONDITIONS)
def test_conditions_skip_files(tmp_path: Path, title: str) -> None:
    wide = _lake(tmp_path).stream("wide", time="t", by="k")
    stream = CONDITIONS[title](wide)
    plan = narrowed(stream.plan)
    (source,) = _sources(plan)
    assert len(source.files) == 1
    assert "1 skipped" in source.line()
    assert run_here(plan).equals(run_here(stream.plan))


def test_conditions_on_what_is_computed_skip_nothing(tmp_path: Path) -> None:
    wide = _lake(tmp_path).stream("wide", time="t", by="k")
    for stream in (
        wide.with_columns(t="t + 100").filter("t >= 150"),
        wide.with_columns(a=lambda rows: rows["t"]).filter("a < 0"),
        wide.rename(t="a", a="t").with_columns(a="t * 0").filter("a >= 150"),
        wide.shift("a").filter("a >= 150"),
        wide.clip("a", lower=150).filter("a >= 150"),
    ):
        plan = narrowed(stream.plan)
        assert [len(s.files) for s in _sources(plan)] == [2]
        assert run_here(plan).sort_by("k").equals(run_here(stream.plan).sort_by("k"))


def test_a_condition_is_not_computed_before_another(tmp_path: Path, spark: Any) -> None:
    lake = hw.connect(_lake(tmp_path).location, spark=spark)
    kept = lake.stream("wide").filter("a <> 0").filter("b = 3 AND 10 / a > 1")
    assert kept.count() == kept.spark().count() == 1


def test_a_plan_that_is_filtered_in_two_ways_is_read_for_each(tmp_path: Path) -> None:
    wide = _lake(tmp_path).stream("wide", time="t", by="k")
    plan = narrowed(wide.filter("t < 50").union(wide.filter("t >= 50"), wide).plan)
    assert [len(s.files) for s in _sources(plan)] == [1, 2, 2]
    assert run_here(plan).num_rows == 400


def test_conditions_that_only_streams_know_skip_nothing(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    days = lake.stream("wide").filter("date '1970-01-01' + interval '1' month > date_add(date '1970-01-01', int(t))")
    (source,) = _sources(narrowed(days.plan))
    assert source.conjuncts == ()
    assert len(source.files) == 2


def test_rows_without_columns_are_still_rows(tmp_path: Path) -> None:
    wide = _lake(tmp_path).stream("wide")
    plan = narrowed(wide.select(one="1").plan)
    assert [len(s.names) for s in _sources(plan)] == [1]


def test_an_ordering_whose_column_is_dropped_says_so(tmp_path: Path) -> None:
    wide = _lake(tmp_path).stream("wide", time="t", by="k", tiebreak="a")
    with pytest.raises(InputError, match="`ordering` is None") as refused:
        wide.drop("a").filter("b > 0").shift("b")
    assert refused.value.hint is not None and "`a`, which was part of it, is gone" in refused.value.hint
    assert wide.drop("a").ordered("t", by="k").shift("b").columns[-1] == "b_lag_1"
