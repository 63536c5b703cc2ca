"""Files are put together beside the refreshes: rows that go meanwhile go, whoever else rewrites files wins, and every end leaves a view that is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.incremental.views.world import World
from tests.waiting import PATIENCE_S

from headwater.base import events
from headwater.base.errors import StorageError
from headwater.derived import upkeep
from headwater.incremental.views import View, packing_up
from headwater.incremental.views import live as lives
from headwater.testing.faults import FaultPlan

SQL = "SELECT name, open, amount FROM orders"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(packing_up, "_FEW", 3)
    return World(tmp_path)


def while_packing(world: World, view: View, act: Callable[[], None]) -> FaultPlan:
    """Do something between the long part and the short one; gives what happened."""
    plan = FaultPlan().call_at("view.pack.rewritten", lambda *_: act(), nth=1)
    with plan:
        for number in range(12):
            rows = [{"id": 2000 + 2 * number + i % 2, "name": f"m{number}", "amount": i // 2} for i in range(6)]
            world.orders.append(rows)
            view.refresh()
            assert upkeep.wait(PATIENCE_S)
            if "view.pack.rewritten" in plan.reached:
                return plan
    raise AssertionError("nothing was packed")


def optimized(view: View) -> list[int]:
    return [h.version for h in view.table.history() if h.operation == "OPTIMIZE"]


def check(world: World, view: View) -> None:
    """The rows are right, and the addresses too: rows of all files are found, from memory and from the state."""
    assert view.verify().equal
    for forget in (False, True):
        if forget:
            lives.forget(view._environment.root, "v")
        ids = world.orders.to_arrow()["id"].to_pylist()
        world.orders.delete(f"id IN ({', '.join(str(i) for i in random.Random(3).sample(ids, len(ids) // 3))})")
        assert view.refresh().mode == "incremental"
        assert view.verify().equal


def test_rows_that_go_meanwhile_are_marked_in_the_new_file(world: World) -> None:
    view = world.lake.view("v", SQL)
    view.refresh()
    at: list[int] = []

    def act() -> None:
        world.orders.delete("id % 2 = 0")
        world.orders.append([{"id": 5000, "name": "late", "amount": 1}] * 2)
        assert view.refresh().mode == "incremental"
        at.append(view.table.version)

    while_packing(world, view, act)
    assert optimized(view) == [at[0] + 1], "it was committed behind the refresh"
    assert view.table.changes(at[0], at[0] + 1).is_empty
    assert any(f.num_deleted for f in view.table.snapshot.files.values())
    check(world, view)


def test_a_file_that_lost_all_its_rows_meanwhile(world: World) -> None:
    view = world.lake.view("v", SQL)
    view.refresh()

    def act() -> None:
        world.orders.delete("id >= 2000")
        view.refresh()

    while_packing(world, view, act)
    rows = sum(f.num_records or 0 for f in view.table.snapshot.files.values())
    assert not optimized(view) or rows == view.to_arrow().num_rows, "a file that it read is not there any more"
    check(world, view)


def test_whoever_rewrites_the_files_meanwhile_wins(world: World) -> None:
    view = world.lake.view("v", SQL)
    view.refresh()

    def act() -> None:
        view.table.optimize()

    while_packing(world, view, act)
    assert len(optimized(view)) == 1
    named = set(view.table.snapshot.files)
    assert {p.name for p in Path(view.table.location).glob("view-*")} >= {n for n in named if n.startswith("view-")}
    check(world, view)


def test_new_files_that_another_process_swept(world: World) -> None:
    view = world.lake.view("v", SQL)
    view.refresh()

    def act() -> None:
        known = set(view.table.snapshot.files)
        new = [p for p in Path(view.table.location).glob("view-*.parquet") if p.name not in known]
        assert len(new) == 1
        new[0].unlink()

    while_packing(world, view, act)
    assert not optimized(view)
    check(world, view)


def test_an_error_is_a_notice_and_the_next_refresh_asks_again(world: World) -> None:
    view = world.lake.view("v", SQL)
    view.refresh()
    seen: list[events.Event] = []

    def fail() -> None:
        raise StorageError.failed("here", "the disk is gone")

    with events.subscribe(seen.append):
        while_packing(world, view, fail)
        assert any(e.text.startswith("the view `v` was not tidied up") for e in seen if e.kind == "notice")
        assert not optimized(view)
        world.orders.append([{"id": 1, "name": "x", "amount": 1}])
        view.refresh()
        assert upkeep.wait(PATIENCE_S)
    assert optimized(view)
    assert {e.kind for e in seen if e.task == "optimize v"} >= {"start", "end"}
    check(world, view)


def test_dropping_a_view_waits_for_what_is_done_to_it(world: World, tmp_path: Path) -> None:
    view = world.lake.view("v", SQL)
    view.refresh()
    with FaultPlan().delay_at("view.pack.rewritten", seconds=0.3):
        for number in range(6):
            world.orders.append([{"id": 2000 + number, "name": f"m{number}", "amount": number}])
            view.refresh()
        view.drop()
    assert upkeep.wait(PATIENCE_S)
    assert not Path(view.table.location).exists() and not (tmp_path / "_headwater/views/v").exists()


@pytest.mark.long
def test_many_refreshes_beside_it(world: World) -> None:
    """Nobody waits for anybody: refreshes follow each other while files are put together behind them."""
    view = world.lake.view("v", SQL)
    rng = random.Random(5)
    with FaultPlan().delay_at("view.pack.rewritten", seconds=0.05):
        for _ in range(30):
            world.commit(rng)
            view.refresh()
    assert upkeep.wait(PATIENCE_S)
    assert optimized(view)
    assert view.verify().equal
    check(world, view)
