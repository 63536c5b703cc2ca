"""Whoever says which form an operator runs in, gets that form where there is one, and the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.timeseries.operators import window_laid
from headwater.timeseries.running.explaining import text_of
from headwater.timeseries.running.stages import Run, Strategy
from headwater.timeseries.stream import Stream

_ROWS = pa.table({"s": [i % 7 for i in range(200)], "t": [i * 37 % 1000 for i in range(200)], "v": list(range(200))})
_OWN = "Spark's own form of it"


def _found(spark: Any, stream: Stream, strategy: Strategy) -> tuple[str, list[dict[str, Any]]]:
    run = Run(spark, stream.plan, strategy=strategy)
    rows = run.collect().to_pylist()
    return text_of(run.stage()), sorted(rows, key=str)


def test_forms_have_the_same_rows(spark: Any, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.write("rows", _ROWS)
    rows = lake.stream("rows", time="t", by="s")
    # With the form that the plan itself chooses for the first operator, which the second one follows.
    plans = {
        _OWN: rows.group("s").agg(n="count(*)", most="max(v)"),
        "exchange by s into": rows.window(hw.Tumbling(100)).agg(n="count(*)", most="max(v)"),
        "exchange by s": rows.shift("v").group("s").agg(n="count(v_lag_1)"),
    }
    for begins, stream in plans.items():
        chosen, wanted = _found(spark, stream, "auto")
        assert begins in chosen
        blocks, found = _found(spark, stream, "blocks")
        assert found == wanted
        assert _OWN not in blocks
        assert "exchange by s" in blocks
        own, found = _found(spark, stream, "spark")
        assert found == wanted
        assert _OWN in own
        assert "exchange" not in own


def test_what_has_one_form_has_it_always(spark: Any, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    averages = lake.stream(_ROWS, time="t", by="s").ema("v", alpha=0.5)
    texts = [_found(spark, averages, strategy) for strategy in ("auto", "blocks", "spark")]
    assert texts[0] == texts[1] == texts[2]
    assert _OWN not in texts[0][0]


def test_windows_run_in_tasks_but_for_much_that_may_be_one_series(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.write("rows", _ROWS)
    rows = lake.stream("rows", time="t", by="s")
    hopping, tumbling = (rows.window(hw.Hopping(100, every)).agg(n="count(*)") for every in (25, 100))
    assert _OWN not in hopping.explain()
    assert _OWN not in tumbling.explain()
    assert _OWN not in rows.filter("v > 3").window(hw.Tumbling(100)).agg(n="count(*)").explain()
    for other in (lake.stream("rows", time="t"), lake.stream(spark.createDataFrame(_ROWS), time="t", by="s")):
        assert _OWN in other.window(hw.Tumbling(100)).agg(n="count(*)").explain()
    monkeypatch.setattr(window_laid, "ONE_TASK_BYTES", 1)
    assert _OWN not in hopping.explain()
    assert _OWN in tumbling.explain()
