"""Storage fails at every write of a refresh, one after the other: the refresh raises, the view stays right, and the next one does it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.incremental.views.world import World
from tests.waiting import PATIENCE_S

from headwater.base import events
from headwater.base.errors import HeadwaterError
from headwater.derived import upkeep
from headwater.incremental.views import View
from headwater.testing.faults import FaultPlan, InjectedError
from headwater.testing.oracles import assert_same_rows

SQL = "SELECT name, count(*) AS n, sum(amount) AS total FROM orders GROUP BY name"


def passed(world: World, view: View) -> list[tuple[str, int]]:
    """The points that a refresh passes, each with how often it has been passed."""
    world.orders.append(world.orders.to_arrow().slice(0, 2))
    world.orders.delete("id = 3")
    with FaultPlan() as plan:
        view.refresh()
        assert upkeep.wait(PATIENCE_S)  # which saves the state
    return [(point, plan.reached[: i + 1].count(point)) for i, point in enumerate(plan.reached)]


@pytest.mark.long
def test_every_write_may_fail(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    view = world.lake.view("v", SQL)
    view.refresh()
    points = [p for p in passed(world, view) if not p[0].startswith("lake.checkpoint")]
    assert len(points) > 25
    failed = 0
    for number, (point, nth) in enumerate(points[:: 1 if os.environ.get("HEADWATER_TEST_STEPS") else 2]):
        world.orders.append(world.orders.to_arrow().slice(0, 2))
        world.orders.update({"amount": f"{number}"}, where=f"id = {number % 20}")
        before, rows = view.frontier, view.to_arrow()
        told: list[events.Event] = []
        try:
            with (
                events.subscribe(told.append),
                FaultPlan().raise_at(point, nth=nth, error=InjectedError("the disk is gone")),
            ):
                view.refresh()
                assert upkeep.wait(PATIENCE_S)
        except (HeadwaterError, OSError):
            failed += 1
        else:  # in the background nobody catches it
            failed += any(e.kind == "notice" and "was not tidied up" in e.text for e in told)
        at = view.frontier
        assert at in (before, world.head("orders")), f"{point} {nth}"
        assert_same_rows(view.to_arrow(), rows if at == before else view.recompute(at), where=f"{point} {nth}")
        view.refresh()
        assert view.frontier == world.head("orders")
        assert_same_rows(view.to_arrow(), view.recompute(view.frontier), where=f"after {point} {nth}")
        assert upkeep.wait(PATIENCE_S)
    assert failed > number // 2
    assert view.verify().equal


def test_a_row_that_cannot_be_computed_stops_the_refresh_and_nothing_else(tmp_path: Path) -> None:
    world = World(tmp_path)
    table = world.lake.write("t", [{"a": 6, "b": 2}])
    view = world.lake.view("v", "SELECT a div b AS c FROM t")
    view.refresh()
    table.append([{"a": 1, "b": 0}])
    with pytest.raises(HeadwaterError, match="zero"):
        view.refresh()
    assert view.to_pylist() == [{"c": 3}]
    table.delete("b = 0")
    table.append([{"a": 8, "b": 2}])
    assert view.refresh().mode == "incremental"
    assert sorted(r["c"] for r in view.to_pylist()) == [3, 4]


def test_a_damaged_state_is_computed_anew_and_said_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    view.refresh()
    from headwater.incremental.views import live as lives

    lives.forget(view._environment.root, "v")
    for run in (tmp_path / "_headwater/views/v/runs").iterdir():
        run.unlink()
    world.orders.append(world.orders.to_arrow().slice(0, 2))
    report = view.refresh()
    assert report.mode == "full" and "state cannot be used" in report.reason
    assert view.verify().equal
    world.orders.append(world.orders.to_arrow().slice(0, 2))
    assert view.refresh().mode == "incremental"


def test_a_view_whose_state_is_damaged_can_be_optimized(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT id, name FROM orders")
    view.refresh()
    for number in range(3):
        world.orders.append([{"id": number, "name": "new"}])
        view.refresh()
    assert upkeep.wait(PATIENCE_S)
    from headwater.incremental.views import live as lives

    lives.forget(view._environment.root, "v")
    for run in (tmp_path / "_headwater/views/v/runs").iterdir():
        run.unlink()
    assert len(view.table.snapshot.files) > 1
    view.optimize()
    assert len(view.table.snapshot.files) == 1
    assert view.verify().equal
    world.orders.append([{"id": 7, "name": "newer"}])
    assert view.refresh().mode == "full"
    assert view.verify().equal


def test_a_folder_of_state_that_went_while_it_was_in_use(tmp_path: Path) -> None:
    import shutil

    world = World(tmp_path)
    view = world.lake.view("v", SQL)
    view.refresh()
    shutil.rmtree(tmp_path / "_headwater")
    world.orders.append(world.orders.to_arrow().slice(0, 2))
    report = view.refresh()
    assert report.mode == "full" and view.verify().equal
