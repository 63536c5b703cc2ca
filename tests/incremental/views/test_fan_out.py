"""How many rows of joins a changed row comes to: counted when state is built, and counted in what a refresh is expected to take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.views import View
from headwater.incremental.views.costs import Rates
from headwater.incremental.views.record import ViewRecord

JOIN = "SELECT c.region, count(*) AS n FROM o JOIN c ON o.customer = c.customer GROUP BY c.region"
STAR = """
SELECT a.id, c.region FROM (SELECT customer FROM c WHERE region < 3) s
JOIN o a ON a.customer = s.customer JOIN c ON c.customer = s.customer
"""
# A union's rows are shared out: those of `c` are a fiftieth of it.
UNION = """
SELECT max(u.id) AS m FROM (SELECT id, customer FROM o UNION ALL SELECT region, customer FROM c) u
JOIN c d ON u.customer = d.customer
"""


def made(folder: Path, sql: str) -> tuple[hw.Lake, View]:
    lake = hw.connect(folder)
    lake.write("o", pa.table({"id": np.arange(5_000), "customer": np.arange(5_000) % 100}))
    lake.write("c", pa.table({"customer": np.arange(100), "region": np.arange(100) % 7}))
    view = lake.view("v", sql)
    view.refresh()
    return lake, view


def rates_of(view: View) -> Rates:
    return ViewRecord.of(view.table.snapshot).rates


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (JOIN, {"c": 50.0}),
        ("SELECT customer, count(*) AS n FROM o GROUP BY customer", {}),
        ("SELECT a.id, b.id AS other FROM o a JOIN o b ON a.customer = b.customer", {"o": 50.0}),
        (STAR, {"c": 22.0}),
        (UNION, {"c": 51.0}),
    ],
)
def test_it_is_counted_when_state_is_built(sql: str, expected: dict[str, float], tmp_path: Path) -> None:
    _, view = made(tmp_path, sql)
    found = rates_of(view).fan_out
    assert found.keys() == expected.keys()
    for table, factor in expected.items():
        assert found[table] == pytest.approx(factor, rel=0.2)


def test_a_changed_row_counts_as_what_it_comes_to(tmp_path: Path) -> None:
    lake, view = made(tmp_path, JOIN)
    lake.table("c").delete("customer < 40")
    plan = view.plan()
    assert plan.changes["c"] == 40
    assert plan.fan_out == pytest.approx(50)
    assert "40 rows have changed, which come to 2,000 rows of joins" in plan.reason
    assert "a changed row comes to 50 rows of joins" in str(plan)
    assert plan.incremental_seconds == pytest.approx(rates_of(view).changes_seconds(2_000))
    view.refresh()
    assert rates_of(view).fan_out == {"c": 50.0}, "it is remembered"
    assert rates_of(view).changes_per_second == 0, "a few rows do not say how long a row takes, whatever they come to"
    assert Rates().after_changes(2_000, 1.0, 50.0).changes_per_second == 100_000
    lake.table("o").delete("id < 40")
    assert view.plan().fan_out == 1


def test_many_moved_customers_are_not_followed_where_a_query_is_quicker() -> None:
    rows = 5_100_000
    rates = Rates(1e6, full_seconds=3.0, full_rows=rows, query_seconds=0.3, query_rows=rows, fan_out={"c": 50.0})
    assert rates.choice(rates.work({"c": 100_000}), rows).way == "build"
    assert rates.goes_behind(rows), "which is a query, with state built behind it"
    assert rates.choice(rates.work({"o": 100_000}), rows).way == "changes"


def test_records_without_it_are_read() -> None:
    old = Rates(1e6).to_json()
    assert "fan_out" not in old
    assert Rates(**old).fan_out == {}
    assert Rates(**Rates(fan_out={"c": 2.0}).to_json()).fan_out == {"c": 2.0}
