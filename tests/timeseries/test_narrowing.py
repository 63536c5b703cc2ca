"""Sources are asked for what is needed, and no more; the rows are the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import InputError
from headwater.timeseries.node import Node
from headwater.timeseries.operators.asof import AsOf
from headwater.timeseries.operators.narrow import Filter
from headwater.timeseries.running.here import run_here
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.sources.delta import DeltaSource


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


def test_conditions_skip_files(tmp_path: Path) -> None:
    wide = _lake(tmp_path).stream("wide", time="t", by="k")
    plan = narrowed(wide.filter("t >= 150").filter("a < 190").plan)
    assert isinstance(plan, Filter)
    (source,) = _sources(plan)
    assert len(source.files) == 1
    assert "1 skipped" in source.line()
    assert source.conditions == ("t >= 150",)


def test_conditions_that_only_streams_know_skip_nothing(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    days = lake.stream("wide").filter("date '1970-01-01' + interval '1' month > date_add(date '1970-01-01', int(t))")
    (source,) = _sources(narrowed(days.plan))
    assert source.conditions == ()
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
