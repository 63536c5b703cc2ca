"""kill -9 anywhere in a refresh: the view is as before or as after, what is saved belongs to it, and nothing is left behind.

A process is killed while it refreshes views; then the sources change and the next one goes on from what is there. After each kill every
view equals a recomputation at the frontier that it states. After a refresh that ended, the folders hold what the newest commit names and
nothing else. ``--slow`` kills a thousand times (HEADWATER_TEST_KILLS).
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.incremental.killing import Server
from tests.incremental.views.world import World

from headwater.incremental.store import Store
from headwater.incremental.views import View
from headwater.incremental.views.record import StateAt, ViewRecord
from headwater.lake import log
from headwater.lake.partitions import decode_path

VIEWS = {
    "groups": "SELECT name, count(*) AS n, sum(amount) AS total FROM orders GROUP BY name",
    "cities": "SELECT city, id, amount FROM orders JOIN shops ON orders.shop = shops.shop",
}
POINTS = [
    "view.refresh.begin",
    "view.refresh.stepped",
    "view.publish.written",
    "view.commit.before",
    "view.commit.after",
    "derived.sweep.before_delete",
    "view.upkeep.begin",
    "view.pack.rewritten",
    "view.settle.before",
    "lake.data_file.before_publish",
    "lake.data_file.after_publish",
    "lake.commit.before_publish",
    "lake.commit.after_publish",
    "lake.checkpoint.before_publish",
    "state.run.before_write",
    "state.run.before_flush",
    "state.run.before_publish",
    "state.run.after_publish",
    "state.checkpoint.before_manifest",
    "storage.put.before_publish",
    "storage.put_if_absent.before_publish",
    "storage.put_if_absent.after_publish",
    "storage.open_output.before_publish",
    "storage.delete.before",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server("tests.incremental.views.kill_server", HEADWATER_PROGRESS="off")
    yield made
    made.close()


def check(view: View, before: Any, head: Any, *, between: bool = False) -> None:
    """The view is where it was or where it was going, and its rows are those of its query there.

    It may be ``between`` where a build goes on that was interrupted: that is committed at the versions it was for.
    """
    at = view.frontier
    there = at in (before, head) or (between and before is not None and before <= at <= head)
    assert there, f"{view.name} is at {at}, neither {before} nor {head}"
    if at:
        assert view.verify().equal, view.verify()
    state = ViewRecord.of(view.table.snapshot).state
    if state is not None:
        folder = Path(view._environment.root.url) / "_headwater" / "views" / view.name
        store = Store(folder, read_only=True)
        store.verify(store.restore(state))


def check_tidy(view: View) -> None:
    """Nothing lies about that no commit names."""
    base = view.table.snapshot
    state = ViewRecord.of(base).state
    assert state is not None
    folder = Path(view._environment.root.url) / "_headwater" / "views" / view.name
    store = Store(folder, read_only=True)
    states = store.manifests()
    assert states[0] == state and len(states) <= 2, "that which is named, and one that was saved after the commit"
    for name in states[1:]:
        at = StateAt.of(store.restore(name).extra["extra"])
        assert at is not None and at.settled and at.published == ViewRecord.of(base).published
    assert set(os.listdir(folder / "runs")) == set().union(*(store.restore(name).files for name in states))
    named = {decode_path(f.path) for f in base.files.values()}
    for version in range(base.version + 1):
        commit = log.read_commit(base.storage, version)
        named |= {decode_path(f.path) for f in commit.adds} | {decode_path(c["path"]) for c in commit.cdc}
    place = Path(view.table.location)
    there = {str(p.relative_to(place)) for p in place.rglob("*") if p.is_file() and "_delta_log" not in p.parts}
    assert {p for p in there if "deletion_vector" not in p} <= named, there - named


def whole_life(server: Server, folder: Path, seed: int, names: list[str]) -> None:
    """Let the server see how long a refresh takes here and now: of the same views, elsewhere."""
    beside = folder.with_name(f"{folder.name}-whole")
    world = World(beside, seed)
    for name in names:
        world.lake.view(name, VIEWS[name], refresh=True)
    world.orders.append(world.orders.to_arrow().slice(0, 3))
    assert server.live(folder=str(beside), views=names) == 0


def kill_again_and_again(
    server: Server,
    folder: Path,
    seed: int,
    commands: Iterator[dict[str, Any]],
    kills: int,
    *,
    between: bool = False,
) -> int:
    """Kill so often; gives how many refreshes were cut short."""
    rng = random.Random(seed)
    world = World(folder, seed)
    views = {name: world.lake.view(name, sql) for name, sql in VIEWS.items()}
    cut = 0
    whole_life(server, folder, seed, list(views))
    for life in range(kills):
        for _ in range(rng.randint(1, 3)):
            world.commit(rng)
        before = {name: view.frontier for name, view in views.items()}
        status = server.live(folder=str(folder), views=list(views), **next(commands))
        assert status in (0, signal.SIGKILL), life
        cut += status == signal.SIGKILL
        for name, view in views.items():
            check(view, before[name], world.head(*view.sources), between=between)
        if rng.random() < 0.3:
            world.commit(rng)  # so that there is something to refresh, and what was left is swept
            world.shops.append([{"shop": 1, "city": "Bonn"}])
            world.orders.delete("id = 0")
            world.orders.append(world.orders.to_arrow().slice(0, 1))
            assert server.live(folder=str(folder), views=list(views)) == 0
            for view in views.values():
                check(view, None, world.head(*view.sources))
                check_tidy(view)
    return cut


@pytest.mark.long
def test_kills(server: Server, tmp_path: Path) -> None:
    """Nineteen: at points one after the other, and at any moment."""
    chance = random.Random(4)
    named = iter(chance.sample(POINTS, len(POINTS)))

    def commands() -> Iterator[dict[str, Any]]:
        while True:
            yield {"point": next(named), "nth": chance.randint(1, 2)}
            yield {"within": chance.uniform(0.05, 0.6)}
            yield {"point": next(named), "nth": chance.randint(1, 2)}

    assert kill_again_and_again(server, tmp_path, 2, commands(), 19) > 9


@pytest.mark.long
@pytest.mark.slow
def test_a_thousand_kills(server: Server, tmp_path: Path) -> None:
    kills = int(os.environ.get("HEADWATER_TEST_KILLS", "1000"))
    chance = random.Random(os.environ.get("HEADWATER_TEST_SEED", "3"))

    def commands() -> Iterator[dict[str, Any]]:
        while True:
            if chance.random() < 0.5:
                yield {"within": chance.uniform(0.05, 1), "full": chance.random() < 0.1}
            else:
                yield {"point": chance.choice(POINTS), "nth": chance.randint(1, 8), "full": chance.random() < 0.1}

    for round_ in range(max(1, kills // 100)):
        folder = tmp_path / str(round_)
        folder.mkdir()
        kill_again_and_again(server, folder, round_, commands(), min(kills, 100))
