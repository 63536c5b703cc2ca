"""Snapshots: held, moved forward cheaply, and never changed under a reader."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.storage import LocalStorage
from headwater.lake import snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake


class Counting(LocalStorage):
    """Storage that remembers what was read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.reads: list[str] = []

    def get(self, path: str) -> bytes:
        self.reads.append(path)
        return super().get(path)


@pytest.fixture
def counted(lake: Lake) -> Iterator[tuple[Table, Counting]]:
    lake.write("t", [{"id": 0}])
    storage = Counting(lake.table("t").location)
    snapshot.forget(storage)
    yield Table(storage, "t"), storage
    snapshot.forget(storage)


def test_only_new_commits_are_read(lake: Lake, counted: tuple[Table, Counting]) -> None:
    table, storage = counted
    assert table.count() == 1
    storage.reads.clear()
    assert table.count() == 1
    assert storage.reads == []
    writer = hw.connect(lake.location).table("t")
    for i in range(1, 4):
        writer.append([{"id": i}])
    storage.reads.clear()
    snapshot.forget(storage)
    assert table.count() == 4
    writer.append([{"id": 4}])
    storage.reads.clear()
    assert table.count() == 5
    assert len(storage.reads) <= 1


def test_a_held_snapshot_is_repeatable(lake: Lake) -> None:
    table = lake.write("t", [{"id": i} for i in range(3)])
    held = table.snapshot
    pinned = table.at(version=0)
    reader = table.to_reader()
    table.delete("id = 1")
    table.append([{"id": 9}])
    table.optimize()
    assert (held.version, held.num_rows) == (0, 3)
    assert sorted(r["id"] for r in pinned.to_pylist()) == [0, 1, 2]
    assert reader.read_all().num_rows == 3
    assert table.snapshot.version == 3


def test_a_table_made_anew_is_not_taken_for_the_old_one(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.append([{"id": 2}])
    lake.drop("t")
    assert not table.exists()
    with pytest.raises(hw.NotFoundError):
        table.count()
    lake.write("t", [{"name": "x"}])
    assert table.to_pylist() == [{"name": "x"}]


@pytest.mark.parametrize("properties", [{}, {"delta.enableInCommitTimestamps": "true"}], ids=["plain", "own-times"])
def test_a_table_made_anew_behind_our_back(lake: Lake, tmp_path: Path, properties: dict[str, str]) -> None:
    table = lake.write("t", [{"id": 1}], properties=properties)
    assert table.count() == 1
    other = hw.connect(tmp_path / "other").write("t", [{"name": "x"}, {"name": "y"}], properties=properties)
    shutil.rmtree(table.location)
    shutil.copytree(other.location, table.location, copy_function=shutil.copyfile)
    assert table.to_pylist() == [{"name": "x"}, {"name": "y"}]
    other.append([{"name": "z"}])
    assert table.count() == 2


def test_a_table_that_went_back_in_time(lake: Lake) -> None:
    """A folder restored from a backup has fewer versions than we hold."""
    table = lake.write("t", [{"id": 1}])
    backup = Path(table.location).with_name("backup")
    shutil.copytree(table.location, backup)
    table.append([{"id": 2}])
    assert table.count() == 2
    shutil.rmtree(table.location)
    shutil.copytree(backup, table.location)
    assert table.count() == 1
    table.append([{"id": 3}])
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 3]


def test_the_cache_is_bounded(lake: Lake) -> None:
    with hw.settings.override(snapshot_cache=2):
        for i in range(5):
            lake.write(f"t{i}", [{"id": i}])
        assert [lake.table(f"t{i}").to_pylist() for i in range(5)] == [[{"id": i}] for i in range(5)]
        assert len(snapshot._held) <= 2


@pytest.mark.long
def test_readers_in_threads_see_whole_versions(lake: Lake) -> None:
    from concurrent.futures import ThreadPoolExecutor

    table = lake.write("t", pa.table({"id": range(10)}))

    def read(_: int) -> bool:
        rows = table.to_arrow()["id"].to_pylist()
        return len(rows) % 10 == 0 and len(set(rows)) == len(rows)

    with ThreadPoolExecutor(4) as pool:
        seen = pool.map(read, range(60))
        for i in range(1, 12):
            table.append(pa.table({"id": range(i * 10, i * 10 + 10)}))
        assert all(seen)


def test_racing_appends_are_all_there(lake: Lake) -> None:
    from concurrent.futures import ThreadPoolExecutor

    table = lake.write("t", [{"id": -1}])
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda i: hw.connect(lake.location).table("t").append([{"id": i}]), range(30)))
    assert sorted(r["id"] for r in table.to_pylist()) == list(range(-1, 30))
    assert table.version == 30


@pytest.mark.long
def test_racing_edits_of_one_file_are_all_there(lake: Lake) -> None:
    from concurrent.futures import ThreadPoolExecutor

    table = lake.write(
        "t", pa.table({"id": range(20), "n": [0] * 20}), properties={"delta.enableChangeDataFeed": "true"}
    )

    def edit(i: int) -> None:
        mine = hw.connect(lake.location).table("t")
        if i % 3 == 0:
            mine.delete(f"id = {i}")
        elif i % 3 == 1:
            mine.update({"n": "n + 1"}, where=f"id = {i}")
        else:
            mine.merge([{"id": i, "n": 5}], on=["id"]).when_matched_update_all().execute()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(edit, range(20)))
    expected = [(i, 1 if i % 3 == 1 else 5) for i in range(20) if i % 3]
    assert sorted((r["id"], r["n"]) for r in table.to_pylist()) == expected
    assert table.version == 20
    assert table.changes(after=0).apply_to(table.at(version=0).to_arrow()).num_rows == len(expected)


@pytest.mark.long
def test_racing_merges_insert_a_key_once(lake: Lake) -> None:
    from concurrent.futures import ThreadPoolExecutor

    table = lake.write("t", [{"id": 0}])

    def insert(i: int) -> None:
        mine = hw.connect(lake.location).table("t")
        mine.merge([{"id": i % 5}], on=["id"]).when_not_matched_insert_all().execute()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(20)))
    assert sorted(r["id"] for r in table.to_pylist()) == [0, 1, 2, 3, 4]
