"""Views over tables that are redefined in between: the rows are those of the query, or the refresh says why not."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.incremental.views import live as lives
from headwater.testing.histories import History

SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "2"))
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["x", "y", "x"]})
VARIANTS = {
    "vectors": {},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "rewrite": {"delta.enableDeletionVectors": "false"},
}


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
def test_a_repartitioned_source_counts_once(properties: dict[str, str], tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    table = lake.table("t").create(ROWS.schema, data=ROWS, properties=properties)
    view = lake.view("v", "SELECT id, count(*) AS n FROM t GROUP BY id")
    view.refresh()
    table.create(ROWS.schema, data=ROWS, mode="replace", partition_by=["id"], properties=properties)
    report = view.refresh()
    assert (report.mode, report.rows_out) == ("incremental", 0)
    assert view.verify().equal
    table.append(ROWS.slice(1, 1))
    table.restore(0)
    assert view.refresh().mode == "incremental"
    assert view.verify().equal
    assert view.to_arrow().sort_by("id").to_pylist() == [{"id": i, "n": 1} for i in (1, 2, 3)]


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_views_of_random_histories(variant: str, tmp_path: Path) -> None:
    refreshed = 0
    for seed in range(2, 2 + 2 * SEEDS):
        rng = random.Random(f"view {variant} {seed}")
        lake = hw.connect(tmp_path / str(seed))
        history = History(lake.table("t"), rng, properties=VARIANTS[variant], mode=rng.choice(["none", "name", "id"]))
        column = rng.choice(history.now.columns[1:])
        name = column.name
        sql = f"SELECT k, `{name}` AS other, count(*) AS n FROM t GROUP BY k, `{name}`"
        views = [lake.view("keys", "SELECT k, count(*) AS n FROM t GROUP BY k"), lake.view("whole", sql)]
        steps: list[str] = []
        for number in range(16):
            steps.append(history.step())
            if number % 8 == 7:
                lives.forget(views[0]._environment.root, views[1].name)
            for view in views:
                if rng.random() < 0.5:
                    where = f"seed {seed}, {view.name}: {steps}"
                    try:
                        report = view.refresh()
                    except HeadwaterError as error:
                        assert error.code == "E1605" and view.name == "whole", f"{error}\n{where}"
                        assert (name, column.type) not in {(c.name, c.type) for c in history.now.columns}, where
                        continue
                    refreshed += report.mode != "noop"
                    assert report.mode != "full" or report.reason
                    assert view.verify().equal, f"{report}\n{view.verify()}\n{where}"
    assert refreshed > 4 * SEEDS
