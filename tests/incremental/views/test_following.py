"""Following: each version of a source is in the view once, whatever comes while it runs and whoever stops when."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.incremental.killing import Server
from tests.incremental.views.test_kill import VIEWS, kill_again_and_again

import headwater as hw
from headwater.base.errors import InputError
from headwater.base.frontier import Frontier
from headwater.incremental.views.record import ViewRecord
from headwater.incremental.views.spark.places import here
from headwater.lake import snapshot

_POINTS = [
    "view.refresh.begin",
    "view.refresh.stepped",
    "view.publish.written",
    "view.commit.before",
    "view.commit.after",
    "state.run.before_publish",
    "state.checkpoint.before_manifest",
    "lake.commit.before_publish",
    "lake.commit.after_publish",
]


def test_what_is_there_is_followed_and_then_it_ends(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 1}])
    view = lake.view("n", "SELECT count(*) AS n FROM orders")
    found = []
    for report in view.follow(available_now=True):
        found.append(report.mode)
        if len(found) < 3:
            orders.append([{"id": len(found)}])
    assert found == ["full", "incremental", "incremental"]
    assert view.to_pylist() == [{"n": 3}]
    assert list(view.follow(available_now=True)) == []


def test_changes_that_come_are_followed(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 1}])
    view = lake.view("n", "SELECT count(*) AS n FROM orders")

    def write() -> None:
        for number in range(5):
            orders.append([{"id": number}])

    writing = threading.Thread(target=write)
    last = None
    for report in view.follow(every_seconds=0.02):
        assert last is None or report.before == last, "each goes on from the one before"
        last = report.after
        if report.mode == "full":
            writing.start()
        if report.after["orders"] == 5:
            break
    writing.join()
    assert view.to_pylist() == [{"n": 6}]


def test_a_pause_is_a_number_above_zero(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("orders", [{"id": 1}])
    with pytest.raises(InputError, match="every_seconds"):
        lake.view("n", "SELECT count(*) AS n FROM orders").follow(every_seconds=0)


def test_whoever_is_far_behind_takes_so_many_rows_at_a_time(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders, shops = lake.write("orders", [{"id": 0, "k": 0}]), lake.write("shops", [{"k": 0}])
    view = lake.view("n", "SELECT k, count(*) AS n FROM orders JOIN shops USING (k) GROUP BY k", refresh=True)
    orders.optimize()
    for number in range(12):
        orders.append([{"id": number, "k": n} for n in range(10)])
        if number % 3 == 0:
            shops.append([{"k": number}])
    orders.append([{"id": 9, "k": n} for n in range(100)])  # a version that is never cut
    orders.append([{"id": 9, "k": 0}])
    reports = list(view.follow(available_now=True, most_rows=35))
    assert [one.mode for one in reports] == ["incremental"] * len(reports)
    assert sum(one.rows_in for one in reports) == 120 + 4 + 100 + 1
    assert [one.rows_in > 35 for one in reports].count(True) == 1
    assert all(then.before == one.after for one, then in pairwise(reports))
    assert len(reports) < 9, "as many versions as fit are taken together"
    assert view.verify().equal and not view.lag()


def test_a_limit_reaches_through_the_views_below(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 0}])
    lake.view("some", "SELECT id FROM orders WHERE id >= 0")
    view = lake.view("n", "SELECT count(*) AS n FROM some", refresh=True)
    for number in range(6):
        orders.append([{"id": number}] * 10)
    reports = list(view.follow(available_now=True, most_rows=20))
    assert [one.rows_in for one in reports] == [20, 20, 20]
    assert view.to_pylist() == [{"n": 61}] and view.verify().equal


@pytest.mark.parametrize("what", ["recreated", "vacuumed", "unbuilt"])
def test_a_limit_does_not_hold_up_what_reads_all_rows(what: str, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 0}])
    view = lake.view("n", "SELECT count(*) AS n FROM orders", refresh=what != "unbuilt")
    if what == "recreated":
        lake.catalog.drop("orders")
        lake.write("orders", [{"id": 0}])
    for number in range(6):
        orders.append([{"id": number}] * 10)
    if what == "vacuumed":
        orders.delete("id >= 0")
        orders.append([{"id": 1}] * 61)
        orders.vacuum(retention_hours=0, enforce_retention=False)
    reports = list(view.follow(available_now=True, most_rows=20))
    assert reports[0].mode == "full" or what == "vacuumed"
    assert view.to_pylist() == [{"n": 61}] and view.verify().equal


def test_a_limit_makes_no_stop_where_all_rows_are_read(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 0}])
    view = lake.view("n", "SELECT count(*) AS n FROM orders", policy="full", refresh=True)
    for number in range(6):
        orders.append([{"id": number}] * 10)
    assert [one.mode for one in view.follow(available_now=True, most_rows=20)] == ["full"]
    assert view.to_pylist() == [{"n": 61}]


def test_tasks_follow_too(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 1}])
    view = lake.view("n", "SELECT id, count(*) AS n FROM orders GROUP BY id")
    found = []
    with here():
        for report in view.follow(available_now=True, engine="spark", most_rows=2):
            assert "on Spark" in report.reason
            found.append((report.mode, report.rows_in))
            if report.mode == "full":
                for number in range(4):
                    orders.append([{"id": number}])
    assert found == [("full", 1), ("incremental", 2), ("incremental", 2)]
    assert view.verify().equal


@pytest.mark.long
def test_a_follower_is_killed(tmp_path: Path) -> None:
    """Each version is in the view once, though the follower ends anywhere and another one, by tasks or not, goes on."""
    chance = random.Random(5)
    server = Server("tests.incremental.views.kill_server", HEADWATER_PROGRESS="off")

    def commands() -> Iterator[dict[str, Any]]:
        while True:
            follower = {"follow": chance.randint(1, 6), "engine": chance.choice(["spark", "local"])}
            yield {**follower, "point": chance.choice(_POINTS), "nth": chance.randint(1, 4)}
            yield {**follower, "within": chance.uniform(0.05, 0.8)}

    assert kill_again_and_again(server, tmp_path, 3, commands(), 12, between=True) > 6
    server.close()
    lake = hw.connect(tmp_path)
    for name in VIEWS:
        view = lake.view(name)
        reports = list(view.follow(available_now=True, most_rows=3))
        assert all(then.before == one.after for one, then in pairwise(reports))
        assert view.frontier == Frontier({table: lake.table(table).version for table in view.sources})
        assert view.verify().equal
        versions = range(1, view.version + 1)
        passed = [ViewRecord.of(snapshot.at_version(view.table.storage, n)).frontier for n in versions]
        assert all(one <= then for one, then in pairwise(passed)), "no version is taken twice"


@pytest.mark.parametrize("most_rows", [0, -1, True, "all"])
def test_a_limit_is_a_number_of_rows(most_rows: object, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("orders", [{"id": 1}])
    with pytest.raises(InputError, match="most_rows"):
        lake.view("n", "SELECT count(*) AS n FROM orders").follow(most_rows=most_rows)  # type: ignore[arg-type]
