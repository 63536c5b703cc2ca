"""Many processes write one table: nothing is lost, nothing is there twice, versions have no gap.

Writers change rows of their own and count up one row that all share; readers, OPTIMIZE and VACUUM run beside them. At
the end the table is the sum of what the writers say they did. ``--slow`` runs 16 processes with 50 commits each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.durability.writers import COUNTER, SCHEMA, Writers
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base import settings
from headwater.base.errors import ConflictError, StorageError
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.faults import FaultPlan

ROWS = [{"id": 1, "owner": 0, "v": 1}, {"id": 2, "owner": 0, "v": 2}]
# Longer than any process holds a version or an uncommitted file, however busy the machine is.
RETENTION_S = PATIENCE_S
# Shorter than the long storm, so that it also loses files that were in use once.
SHORT_RETENTION_S = 15


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return hw.connect(tmp_path / "lake")


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writers]:
    made = Writers(tmp_path_factory.mktemp("writers"))
    yield made
    made.close()


def check_dense(t: Table) -> None:
    versions = sorted(int(p.stem) for p in (Path(t.location) / "_delta_log").glob("*.json"))
    assert versions == list(range(t.version + 1))


def run_storm(
    t: Table,
    processes: Writers,
    *,
    writers: int,
    commits: int,
    readers: int,
    delta_rs: int = 0,
    partitioned: bool = False,
    retention_s: float = RETENTION_S,
    properties: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    given = {"delta.checkpointInterval": "10", **(properties or {})}
    t.create(SCHEMA, partition_by=["owner"] if partitioned else [], properties=given)
    t.append([{"id": COUNTER, "owner": -1, "v": 0}])
    stop = Path(t.location).parent / "stop"
    for n in range(40):  # what crashed writers left, long ago
        orphan = Path(t.location) / f"part-{n:05d}.parquet"
        orphan.write_bytes(b"PAR1")
        os.utime(orphan, (1, 1))
    start, results = processes.start, processes.results
    began = time.monotonic()
    beside = [start("read", location=t.location, stop=str(stop)) for _ in range(readers)]
    beside.append(start("keep_up", location=t.location, stop=str(stop), hours=retention_s / 3600))
    work = [start("write", location=t.location, owner=n, commits=commits) for n in range(1, writers + 1)]
    work += [start("write_with_delta_rs", location=t.location, owner=100 + n, commits=commits) for n in range(delta_rs)]
    done = results(work)
    seconds = time.monotonic() - began
    stop.touch()
    *read, upkeep = results(beside)

    expected = {int(k): v for writer in done for k, v in writer["model"].items()}
    expected[COUNTER] = sum(writer["counted"] for writer in done)
    rows = t.to_arrow()
    assert rows.num_rows == len(expected), "a row for each key"
    assert dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)) == expected
    check_dense(t)
    made = [v for writer in done for v in writer["versions"]]
    assert len(made) == len(set(made)), "each commit has a version of its own"
    assert all(r["last"] >= 0 for r in read)
    assert upkeep["removed"] >= 40
    return {
        "seconds": round(seconds, 1),
        "versions": t.version + 1,
        "counted": expected[COUNTER],
        "snapshots": sum(r["seen"] for r in read),
        **upkeep,
    }


def check_readers_agree(t: Table) -> None:
    import polars as pl

    assert pl.read_delta(t.location).sort("id").to_dicts() == t.to_arrow().sort_by("id").to_pylist()


@pytest.mark.long
def test_storm(lake: Lake, writers: Writers) -> None:
    t = lake.table("t")
    figures = run_storm(t, writers, writers=6, commits=8, readers=2)
    print(figures)
    check_readers_agree(t)


@pytest.mark.long
def test_storm_with_another_implementation(lake: Lake, writers: Writers) -> None:
    t = lake.table("t")
    properties = {"delta.enableDeletionVectors": "false"}
    figures = run_storm(
        t, writers, writers=3, commits=8, readers=1, delta_rs=2, partitioned=True, properties=properties
    )
    print(figures)
    check_readers_agree(t)


@pytest.mark.slow
def test_long_storm(lake: Lake, writers: Writers) -> None:
    t = lake.table("t")
    figures = run_storm(t, writers, writers=16, commits=50, readers=4, retention_s=SHORT_RETENTION_S)
    print(figures)
    assert figures["versions"] >= 16 * 50 + 2
    check_readers_agree(t)


@pytest.mark.long
def test_one_transaction_id_is_applied_once(lake: Lake, writers: Writers) -> None:
    t = lake.table("t").create(SCHEMA)
    work = [writers.start("append_once", location=t.location, owner=n, app="job", number=7) for n in range(4)]
    found = writers.results(work)
    assert sum(not r["skipped"] for r in found) == 1
    assert t.count() == 1
    assert not t.append(ROWS, txn=("job", 8)).skipped
    assert t.append(ROWS, txn=("job", 8)).skipped and t.append(ROWS, txn=("job", 3)).skipped
    assert t.count() == 3


@pytest.mark.long
def test_a_table_that_all_create_at_once_is_created_once(lake: Lake, writers: Writers) -> None:
    location = lake.table("t").location
    writers.results([writers.start("create", location=location, owner=n) for n in range(4)])
    t = lake.table("t")
    assert t.count() == 1, "all used one transaction id, the one that created the table too"
    check_dense(t)


# ---------------------------------------------------------------- two writers, step by step


def during_commit(of: Table, other: Any) -> FaultPlan:
    """``other`` runs when the first attempt of ``of`` is about to be committed."""
    return FaultPlan().call_at("lake.commit.before_publish", lambda _point, _path: other(), nth=1)


def ids(t: Table) -> list[int]:
    return sorted(t.to_arrow()["id"].to_pylist())


def test_an_overwrite_leaves_nothing_of_a_concurrent_append(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    with during_commit(t, lambda: lake.table("t").append([{"id": 50, "owner": 0, "v": 0}])):
        t.overwrite([{"id": 9, "owner": 0, "v": 0}])
    assert ids(t) == [9] and t.version == 2


def test_an_overwrite_on_a_stated_version_is_a_conflict_instead(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    with (
        during_commit(t, lambda: lake.table("t").append([{"id": 50, "owner": 0, "v": 0}])),
        pytest.raises(ConflictError) as caught,
    ):
        t.overwrite([{"id": 9, "owner": 0, "v": 0}], if_version=0)
    assert caught.value.code == "E4001"
    assert ids(t) == [1, 2, 50]


def test_a_partial_overwrite_replaces_a_row_that_came_at_the_same_time(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    with during_commit(
        t, lambda: lake.table("t").append([{"id": 5, "owner": 7, "v": 0}, {"id": 6, "owner": 0, "v": 0}])
    ):
        t.overwrite([{"id": 9, "owner": 0, "v": 0}], where="owner = 0")
    assert ids(t) == [5, 9]


def test_a_delete_takes_a_row_that_came_at_the_same_time(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    with during_commit(t, lambda: lake.table("t").append([{"id": 50, "owner": 0, "v": 0}])):
        t.delete("id > 1")
    assert ids(t) == [1]


def test_an_update_is_made_again_on_the_row_that_another_changed(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    with during_commit(t, lambda: lake.table("t").update({"v": "v * 10"}, where="id = 2")):
        t.update({"v": "v + 1"}, where="id = 2")
    assert t.to_arrow(where="id = 2")["v"].to_pylist() == [21]


def test_a_merge_inserts_a_row_that_another_deleted_meanwhile(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    with during_commit(t, lambda: lake.table("t").delete("id = 2")):
        t.merge([{"id": 2, "owner": 0, "v": 77}], on=["id"]).when_not_matched_insert_all().execute()
    # Read at version 0 there was nothing to insert, so there is nothing to commit; with a second row there is.
    t.overwrite(ROWS)
    source = [{"id": 2, "owner": 0, "v": 77}, {"id": 3, "owner": 0, "v": 78}]
    with during_commit(t, lambda: lake.table("t").delete("id = 2")):
        t.merge(source, on=["id"]).when_not_matched_insert_all().execute()
    assert ids(t) == [1, 2, 3]


def test_two_merges_of_one_new_key_insert_it_once(lake: Lake) -> None:
    t = lake.write("t", ROWS)

    def merge() -> None:
        merging = lake.table("t").merge([{"id": 3, "owner": 0, "v": 1}], on=["id"])
        merging.when_matched_update({"v": "t.v + s.v"}).when_not_matched_insert_all().execute()

    with during_commit(t, merge):
        merge()
    assert t.to_arrow(where="id = 3")["v"].to_pylist() == [2]


def test_optimize_beside_a_delete_loses_neither(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    t.append([{"id": 3, "owner": 0, "v": 3}])
    with during_commit(t, lambda: lake.table("t").delete("id = 2")):
        t.optimize()
    assert ids(t) == [1, 3] and len(t.snapshot.files) == 1


def test_a_constraint_is_checked_against_rows_that_came_meanwhile(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    with (
        during_commit(t, lambda: lake.table("t").append([{"id": -5, "owner": 0, "v": 0}])),
        pytest.raises(hw.HeadwaterError) as caught,
    ):
        t.add_constraint("positive", "id > 0")
    assert caught.value.code == "E2002"


def test_an_append_meets_a_constraint_that_came_meanwhile(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    before = sorted(Path(t.location).glob("*.parquet"))
    with (
        during_commit(t, lambda: lake.table("t").add_constraint("positive", "id > 0")),
        pytest.raises(ConflictError),
    ):
        t.append([{"id": -5, "owner": 0, "v": 0}])
    assert ids(t) == [1, 2]
    assert sorted(Path(t.location).glob("*.parquet")) == before, "its file is gone"


def test_a_restore_that_loses_the_race_deletes_no_old_file(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    t.overwrite([{"id": 9, "owner": 0, "v": 0}])
    with (
        settings.override(commit_retries=0),
        during_commit(t, lambda: lake.table("t").append(ROWS)),
        pytest.raises(ConflictError) as caught,
    ):
        t.restore(version=0)
    assert caught.value.code == "E4002"
    assert ids(t.at(version=0)) == [1, 2]
    assert ids(t) == [1, 2, 9]


# ---------------------------------------------------------------- results that are not known


@pytest.mark.parametrize("act", ["append", "delete", "create"])
def test_a_commit_that_failed_after_it_was_stored_is_recognised(lake: Lake, act: str) -> None:
    t = lake.table("t")
    if act != "create":
        t.write(ROWS)
    with FaultPlan().raise_at("storage.put_if_absent.after_publish"):
        if act == "append":
            assert t.append([{"id": 3, "owner": 0, "v": 3}]).version == 1
        elif act == "delete":
            assert t.delete("id = 2").version == 1
        else:
            t.write(ROWS)
    assert ids(t) == {"append": [1, 2, 3], "delete": [1], "create": [1, 2]}[act]


def test_files_of_a_commit_of_unknown_result_stay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    t = lake.write("t", ROWS)
    get = type(t.storage).get

    def unreadable(self: Any, path: str) -> bytes:
        if path.endswith("00000000000000000001.json"):
            raise StorageError.failed(path, "the network is down")
        return get(self, path)

    with monkeypatch.context() as patch, FaultPlan().raise_at("storage.put_if_absent.after_publish"):
        patch.setattr(type(t.storage), "get", unreadable)
        with pytest.raises(StorageError) as caught:
            t.append([{"id": 3, "owner": 0, "v": 3}])
    assert caught.value.code == "E6005"
    assert ids(lake.table("t")) == [1, 2, 3], "it was committed, and its rows are there"


@pytest.mark.long
def test_threads_of_one_process(lake: Lake) -> None:
    t = lake.write("t", [{"id": COUNTER, "owner": -1, "v": 0}])

    def work(owner: int) -> None:
        for n in range(4):
            t.append([{"id": owner * 100 + n, "owner": owner, "v": n}])
            t.update({"v": "v + 1"}, where=f"id = {COUNTER}")
            t.delete(f"id = {owner * 100 + n} AND v % 2 = 1")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1, 5)))
    assert ids(t) == sorted([COUNTER, *(o * 100 + n for o in range(1, 5) for n in (0, 2))])
    assert t.to_arrow(where=f"id = {COUNTER}")["v"].to_pylist() == [16]
    check_dense(t)
