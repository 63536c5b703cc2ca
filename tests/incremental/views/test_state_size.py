"""What the state of a view takes for each row of its source: when it is built, after changes, and after `View.optimize`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.views import View, tidying

_ROWS = 20_000
_VIEWS = {
    "sessions": (
        (
            "SELECT user, session_window(ts, '30 minutes').start AS s, count(*) AS n, sum(amount) AS total FROM visits "
            "GROUP BY user, session_window(ts, '30 minutes')"
        ),
        20,
    ),
    "groups": ("SELECT page, count(*) AS n, sum(amount) AS total, max(ts) AS newest FROM visits GROUP BY page", 18),
    "a lag": ("SELECT id, ts - lag(ts) OVER (PARTITION BY user ORDER BY ts) > INTERVAL 1 HOUR AS new FROM visits", 40),
}


def _visits(first: int, rows: int) -> pa.Table:
    random = np.random.default_rng(first)
    users = random.integers(0, _ROWS // 20, rows)
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "user": [f"user-{u:07d}@example.org" for u in users],
            # Times of a user lie near each other.
            "ts": pa.array(users * 3_600 + random.integers(0, 7_200, rows), pa.int64()).cast(pa.timestamp("s")),
            "amount": random.integers(1, 10_000, rows),
            "page": [f"/a/rather/long/path/to/item/{p}" for p in random.integers(0, 500, rows)],
            "agent": [f"an agent with a name of its own {a}" for a in random.integers(0, 20, rows)],
        }
    )


def _state_bytes(view: View) -> int:
    tidying.finish(view._environment.root)
    folder = Path(view._environment.root.local_path("_headwater/views") or "") / view.name / "runs"
    return sum(file.stat().st_size for file in folder.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("name", _VIEWS)
def test_state_takes_a_few_bytes_for_a_row_and_does_not_grow(name: str, tmp_path: Path) -> None:
    sql, most = _VIEWS[name]
    with hw.connect(tmp_path) as lake:
        visits = lake.write("visits", _visits(0, _ROWS))
        view = lake.view("v", sql)
        view.refresh()
        assert _state_bytes(view) / _ROWS < most
        for number in range(6):
            low = number * 3_000
            visits.update({"amount": "amount + 1"}, where=f"id >= {low} AND id < {low + 1_000}")
            visits.delete(f"id >= {low + 1_000} AND id < {low + 2_000}")
            visits.append(_visits(_ROWS + 1_000 * number, 1_000))
            assert view.refresh().mode == "incremental"
        assert _state_bytes(view) / _ROWS < 3 * most
        view.optimize()
        optimized, version = _state_bytes(view), view.table.version
        view.optimize()
        assert view.table.version == version, "there was nothing left to do"
        fresh = lake.view("fresh", sql)
        fresh.refresh()
        assert optimized <= 1.1 * _state_bytes(fresh)
        visits.delete("id % 7 = 0")
        assert view.refresh().mode == "incremental"
        assert view.verify().equal


def test_a_state_that_was_merged_is_what_others_go_on_from(tmp_path: Path) -> None:
    with hw.connect(tmp_path) as lake:
        visits = lake.write("visits", _visits(0, 3_000))
        view = lake.view("v", _VIEWS["sessions"][0])
        view.refresh()
        visits.delete("id < 1000")
        view.refresh()
        view.optimize()
    with hw.connect(tmp_path) as lake:
        lake.table("visits").append(_visits(5_000, 500))
        view = lake.view("v")
        assert view.refresh().mode == "incremental"
        assert view.verify().equal
