"""State that is saved after the commit: a process that ends before that leaves an older one, from which the next goes on."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.amounts import everyday
from tests.incremental.views.world import QUERIES, World
from tests.waiting import PATIENCE_S

from headwater.base.errors import HeadwaterError
from headwater.derived import upkeep
from headwater.incremental.store import Store
from headwater.incremental.views import View, tidying
from headwater.incremental.views import live as lives
from headwater.incremental.views.definition import Policy
from headwater.incremental.views.record import StateAt, ViewRecord

SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "1"))


@pytest.fixture
def no_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done in the background, as if the process ended right after each refresh."""
    monkeypatch.setattr(tidying, "soon", lambda *_: None)


def _end(view: View) -> None:
    """Let the process forget what it knows of a view."""
    lives.forget(view._environment.root, view.name)


def _record(view: View) -> ViewRecord:
    return ViewRecord.of(view.table.snapshot)


def _behind(view: View) -> int:
    return lives.live(view._environment.root, view.name).behind


def _settled(world: World) -> View:
    """A view whose last refresh has its state saved, after the commit."""
    view = world.lake.view("v", QUERIES["groups"])
    view.refresh()
    world.orders.append([{"id": 1, "name": "new"}])
    view.refresh()
    assert upkeep.wait(PATIENCE_S)
    return view


def _store(world: World, name: str) -> Store:
    return Store(Path(world.lake.location) / "_headwater" / "views" / name, read_only=True)


@pytest.mark.long
@pytest.mark.usefixtures("no_upkeep")
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_next_process_goes_on_from_an_older_state(name: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{name} {seed}")
    world = World(tmp_path, seed)
    view = world.lake.view("v", QUERIES[name])
    view.refresh()
    lagged = 0
    for _ in range(everyday(9, soak=12)):
        for _ in range(rng.randint(1, 3)):
            world.commit(rng)
        done = view.refresh()
        assert done.mode in ("incremental", "noop"), done
        if rng.random() < 0.2:
            view.table.optimize()  # by somebody else: the addresses are to follow that, too
        if rng.random() < 0.6:
            lagged += _behind(view) > 0
            _end(view)
        assert view.verify().equal
    assert lagged > 2
    # All addresses are right: every row can be deleted.
    _end(view)
    world.orders.delete("true")
    world.shops.delete("true")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


@pytest.mark.usefixtures("no_upkeep")
def test_it_is_never_behind_by_much(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"])
    view.refresh()
    behind, states = [], set()
    for number in range(20):
        world.orders.append([{"id": number}])
        view.refresh()
        behind.append(_behind(view))
        states.add(_record(view).state)
    assert max(behind) == 8 and behind.count(0) == 2
    assert len(states) == 3
    assert view.verify().equal


def test_it_is_saved_soon_and_found_though_no_commit_names_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = _settled(world)
    assert _behind(view) == 0
    record, store = _record(view), _store(world, "v")
    *_, newest = store.manifests()
    at = StateAt.of(store.restore(newest).extra["extra"])
    assert at is not None and record.state is not None
    assert newest > record.state and at.settled and at.published == record.published
    _end(view)
    world.orders.append([{"id": 2, "name": "newer"}])
    view.refresh()
    assert _record(view).state == newest, "the next commit names it"
    assert upkeep.wait(PATIENCE_S)
    assert view.verify().equal


def test_sweeping_keeps_it_and_what_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lives, "_UNSWEPT", 1)
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"])
    view.refresh()
    for number in range(3):
        world.orders.append([{"id": number}])
        view.refresh()
        assert upkeep.wait(PATIENCE_S)
        there = _store(world, "v").manifests()
        assert there[0] == _record(view).state and len(there) == 2
    _end(view)
    world.orders.append([{"id": 9}])
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_a_newer_state_that_is_damaged_gives_way_to_the_older_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = _settled(world)
    store, record = _store(world, "v"), _record(view)
    assert record.state is not None
    *_, newest = store.manifests()
    own = store.restore(newest).files - store.restore(record.state).files
    assert own
    for file in own:
        (Path(store.folder) / "runs" / file).write_bytes(b"damaged")
    _end(view)
    world.orders.append([{"id": 2}])
    done = view.refresh()
    assert done.mode == "incremental", done
    assert view.verify().equal


@pytest.mark.usefixtures("no_upkeep")
@pytest.mark.parametrize("policy", ["auto", "strict"])
def test_changes_that_are_gone_are_not_followed(policy: Policy, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES["groups"], policy=policy)
    view.refresh()
    world.orders.delete("id < 3")
    world.orders.append([{"id": 1, "name": "new"}])
    view.refresh()
    at = view.table.version
    _end(view)
    world.orders.append([{"id": 2}])
    world.orders.optimize()
    for old in (Path(world.orders.location) / "_delta_log").glob("*1.json"):
        old.unlink()  # as if it had been cleaned up
    if policy == "strict":
        with pytest.raises(HeadwaterError):
            view.refresh()
        assert view.table.version == at
        return
    done = view.refresh()
    assert done.mode == "full", done
    assert view.verify().equal


@pytest.mark.long
@pytest.mark.usefixtures("no_upkeep")
def test_a_new_definition_keeps_what_is_the_same(tmp_path: Path) -> None:
    world = World(tmp_path)
    sql = "SELECT city, count(*) AS n FROM orders JOIN shops ON orders.shop = shops.shop GROUP BY city"
    view = world.lake.view("v", sql)
    view.refresh()
    world.orders.append([{"id": 1, "shop": 2}])
    view.refresh()
    assert _behind(view) == 1
    for end in (False, True):
        if end:
            _end(view)
        world.orders.append([{"id": 7, "shop": 1}])
        view.refresh()
        sql = sql.replace("count(*) AS n", "count(*) AS n, max(id) AS m" if not end else "min(id) AS n")
        view = world.lake.view("v", sql)
        assert view.verify().equal
        world.orders.delete("id = 1")
        view.refresh()
        assert view.verify().equal
