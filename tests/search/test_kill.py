"""Whoever is killed while it refreshes, merges or vacuums an index leaves one that answers rightly and can be refreshed.

25 kills at random instants in the everyday suite, and 8 on a server; HEADWATER_TEST_KILLS makes it more.
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
from tests.object_servers import ON_SERVER
from tests.search.conftest import Place
from tests.search.notes import Notes

import headwater as hw
from headwater.base.scratch import own_folder

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("HEADWATER_TEST_KILLS", "8" if ON_SERVER else "25"))
_POINTS = [
    "derived.refresh.begin", "search.split.before_write", "search.cover.before_write", "derived.record.before_commit",
    "derived.record.after_commit", "search.split.before_delete", "search.merge.before",
]  # fmt: skip


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[Server]:
    killer = Server("tests.search.kill_server", HEADWATER_SPILL_DIR=str(tmp_path / "machine"))
    yield killer
    killer.close()


def test_killed_at_random_it_is_before_or_after(killer: Server, place: Place, tmp_path: Path) -> None:
    rng = random.Random(os.environ.get("HEADWATER_TEST_SEED", "5"))
    with hw.settings.override(fsync=False):
        notes = Notes(place.url, 1, target_rows=30, options=place.options)
        notes.open("it").refresh()
        for number in range(KILLS):
            for _ in range(2):
                notes.commit(rng)
            life: dict[str, Any] = {
                "lake": place.url,
                "options": place.options,
                "what": ("refresh", "full", "merge", "vacuum")[number % 4],
            }
            if number % 3:
                ended = killer.live(**life, after_ms=rng.uniform(5, 250))
            else:
                ended = killer.live(**life, point=rng.choice(_POINTS), nth=rng.randint(1, 3), after_ms=400)
            assert ended == signal.SIGKILL
            index = notes.open("it")
            assert index.verify().equal
            rows = notes.table.to_arrow(columns=["seq"], where="contains(body, 'card') AND amount > 0")
            found = index.filter("contains(body, 'card') AND amount > 0", columns=["seq"]).read_all()
            assert sorted(found["seq"].to_pylist()) == sorted(rows["seq"].to_pylist())
        index.refresh()
        assert index.verify().equal and index.frontier == notes.head() and index.coverage == 1.0
        index.vacuum(retention_hours=0)
        left = {entry.path.rpartition("/")[2] for entry in index.store.root.list(f"{index.folder_path}/splits/")}
        assert left == {name + ending for name in index.record.names for ending in (".split", ".cover")}, (
            "nothing is left behind"
        )
    own = own_folder(tmp_path / "machine")
    # On a busy machine a child may be killed before it has made any of them; the last is made for lakes on servers.
    known = {Path(own).name, "headwater-splits", "headwater-state"}
    assert {path.name for path in (tmp_path / "machine").iterdir()} <= known


@pytest.mark.parametrize("what", ["merge", "vacuum"])
def test_killed_at_each_point_of_maintenance(what: str, killer: Server, place: Place) -> None:
    rng = random.Random(3)
    notes = Notes(place.url, 1, target_rows=30, options=place.options)
    for point in _POINTS:
        for _ in range(3):
            notes.commit(rng)
            notes.open("it").refresh()
        ended = killer.live(lake=place.url, options=place.options, what=what, point=point, nth=1, after_ms=1_000)
        assert ended == signal.SIGKILL
        index = notes.open("it")
        assert index.verify().equal, point
        index.refresh()
        assert index.verify().equal and index.frontier == notes.head(), point
