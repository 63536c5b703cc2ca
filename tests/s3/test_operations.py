"""Every operation of a table, in one history, on an object store: each step has the rows that Python says it has."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import headwater as hw
from headwater.base import settings
from headwater.base.errors import NotFoundError
from headwater.lake import snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.faults import FaultPlan
from headwater.testing.object_server import ObjectServer


def rows(ids: Any, value: int = 0) -> pa.Table:
    ids = list(ids)
    return pa.table({"id": ids, "p": [f"p {i % 3}" for i in ids], "v": [value] * len(ids)})


class Model:
    """The table as a dict of its keys."""

    def __init__(self, t: Table, server: ObjectServer) -> None:
        self.t, self.server = t, server
        self.rows: dict[int, int] = {}
        self.past: list[dict[int, int]] = []

    def check(self) -> None:
        """The rows now; they are remembered for this version."""
        assert self._read(self.t.to_arrow()) == self.rows
        assert self.t.count() == len(self.rows)
        while len(self.past) <= self.t.version:
            self.past.append(dict(self.rows))
        self.past[self.t.version] = dict(self.rows)

    def check_others(self) -> None:
        dt = DeltaTable(self.t.location, storage_options=self.server.options)
        assert dt.version() == self.t.version
        engine = QueryBuilder().register("t", dt)
        assert self._read(pa.RecordBatchReader.from_stream(engine.execute("SELECT * FROM t")).read_all()) == self.rows

    def _read(self, table: pa.Table) -> dict[int, int]:
        found = dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))
        assert len(found) == table.num_rows
        return found


@pytest.mark.parametrize("partition_by", [[], ["p"]], ids=["plain", "partitioned"])
def test_a_whole_history(lake: Lake, server: ObjectServer, partition_by: list[str]) -> None:
    t = lake.write("sales.orders", rows(range(30)), partition_by=partition_by)
    model = Model(t, server)
    model.rows = dict.fromkeys(range(30), 0)
    model.check()

    t.append(rows(range(30, 40)))
    model.rows |= dict.fromkeys(range(30, 40), 0)
    model.check()

    t.delete("id % 10 = 3")  # inline vectors
    model.rows = {k: v for k, v in model.rows.items() if k % 10 != 3}
    model.check()

    with settings.override(small_vector_bytes=0):  # vectors in a file
        t.delete("id % 10 = 4")
    model.rows = {k: v for k, v in model.rows.items() if k % 10 != 4}
    model.check()
    assert any(e.path.endswith(".bin") for e in t.storage.list())

    t.update({"v": "v + 5"}, where="id < 10")
    model.rows = {k: v + 5 if k < 10 else v for k, v in model.rows.items()}
    model.check()

    merge = t.merge(rows([1, 2, 100, 101], 9), on=["id"]).when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    model.rows |= {1: 9, 2: 9, 100: 9, 101: 9}
    model.check()
    model.check_others()

    before = t.version
    t.optimize()
    t.optimize(zorder_by=["id", "v"])
    model.check()
    assert t.changes(after=before).num_rows == 0

    t.overwrite(rows([7, 8], 70), where="id IN (7, 8)")
    model.rows |= {7: 70, 8: 70}
    model.check()

    t.overwrite(rows(range(3), 1))
    model.rows = dict.fromkeys(range(3), 1)
    model.check()

    t.restore(version=1)
    model.rows = dict(model.past[1])
    model.check()

    t.add_columns({"note": pa.string()})
    model.check()
    t.checkpoint()
    snapshot.forget(t.storage)
    model.check()
    model.check_others()

    for version in (0, 3, 5):
        assert model._read(t.at(version).to_arrow()) == model.past[version]
    gained = {(r["id"], r["v"]) for r in t.changes(after=1, until=3).to_arrow().to_pylist()}
    assert {k for k, _ in gained} == {k for k in range(40) if k % 10 in (3, 4)}
    assert [h.operation for h in t.history(2)] == ["ADD COLUMNS", "RESTORE"]

    time.sleep(1.1)  # this server's clock ticks in seconds
    gone = t.vacuum(retention_hours=0, enforce_retention=False)
    assert len(gone) > 5
    model.check()
    with pytest.raises(NotFoundError):
        t.at(version=3).to_arrow()


def test_the_catalogue(lake: Lake, server: ObjectServer) -> None:
    lake.write("orders", rows(range(3)))
    lake.write("sales.cards", rows(range(4)))
    other = hw.connect(server.url("other"), storage_options=server.options)
    lake.attach("far", other.write("t", rows(range(5))).location)
    assert lake.tables() == ["far", "orders", "sales.cards"]
    assert lake.table("far").count() == 5
    assert "sales.cards" in lake and "cards" not in lake
    lake.drop("far")
    lake.drop("orders")
    assert lake.tables() == ["sales.cards"]
    assert other.table("t").count() == 5
    assert list(lake.catalog.root.child("orders").list()) == []
    lake.write("orders", rows(range(2)))
    assert lake.table("orders").count() == 2


def test_a_checkpoint_every_ten_commits_and_a_long_log(lake: Lake) -> None:
    t = lake.write("t", rows([0]))
    for n in range(1, 22):
        t.append(rows([n]))
    names = [e.path for e in t.storage.list("_delta_log")]
    assert sum(".checkpoint" in n for n in names) == 2 and any(n.endswith("_last_checkpoint") for n in names)
    snapshot.forget(t.storage)
    assert t.count() == 22 and t.at(4).count() == 5


def test_many_files_are_listed_in_pages(lake: Lake) -> None:
    storage = lake.catalog.root
    for n in range(25):
        storage.put(f"deep/{n:03d}/object", b"x")
    assert [e.path for e in storage.list("deep", after="deep/010/object")] == [
        f"deep/{n:03d}/object" for n in range(11, 25)
    ]
    assert storage.folders("deep") == [f"{n:03d}" for n in range(25)]


@pytest.mark.parametrize("point", ["storage.open_output.before_publish", "storage.put_if_absent.before_publish"])
def test_an_error_leaves_the_version_before(lake: Lake, point: str) -> None:
    t = lake.write("t", rows(range(5)))
    with FaultPlan().raise_at(point), pytest.raises(hw.HeadwaterError):
        t.append(rows(range(5, 9)))
    assert t.version == 0 and t.count() == 5
    t.append(rows(range(5, 9)))
    assert t.count() == 9


def test_a_commit_that_failed_after_it_was_stored_is_recognised(lake: Lake) -> None:
    t = lake.write("t", rows(range(5)))
    with FaultPlan().raise_at("storage.put_if_absent.after_publish"):
        assert t.append(rows(range(5, 9))).version == 1
    assert t.count() == 9


def test_folders_that_are_empty_are_gone(lake: Lake, server: ObjectServer) -> None:
    root = lake.catalog.root
    for path in ("kept/a/x", "gone/a/b/x", "gone/y"):
        root.put(path, b"1")
    root.remove_folder("gone")
    assert root.folders("") == ["gone", "kept"], "nothing is deleted that has something in it"
    assert root.get("gone/a/b/x") == b"1"
    for path in ("gone/a/b/x", "gone/y"):
        root.delete(path)
    root.remove_folder("gone")
    root.remove_folder("never/was")
    assert root.folders("") == ["kept"] and root.get("kept/a/x") == b"1"
    root.put("thing", b"1")
    root.remove_folder("thing")
    assert root.get("thing") == b"1", "an object is no folder"
