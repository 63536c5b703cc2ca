"""Why a plan runs as it does, as `explain` says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.timeseries.running.reasons import exchange_reasons
from headwater.timeseries.slices import HotKey
from headwater.timeseries.sources.source import Size

ROWS = pa.table({"k": ["a", "b"], "t": [1, 2], "v": [1, 2]})
KNOWN, UNKNOWN = Size(2_000_000, 50_000_000), Size(None, None)


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    return hw.connect(tmp_path).stream(ROWS, time="t", by="k")


def test_one_input(rows: Any) -> None:
    node = rows.shift("v").plan
    assert exchange_reasons(node, [KNOWN], (), 8, None) == "there are about 50 MB"
    assert "not known" in exchange_reasons(node, [UNKNOWN], (), 8, None)
    assert exchange_reasons(rows.ordered("t").shift("v").plan, [KNOWN], (), 8, None) == (
        "nothing tells one series from another"
    )


def test_two_inputs(rows: Any) -> None:
    node = rows.join_asof(rows).plan
    hot = HotKey(1, (5,), 0.2)
    said = "the other side has 2,000,000 rows, about 50 MB: more than 8.0 MB is not given to every task"
    assert exchange_reasons(node, [KNOWN, KNOWN], (), 8_000_000, None) == said
    assert exchange_reasons(node, [KNOWN, KNOWN], (hot,), 8_000_000, None) == f"{said}, and one key has 20% of the rows"
    assert "up to 20% of the rows each" in exchange_reasons(node, [KNOWN, KNOWN], (hot, hot), 8, None)
    assert "not known to be small" in exchange_reasons(node, [KNOWN, UNKNOWN], (), 8, None)


def test_a_session_that_means_something_else(rows: Any) -> None:
    node = rows.group("k").agg(n="count(*)").plan
    said = exchange_reasons(node, [KNOWN], (), 8, "spark.sql.ansi.enabled=false")
    assert said.startswith("Spark's own form means something else with spark.sql.ansi.enabled=false, and there are")


def test_a_small_side(spark: Any, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    rows = lake.stream(ROWS, time="t", by="k")
    assert "with all 2 rows of the other side in each task, since they are" in rows.join_asof(rows).explain()
