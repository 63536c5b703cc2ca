"""Files of a view are put together as they come, and marks are folded away; addresses follow; orphans go."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.incremental.views.world import World

from headwater.derived import orphans, upkeep
from headwater.incremental.views import live as lives
from headwater.incremental.views import packing_up
from headwater.incremental.views.publishing import PREFIX, VECTORS
from headwater.incremental.views.record import ViewRecord


@pytest.mark.long
def test_many_small_refreshes_leave_few_files(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT id, name FROM orders")
    view.refresh()
    most = 0
    for number in range(45):
        world.orders.append([{"id": 1000 + number, "name": f"n{number}"}])
        assert view.refresh().rows_out == 1
        upkeep.wait()
        most = max(most, len(view.table.snapshot.files))
    assert most <= 20
    packed = [h for h in view.table.history() if h.operation == "OPTIMIZE"]
    assert len(packed) >= 2
    world.orders.delete("id >= 1000 AND id < 1040")
    assert view.refresh().rows_out == 40
    assert view.verify().equal


def test_files_with_many_dead_rows_are_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing_up, "_DEAD_ROWS", 5)
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT id, name FROM orders")
    view.refresh()
    world.orders.delete("id < 3")
    view.refresh()
    assert sum(f.num_deleted for f in view.table.snapshot.files.values()) == 3
    world.orders.delete("id < 10")
    view.refresh()
    upkeep.wait()
    assert sum(f.num_deleted for f in view.table.snapshot.files.values()) == 0
    lives.forget(view._environment.root, "v")
    world.orders.delete("id < 12")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_packing_everything_up(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT name, open FROM orders")
    for number in range(4):
        world.orders.append(world.orders.to_arrow().slice(number, 3))
        world.orders.delete(f"id = {number}")
        view.refresh()
    before = view.to_arrow().num_rows
    view.optimize()
    assert len(view.table.snapshot.files) == 1 and view.to_arrow().num_rows == before
    assert not any(f.deletion_vector for f in view.table.snapshot.files.values())
    assert view.table.changes(view.table.version - 1).is_empty
    version = view.table.version
    view.optimize()
    assert view.table.version == version, "there was nothing left to do"
    anew = world.lake.view("anew", "SELECT name FROM orders", policy="full")
    anew.refresh()
    world.orders.delete("id = 9")
    anew.refresh()
    anew.optimize()
    assert len(anew.table.snapshot.files) == 1 and anew.verify().equal


def test_orphans_are_swept_and_nothing_else(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", "SELECT id, name FROM orders")
    view.refresh()
    world.orders.delete("id < 4")
    view.refresh()
    place = Path(view.table.location)
    own = {str(p.relative_to(place)) for p in place.rglob("*") if p.is_file()}
    foreign = ["part-00000-other.c000.zstd.parquet", "notes.txt"]
    left = ["view-1-00000-x.parquet", "view-9-00000-y.parquet", "_change_data/view-9-00000-z.parquet"]
    left += ["view/deletion_vector_0.bin", ".view-9-00000-w.parquet.0.tmp"]
    (place / "view").mkdir(exist_ok=True)
    for name in foreign + left:
        (place / name).write_bytes(b"?")
    gone = orphans.sweep(
        view.table.snapshot, ViewRecord.of(view.table.snapshot).published, prefix=PREFIX, vectors_folder=VECTORS
    )
    assert sorted(gone) == sorted(left[:-1])
    assert {str(p.relative_to(place)) for p in place.rglob("*") if p.is_file()} == own | set(foreign)
    assert view.verify().equal
