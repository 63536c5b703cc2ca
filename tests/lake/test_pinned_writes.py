"""One operation acts on one snapshot, and what others do to the table meanwhile is noticed when it commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headwater as hw
from headwater.base.storage import Storage
from headwater.lake import log, snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.faults import FaultPlan

ROWS = [{"id": i, "v": "a"} for i in range(4)]
WRITES: dict[str, Callable[[Table], Any]] = {
    "append": lambda t: t.append(ROWS),
    "overwrite": lambda t: t.overwrite(ROWS),
    "update": lambda t: t.update({"v": "'z'"}, where="id = 2"),
    "merge": lambda t: t.merge([{"id": 9, "v": "m"}], on=["id"]).when_not_matched_insert_all().execute(),
    "optimize": lambda t: t.optimize(),
    "replace": lambda t: t.create(t.schema, mode="replace", data=ROWS),
}


def emptied(storage: Storage) -> None:
    """What another process leaves of a table that it drops."""
    for entry in list(storage.list("")):
        storage.delete(entry.path)


def copied(source: Storage, target: Storage) -> None:
    for entry in list(source.list("")):
        target.put(entry.path, source.get(entry.path))


def meanwhile(action: Callable[[], None]) -> FaultPlan:
    """Do something while an operation writes its data file: after it has looked at the table, before it commits."""

    def act(_point: str, _detail: str) -> None:
        action()

    return FaultPlan().call_at("storage.*.before_publish", act, nth=1)


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.write("t", ROWS)
    table.append(ROWS)
    return table


@pytest.mark.parametrize("name", WRITES)
def test_a_table_that_is_dropped_meanwhile(name: str, table: Table) -> None:
    with meanwhile(lambda: emptied(table.storage)) as plan, pytest.raises(hw.InputError):
        WRITES[name](table)
    assert plan.reached
    assert not list(table.storage.list(log.LOG)), "no commit without the ones before it"
    assert not table.exists() and table.current() is None


@pytest.mark.parametrize("name", WRITES)
def test_a_table_that_is_created_again_meanwhile(name: str, table: Table, lake: Lake) -> None:
    other = lake.write("u", [{"id": 7, "v": "other"}])
    other.append([{"id": 8, "v": "other"}])

    def again() -> None:
        emptied(table.storage)
        copied(other.storage, table.storage)

    with meanwhile(again), pytest.raises(hw.ConflictError, match="created again"):
        WRITES[name](table)
    assert table.version == 1 and sorted(r["id"] for r in table.to_pylist()) == [7, 8]


@pytest.mark.parametrize("name", WRITES)
def test_a_commit_of_others_meanwhile(name: str, table: Table) -> None:
    """The other's rows are there afterwards, or were replaced by an operation that replaces all rows."""
    state = table.snapshot.state

    def other() -> None:
        table.append([{"id": 50, "v": "theirs"}])
        snapshot.remember(table.storage, state)

    with meanwhile(other):
        WRITES[name](table)
    found = [r["id"] for r in table.to_pylist()]
    assert (50 in found) == (name not in ("overwrite", "replace"))
    assert table.version == 3


def test_a_merge_that_waits_acts_on_what_is_there_then(table: Table) -> None:
    merge = table.merge([{"id": 60, "v": "m"}], on=["id"]).when_not_matched_insert_all()
    table.append([{"id": 60, "v": "first"}])
    assert merge.execute()["numTargetRowsInserted"] == 0
    assert [r["v"] for r in table.to_pylist() if r["id"] == 60] == ["first"]


def test_a_name_that_stands_for_another_place_by_now(table: Table, lake: Lake) -> None:
    """A process that knows a table does not ask whether its name is attached, until the table is gone."""
    elsewhere = hw.connect(f"{lake.location}-elsewhere", storage_options=dict(lake.catalog.root.options) or None)
    elsewhere.write("far", [{"id": 1, "v": "far"}])
    held = snapshot.latest(table.storage)
    lake.drop("t")
    lake.attach("t", elsewhere.table("far").location)
    snapshot._held[held.storage.url] = held  # as a process that saw neither
    assert "t" in lake
    snapshot._held[held.storage.url] = held
    assert lake.table("t").to_pylist() == [{"id": 1, "v": "far"}]
    snapshot._held[held.storage.url] = held
    assert lake.table("t").exists() and lake.sql("SELECT v FROM t").to_arrow().to_pylist() == [{"v": "far"}]
    snapshot._held[held.storage.url] = held
    lake.table("t").append([{"id": 2, "v": "far"}])
    assert elsewhere.table("far").count() == 2


def test_the_newest_commit_is_at_hand(lake: Lake) -> None:
    """What a writer has just written is not read again to follow it."""
    table = lake.write("t", ROWS)
    table.append(ROWS)
    assert table.snapshot.state.newest is not None and table.snapshot.state.newest.version == 1
    data = table.storage.get(log.commit_path(1))
    read = log.read_commit(table.storage, 1)
    assert table.snapshot.state.newest.adds == read.adds and len(data) == (read.origin or (0, 0))[0]
    assert table.at(version=0).snapshot.state.newest == log.read_commit(table.storage, 0)
