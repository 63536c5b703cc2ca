"""A lake on object storage: any machine can refresh a view, since its state lies beside the tables."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.incremental.views.world import World

from headwater.base.errors import ConflictError
from headwater.incremental.views import View
from headwater.incremental.views import live as lives
from headwater.testing.faults import FaultPlan
from headwater.testing.object_server import ObjectServer

SQL = "SELECT name, count(*) AS n, sum(amount) AS total FROM orders GROUP BY name"


def machine(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, view: View | None = None) -> None:
    """From now on this process is another machine: it has other folders, and has never seen the view."""
    place = folder / name
    place.mkdir(exist_ok=True)
    monkeypatch.setenv("HEADWATER_SPILL_DIR", str(place))
    if view is not None:
        lives.forget(view._environment.root, view.name)


def test_machines_take_turns(server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    machine(tmp_path, "one", monkeypatch)
    world = World(server.url("lake"), 1, options=server.options)
    view = world.lake.view("v", SQL)
    view.refresh()
    for step in range(6):
        world.commit(rng)
        world.orders.append(world.orders.to_arrow().slice(0, 1))
        machine(tmp_path, ("one", "two")[step % 2], monkeypatch, view if step % 3 else None)
        assert view.refresh().mode == "incremental"
        assert view.verify().equal
    assert world.lake.tables() == ["orders", "shops"] and world.lake.views() == ["v"], "the state is no table"
    view.drop()
    assert not list(world.lake.catalog.root.list("_headwater/"))


def test_who_loses_begins_again(server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one machine refreshes, another one does: between them only the commit decides."""
    machine(tmp_path, "one", monkeypatch)
    world = World(server.url("lake2"), 2, options=server.options)
    view = world.lake.view("v", SQL)
    view.refresh()
    mine = lives.live(view._environment.root, "v")
    world.orders.append(world.orders.to_arrow().slice(0, 2))
    others: list[str] = []

    def meanwhile(_point: str, _detail: str) -> None:
        if not others:
            machine(tmp_path, "two", monkeypatch, view)
            others.append(world.lake.view("v").refresh().mode)
            machine(tmp_path, "one", monkeypatch, view)
            lives._views[f"{view._environment.root.url}\nv"] = mine

    with FaultPlan().call_at("view.commit.before", meanwhile):
        report = view.refresh()
    assert others == ["incremental"] and report.mode == "noop"
    world.orders.append(world.orders.to_arrow().slice(0, 2))
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_a_crash_before_the_commit_leaves_the_old_state(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, "one", monkeypatch)
    world = World(server.url("lake3"), 3, options=server.options)
    view = world.lake.view("v", SQL)
    view.refresh()
    world.orders.append(world.orders.to_arrow().slice(0, 2))
    before = view.frontier
    failure = ConflictError.too_many_retries(1, "there")
    with pytest.raises(ConflictError), FaultPlan().raise_at("view.commit.before", error=failure):
        view.refresh()
    machine(tmp_path, "two", monkeypatch, view)
    assert view.frontier == before and view.verify().equal
    assert view.refresh().mode == "incremental"
    assert view.verify().equal
