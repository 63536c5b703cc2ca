"""One key with half of all rows: counts and sums of it are sent as a few rows, and answers and state are those of the process."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.incremental.views.spark.conftest import on, state_of

import headwater as hw
from headwater.incremental.views.spark.places import here

ROWS = 8_000
QUERIES = {
    "sums": "SELECT k, count(*) AS n, count(v) AS vs, sum(v) AS total, avg(v) AS mean, sum(d) AS money FROM t GROUP BY k",
    "conditions": "SELECT k, sum(v) FILTER (WHERE v % 2 = 0) AS even, count_if(v > 0) AS some FROM t GROUP BY k",
    "joined": "SELECT t.k, name, count(*) AS n, sum(v) AS total FROM t JOIN names ON t.k = names.k GROUP BY t.k, name",
    "by another key": "SELECT name, count(*) AS n, sum(v) AS total FROM t JOIN names ON t.k = names.k GROUP BY name",
}
KEPT = {
    "extremes": "SELECT k, max(v) AS top, sum(v) AS total FROM t GROUP BY k",
    "distinct": "SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k",
    "doubles": "SELECT k, sum(f) AS total FROM t GROUP BY k",
}


def made(seed: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = np.where(rng.random(rows) < 0.5, 3, rng.integers(0, rows, rows))
    values = [None if v % 17 == 0 else v for v in rng.integers(-1_000, 1_000, rows).tolist()]
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "v": pa.array(values, pa.int64()),
            "d": pa.array(
                [Decimal(v).scaleb(-2) for v in rng.integers(-9_999, 9_999, rows).tolist()], pa.decimal128(9, 2)
            ),
            "f": pa.array(rng.random(rows)),
        }
    )


@pytest.mark.parametrize("name", [*QUERIES, *KEPT])
def test_a_key_with_half_of_the_rows(name: str, tmp_path: Path) -> None:
    sql = {**QUERIES, **KEPT}[name]
    lake = hw.connect(tmp_path)
    table = lake.write("t", made(1, ROWS))
    lake.write("names", pa.table({"k": range(ROWS), "name": [f"a name of some length {i % 5}" for i in range(ROWS)]}))
    view, twin = lake.view("v", sql), lake.view("twin", sql)
    for step in range(3):
        with here(), on("spark", 4):
            done = view.refresh()
        assert "on Spark" in done.reason
        moved = view.jobs()["rows_in"].to_pylist()
        if not step:
            if name in ("sums", "conditions"):
                assert moved[0] < 0.75 * ROWS, "what half of the rows came to was sent"
            elif name == "by another key":
                assert moved[1] < 500, "five names from four shards"
            elif name in KEPT:
                assert moved[0] == ROWS
        with on("local"):
            twin.refresh()
        assert view.verify().equal
        assert sorted(map(str, view.to_pylist())) == sorted(map(str, twin.to_pylist()))
        assert state_of(view) == state_of(twin)
        table.append(made(2 + step, 900))
        table.delete("v < -700" if step else "k = 3 AND v < 0")
