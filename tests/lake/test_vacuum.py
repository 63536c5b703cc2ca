"""Vacuum: what no version within the retention needs goes, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake import vacuum as room
from headwater.lake.table import Table
from headwater.lakehouse import Lake

DAY_MS = 24 * 3_600_000


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """As if it were ``days`` later."""
    monkeypatch.setattr(room, "now_ms", lambda: int(time.time() * 1000 + days * DAY_MS))


def data_files(table: Table) -> set[str]:
    return {e.path for e in table.storage.list("") if not e.path.startswith("_delta_log")}


def test_files_within_the_retention_stay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with hw.settings.override(small_vector_bytes=0):
        table = lake.write("t", pa.table({"id": range(10)}))
        table.delete("id < 3")
        table.delete("id < 5")
    table.overwrite([{"id": 99}])
    before = data_files(table)
    assert len(table.vacuum()) == 0
    later(monkeypatch, 6.9)
    assert len(table.vacuum()) == 0
    assert data_files(table) == before
    assert [table.at(version=v).count() for v in range(4)] == [10, 7, 5, 1]


def test_files_past_the_retention_go(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with hw.settings.override(small_vector_bytes=0):
        table = lake.write("t", pa.table({"id": range(10)}))
        table.delete("id < 3")
        table.delete("id < 5")
        table.append([{"id": 50}])
    table.delete("id = 50")
    later(monkeypatch, 7.1)
    would = table.vacuum(dry_run=True)
    assert would.dry_run and len(would) == 2
    done = table.vacuum()
    assert set(done.files) == set(would.files)
    assert done.bytes > 0
    assert len(data_files(table)) == 2  # a data file, and the newest vector's
    assert sorted(r["id"] for r in table.to_pylist()) == list(range(5, 10))
    with pytest.raises(hw.NotFoundError):
        table.at(version=1).to_pylist()


def test_files_of_no_version_go_when_they_are_old(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1, "p": "a b"}], partition_by=["p"])
    root = Path(table.location)
    for name in ("orphan.parquet", "p=a%20b/orphan.parquet", "deletion_vector_x.bin", ".part.0123.tmp"):
        (root / name).write_bytes(b"x")
        os.utime(root / name, (1, 1))
    (root / "young.parquet").write_bytes(b"x")
    done = table.vacuum()
    assert set(done.files) == {"orphan.parquet", "p=a%20b/orphan.parquet", "deletion_vector_x.bin"}
    assert not (root / ".part.0123.tmp").exists()
    assert (root / "young.parquet").exists()
    assert table.to_pylist() == [{"id": 1, "p": "a b"}]


def test_what_others_keep_beside_the_data_stays(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    root = Path(table.location)
    for name in ("_headwater/state.arrow", "_delta_index/x", ".hidden/file", "_delta_log/note.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"x")
        os.utime(root / name, (1, 1))
    nested = hw.connect(root).write("inner", [{"id": 2}])
    for entry in nested.storage.list(""):
        os.utime(Path(nested.location) / entry.path, (1, 1))
    assert len(table.vacuum()) == 0
    assert nested.to_pylist() == [{"id": 2}]


def test_the_change_feed_goes_with_its_age(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.write("t", [{"id": 1}, {"id": 2}], properties={"delta.enableChangeDataFeed": "true"})
    table.update({"id": "id + 1"}, where="id = 2")
    assert len(table.vacuum(dry_run=True)) == 0
    later(monkeypatch, 8)
    assert [f.split("/")[0] for f in table.vacuum().files] == ["_change_data"]
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 3]


def test_restored_files_stay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.write("t", [{"id": 1}])
    table.overwrite([{"id": 2}])
    table.restore(0)
    later(monkeypatch, 8)
    table.checkpoint()
    assert len(table.vacuum()) == 1
    assert table.to_pylist() == [{"id": 1}]


def test_a_shorter_retention_must_be_meant(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.overwrite([{"id": 2}])
    with pytest.raises(hw.InputError):
        table.vacuum(retention_hours=0)
    with pytest.raises(hw.InputError):
        table.vacuum(retention_hours=-1, enforce_retention=False)
    time.sleep(0.01)
    assert len(table.vacuum(retention_hours=0, enforce_retention=False)) == 1
    assert table.to_pylist() == [{"id": 2}]


def test_the_tables_own_retention_counts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.write("t", [{"id": 1}], properties={"delta.deletedFileRetentionDuration": "interval 1 days"})
    table.overwrite([{"id": 2}])
    later(monkeypatch, 0.9)
    assert len(table.vacuum()) == 0
    later(monkeypatch, 1.1)
    assert len(table.vacuum()) == 1


@pytest.mark.parametrize("prefix", ["file://", "file:", ""])
def test_files_named_by_their_whole_path_stay(lake: Lake, prefix: str) -> None:
    table = lake.write("t", [{"id": 1}])
    (name,) = table.snapshot.files
    entry = "_delta_log/00000000000000000000.json"
    whole = f'"path":"{prefix}{table.location}/{name}"'.encode()
    table.storage.put(entry, table.storage.get(entry).replace(f'"path":"{name}"'.encode(), whole))
    os.utime(Path(table.location) / name, (1, 1))
    assert len(table.vacuum(dry_run=True)) == 0


def test_what_a_killed_spark_job_left_goes(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    job = f"spark-{'0a' * 16}/_temporary/0/_temporary/attempt_0/part-00000.parquet"
    table.storage.put(job, b"half a file")
    assert table.vacuum(retention_hours=0, enforce_retention=False).files == (job,)
    assert table.storage.head(job) is None
    assert table.to_pylist() == [{"id": 1}]


def test_what_was_written_in_the_same_millisecond_is_as_old_as_no_retention(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.write("t", [{"id": 1}])
    table.storage.put("left.parquet", b"half a file")
    entry = table.storage.head("left.parquet")
    assert entry is not None
    monkeypatch.setattr("headwater.lake.vacuum.now_ms", lambda: entry.modified_ms)
    assert table.vacuum(retention_hours=0, enforce_retention=False).files == ("left.parquet",)
