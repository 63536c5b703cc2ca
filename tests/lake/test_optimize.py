"""Optimize: the same rows in fewer files, and nothing for anybody to do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake import find
from headwater.lakehouse import Lake
from headwater.testing import FaultPlan


def test_small_files_become_one(lake: Lake) -> None:
    table = lake.write("t", [{"id": 0}])
    for i in range(1, 6):
        table.append([{"id": i}])
    done = table.optimize()
    assert (done["numRemovedFiles"], done["numAddedFiles"]) == (6, 1)
    assert sorted(r["id"] for r in table.to_pylist()) == list(range(6))
    assert table.changes(after=5).is_empty
    assert table.optimize().version == done.version


def test_vectors_are_folded_away(lake: Lake) -> None:
    table = lake.write("t", pa.table({"id": range(100)}))
    table.delete("id < 50")
    assert table.optimize()["numDeletionVectorsRemoved"] == 1
    (file,) = table.snapshot.files.values()
    assert (file.num_records, file.deletion_vector) == (50, None)
    assert table.detail()["num_deleted_rows"] == 0


def test_partitions_stay_apart(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1, "p": "a"}, {"id": 2, "p": None}], partition_by=["p"])
    table.append([{"id": 3, "p": "a"}, {"id": 4, "p": None}])
    table.optimize(where="p = 'a'")
    assert sorted(str(f.partition_values["p"]) for f in table.snapshot.files.values()) == ["None", "None", "a"]
    table.optimize()
    assert len(table.snapshot.files) == 2
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 2, 3, 4]
    with pytest.raises(hw.InputError):
        table.optimize(where="id = 1")


def test_zorder_lets_readers_skip_by_each_column(lake: Lake) -> None:
    rng = np.random.default_rng(1)
    data = pa.table({"x": rng.integers(0, 1000, 4000), "y": rng.integers(0, 1000, 4000), "s": ["t"] * 4000})
    with hw.settings.override(row_group_rows=125, target_file_bytes=1024):
        table = lake.write("t", data)
        table.optimize(zorder_by=["x", "y"], target_bytes=1024)
    assert len(table.snapshot.files) >= 8
    for column in ("x", "y"):
        wanted = find.condition(table.snapshot, f"{column} = 500")
        assert wanted is not None
        assert len(find.candidate_files(table.snapshot, wanted.conjuncts())) <= len(table.snapshot.files) // 2
        assert len(table.to_pylist(where=f"{column} = 500")) == data[column].to_pylist().count(500)
    assert sorted(map(tuple, (r.values() for r in table.to_pylist()))) == sorted(
        map(tuple, (r.values() for r in data.to_pylist()))
    )
    assert table.changes(after=0).is_empty


def test_what_cannot_be_asked(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1, "p": "a", "l": [1]}], partition_by=["p"])
    table.append([{"id": 2, "p": "a", "l": [2]}])
    with pytest.raises(hw.InputError):
        table.optimize(zorder_by=["p"])
    with pytest.raises(hw.NotFoundError):
        table.optimize(zorder_by=["nowhere"])
    with pytest.raises(hw.UnsupportedError):
        table.optimize(zorder_by=["l"])
    with pytest.raises(hw.InputError):
        table.optimize(target_bytes=0)
    assert table.version == 1
    assert sum(e.path.endswith(".parquet") for e in table.storage.list("")) == 2


def test_only_the_group_that_another_writer_changed_is_written_again(lake: Lake) -> None:
    rows = [{"p": p, "id": i} for p in "ab" for i in range(20)]
    table = lake.write("t", rows[::2], partition_by=["p"])
    table.append(rows[1::2])
    written: list[str] = []

    def meddle(point: str, path: str) -> None:
        written.append(path)
        if len(written) == 2:  # both partitions are rewritten, nothing is committed
            lake.table("t").delete("p = 'a' AND id = 3")

    with FaultPlan().call_at("lake.data_file.after_publish", meddle):
        table.optimize()
    assert [path.split("/")[0] for path in written] == ["p=a", "p=b", "p=a"]
    assert len(table.snapshot.files) == 2
    assert table.count() == 39
    assert (
        len(table.vacuum(retention_hours=0, enforce_retention=False, dry_run=True)) == 4
    )  # what was written in vain is gone
