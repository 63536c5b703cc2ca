"""Policies: when a view is computed anew, that it says why, and when it refuses to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.incremental.views.world import World

import headwater as hw
from headwater.base.errors import ConflictError, InputError, SchemaError, UnsupportedError
from headwater.incremental.views import costs
from headwater.incremental.views.costs import Rates
from headwater.incremental.views.record import ViewRecord
from headwater.lake import modify, write
from headwater.testing.oracles import assert_same_rows

SQL = "SELECT name, count(*) AS n, sum(amount) AS total FROM orders GROUP BY name"


def replace_orders(world: World) -> None:
    rows = world.orders.to_arrow()
    world.lake.catalog.drop("orders")  # as another tool would: views that read it are not asked
    world.lake.write("orders", rows.slice(0, 5))


def test_auto_computes_anew_where_changes_are_gone(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    assert view.plan().mode == "full" and "never built" in view.plan().reason
    view.refresh()
    assert view.plan().mode == "noop"
    world.orders.append(world.orders.to_arrow().slice(0, 1))
    world.orders.delete("id < 5")
    world.orders.optimize()
    world.orders.vacuum(retention_hours=0, enforce_retention=False)
    report = view.refresh()
    assert report.mode == "full" and "orders" in report.reason, report
    assert view.verify().equal
    assert report.rows_out < 12, "only the difference is published"


def test_auto_follows_a_table_that_was_made_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    for _ in range(3):
        world.orders.append(world.orders.to_arrow().slice(0, 1))
    view.refresh()
    replace_orders(world)
    report = view.refresh()
    assert report.mode == "full" and "another table" in report.reason
    assert str(report.after) == "orders@0"
    assert view.verify().equal


def test_strict_raises_instead(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL, policy="strict")
    assert view.refresh().mode == "full", "the first time there is no other way"
    rows = view.to_arrow()
    replace_orders(world)
    with pytest.raises(UnsupportedError, match="strict") as caught:
        view.refresh()
    assert caught.value.code == "E3006"
    assert_same_rows(view.to_arrow(), rows)
    assert view.refresh(full=True).mode == "full"
    assert view.verify().equal


@pytest.mark.long
def test_full_always_computes_anew_and_publishes_the_difference(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL, policy="full")
    view.refresh()
    assert not (tmp_path / "_headwater/views/v/manifests").exists() or not list(
        (tmp_path / "_headwater/views/v/manifests").iterdir()
    )
    version = view.table.version
    world.orders.update({"name": "'nobody'"}, where="id = 3")
    report = view.refresh()
    assert report.mode == "full" and 0 < report.rows_out <= 4
    assert view.table.changes(version).num_rows == report.rows_out
    assert view.refresh().mode == "noop"
    assert view.verify().equal
    view.redefine(SQL, policy="auto")
    world.orders.update({"name": "'nobody'"}, where="id = 4")
    assert view.refresh().mode == "full"
    world.orders.update({"name": "'nobody'"}, where="id = 5")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_large_changes_are_computed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "FLOOR_ROWS", 50)
    world = World(tmp_path)
    numbers = world.lake.write("numbers", pa.table({"x": list(range(1000))}))
    view = world.lake.view("v", "SELECT x % 7 AS y, count(*) AS n FROM numbers GROUP BY x % 7")
    view.refresh()
    monkeypatch.setattr(Rates, "changes_seconds", lambda _self, rows: rows / 1000)
    monkeypatch.setattr(Rates, "anew_seconds", lambda _self, _rows: 0.05)
    monkeypatch.setattr(Rates, "queried_seconds", lambda _self, _rows: 1.0)
    numbers.append(pa.table({"x": list(range(40))}))
    assert view.plan().mode == "incremental"
    assert view.refresh().mode == "incremental"
    numbers.append(pa.table({"x": list(range(60))}))
    plan = view.plan()
    assert plan.mode == "full" and "quicker" in plan.reason and plan.changes == {"numbers": 60}
    assert plan.way == "build" and "crossover: " in str(plan)
    assert view.refresh().mode == "full"
    assert ViewRecord.of(view.table.snapshot).state is not None
    strict = world.lake.view("s", "SELECT count(*) AS n FROM numbers", policy="strict")
    strict.refresh()
    numbers.append(pa.table({"x": list(range(60))}))
    assert strict.refresh().mode == "incremental", "strict never does what it need not"


@pytest.mark.long
def test_a_state_that_is_not_worth_keeping_is_given_up_and_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "FLOOR_ROWS", 20)
    world = World(tmp_path)
    numbers = world.lake.write("numbers", pa.table({"x": list(range(100))}))
    view = world.lake.view("v", "SELECT x % 7 AS y, count(*) AS n, avg(x / 3) AS a FROM numbers GROUP BY x % 7")
    view.refresh()
    monkeypatch.setattr(Rates, "changes_seconds", lambda _self, rows: rows / 1000)
    monkeypatch.setattr(Rates, "anew_seconds", lambda _self, _rows: 0.05)
    monkeypatch.setattr(Rates, "queried_seconds", lambda _self, _rows: 0.01)

    def changed(rows: int) -> tuple[str, str, bool]:
        numbers.append(pa.table({"x": list(range(rows))}))
        plan, version = view.plan(), view.table.version
        report = view.refresh()
        assert (report.mode, report.reason) == (plan.mode, plan.reason)
        assert view.table.changes(version).num_rows == report.rows_out
        assert view.verify().equal
        return plan.way, report.reason, ViewRecord.of(view.table.snapshot).state is not None

    assert changed(40)[::2] == ("changes", True), "30 ms were lost, which is less than a state takes"
    assert changed(5)[::2] == ("changes", True), "5 ms were gained"
    assert changed(40) == ("query", "40 rows have changed, and a query is quicker than keeping its state", False)
    assert changed(45) == ("query", "45 rows have changed, and still a query is quicker than keeping its state", False)
    ways = [changed(1)[0] for _ in range(8)]
    assert ways == ["query"] * 5 + ["build"] + ["changes"] * 2, "9 ms were lost each time"


def test_what_others_do_to_the_table_of_a_view(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    view.refresh()
    modify.delete(view.table.storage, "n > 0")
    for _ in range(2):
        with pytest.raises(ConflictError, match="DELETE") as caught:
            view.refresh()
        assert caught.value.code == "E4004"
    assert view.refresh(full=True).mode == "full"
    assert view.verify().equal
    view.table.set_properties({"owner": "ann"})
    view.table.optimize()
    world.orders.append(world.orders.to_arrow().slice(0, 3))
    assert view.refresh().mode == "incremental"
    assert view.verify().equal
    write.append(view.table.storage, view.to_arrow().slice(0, 1))
    with pytest.raises(ConflictError):
        view.refresh()


def test_columns_of_sources_that_become_others(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT * FROM shops")
    view.refresh()
    world.shops.add_columns({"zip": pa.int32()})
    world.shops.append([{"shop": 9, "city": "Bonn", "zip": 53111}])
    assert view.refresh().mode == "incremental", "a column that is not read may come"
    assert view.to_arrow().schema.names == ["shop", "city"]
    assert view.verify().equal
    world.lake.sql("CREATE OR REPLACE TABLE shops AS SELECT 'x' AS shop, 'y' AS city")
    with pytest.raises(SchemaError, match="`shop` is of type string") as caught:
        view.refresh()
    assert caught.value.code == "E1605"


def test_bad_arguments(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(InputError, match="policy"):
        world.lake.view("v", SQL, policy="sometimes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="shards"):
        world.lake.view("v", SQL, shards=0)
    with pytest.raises(InputError, match="not a materialized view"):
        world.lake.view("orders")
    with pytest.raises(InputError, match="not a materialized view"):
        world.lake.view("orders", SQL)
    with pytest.raises(InputError, match="id"):
        world.lake.view("v", "SELECT id, id FROM orders")
    assert "v" not in world.lake
    world.lake.view("v", SQL)
    with pytest.raises(InputError, match="itself"):
        world.lake.view("v", "SELECT * FROM v")


@pytest.mark.parametrize("seed", [0, 1], ids=["files", "feed"])
@pytest.mark.parametrize("change", ["DELETE FROM orders WHERE id < 5", "UPDATE orders SET shop = 2 WHERE id < 9"])
def test_a_plan_knows_that_changes_were_vacuumed(seed: int, change: str, tmp_path: Path) -> None:
    world = World(tmp_path, seed)
    view = world.lake.view("v", SQL)
    strict = world.lake.view("s", SQL, policy="strict")
    view.refresh()
    strict.refresh()
    world.lake.sql(change)
    world.lake.sql(change.replace("<", "="))
    world.orders.optimize()
    assert view.plan().mode == "incremental"
    world.orders.vacuum(retention_hours=0, enforce_retention=False)
    plan = view.plan()
    assert plan.mode == "full" and "gone" in plan.reason
    assert view.refresh().mode == "full"
    assert view.verify().equal
    with pytest.raises(UnsupportedError) as caught:
        strict.plan()
    assert caught.value.code == "E3006"
    with pytest.raises(UnsupportedError) as caught:
        strict.refresh()
    assert caught.value.code == "E3006"


def test_the_clock_of_a_full_view_is_read_at_each_refresh(tmp_path: Path) -> None:
    world = World(tmp_path)
    sql = "SELECT DISTINCT shop, current_timestamp() AS at FROM orders"
    view = world.lake.view("v", sql, policy="full", refresh=True)
    first = set(view.to_arrow()["at"].to_pylist())
    assert len(first) == 1 and view.verify().equal, "verify goes by the time of the refresh"
    world.orders.delete("id = 1")
    view.refresh()
    second = set(view.to_arrow()["at"].to_pylist())
    assert len(second) == 1 and max(first) < min(second)
    again = hw.connect(tmp_path).view("v")
    assert again.verify().equal
    assert again.refresh().mode == "noop" and again.refresh(full=True).mode == "full"
    assert max(second) < min(again.to_arrow()["at"].to_pylist()) and again.verify().equal
