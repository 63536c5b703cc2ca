"""Delete and update: which rows, which files, and what is left of them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake


def test_delete_marks_rows_and_rewrites_nothing(lake: Lake) -> None:
    table = lake.write("t", pa.table({"id": range(100)}))
    (path,) = table.snapshot.files
    done = table.delete("id < 10")
    assert (done["numDeletedRows"], done["numDeletionVectorsUpdated"], done["numRewrittenFiles"]) == (10, 1, 0)
    table.delete("id < 20")
    assert list(table.snapshot.files) == [path]
    assert (table.count(), table.detail()["num_deleted_rows"]) == (80, 20)


def test_delete_without_vectors_rewrites_the_file(lake: Lake) -> None:
    table = lake.write("t", pa.table({"id": range(100)}), properties={"delta.enableDeletionVectors": "false"})
    done = table.delete("id < 10")
    assert (done["numDeletedRows"], done["numRewrittenFiles"]) == (10, 1)
    assert table.count() == 90


def test_a_file_whose_last_row_goes_is_removed(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}, {"id": 2}])
    table.delete("id = 1")
    table.delete("id = 2")
    assert (table.count(), len(table.snapshot.files)) == (0, 0)
    assert table.delete("id = 3").version == 2


def test_vectors_too_large_for_the_log_get_a_file(lake: Lake) -> None:
    with hw.settings.override(small_vector_bytes=0):
        table = lake.write("t", pa.table({"id": range(1000)}))
        table.delete("id % 3 = 0")
    vectors = [e.path for e in table.storage.list("") if e.path.startswith("deletion_vector")]
    assert len(vectors) == 1
    table.delete("id % 3 = 1")
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(2, 1000, 3))


def test_delete_everything(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.append([{"id": 2}])
    table.delete()
    assert table.to_pylist() == []
    assert table.at(version=1).count() == 2


def test_nothing_to_delete_is_no_commit(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    assert table.delete("id = 5").version == 0
    assert table.update({"id": "2"}, where="id = 5").version == 0
    assert table.version == 0


def test_unknown_is_not_true(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}, {"id": None}])
    table.delete("id <> 1")
    table.delete("NOT (id = 1)")
    assert table.count() == 2


def test_a_condition_on_partitions_opens_no_file(lake: Lake) -> None:
    table = lake.write("t", [{"id": i, "p": p} for i, p in enumerate(["a b", "é", None, "a b"])], partition_by=["p"])
    for entry in [e for e in table.storage.list("") if e.path.endswith(".parquet")]:
        table.storage.put(entry.path, b"not a parquet file")
    table.delete("p = 'a b'")
    table.delete("p IS NULL")
    assert [f.partition_values for f in table.snapshot.files.values()] == [{"p": "é"}]


def test_update_sets_several_columns_from_the_old_row(lake: Lake) -> None:
    table = lake.write("t", [{"a": 1, "b": 2}, {"a": 5, "b": 6}])
    done = table.update({"a": "b", "b": "a"}, where="a = 1")
    assert done["numUpdatedRows"] == 1
    assert sorted(r["a"] for r in table.to_pylist()) == [2, 5]
    table.update({"A": "a + 1"})
    assert sorted((r["a"], r["b"]) for r in table.to_pylist()) == [(3, 1), (6, 6)]


def test_update_moves_rows_between_partitions(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1, "p": "x"}, {"id": 2, "p": "y"}], partition_by=["p"])
    table.update({"p": "NULL"}, where="id = 1")
    assert sorted((r["id"], r["p"]) for r in table.to_pylist()) == [(1, None), (2, "y")]
    assert [r["id"] for r in table.to_pylist(where="p IS NULL")] == [1]


def test_update_of_nested_columns_keeps_them(lake: Lake) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "s": {"x": 1, "l": [1, None]}, "m": [("k", 1)]},
        {"id": 2, "s": None, "m": None},
    ]
    kinds = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64()))])),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    table = lake.write("t", pa.Table.from_pylist(rows, kinds))
    table.update({"id": "id + 10"}, where="id = 1 OR s IS NULL")
    assert sorted(table.to_pylist(), key=lambda r: r["id"]) == [{**rows[0], "id": 11}, {**rows[1], "id": 12}]


def test_update_to_what_does_not_fit_changes_nothing(lake: Lake) -> None:
    table = lake.write("t", pa.table({"id": pa.array([1], pa.int8()), "d": [dt.date(2020, 1, 1)]}))
    with pytest.raises(hw.HeadwaterError):
        table.update({"id": "1000"})
    with pytest.raises(hw.SchemaError):
        table.update({"id": "'x'"})
    with pytest.raises(hw.InputError):
        table.update({})
    with pytest.raises(hw.NotFoundError):
        table.update({"nowhere": "1"})
    with pytest.raises(hw.InputError):
        table.update({"id": 5})  # type: ignore[dict-item]
    assert table.version == 0
    assert sum(1 for e in table.storage.list("") if e.path.endswith(".parquet")) == 1


def test_old_versions_cannot_be_written(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    old = table.at(version=0)
    for attempt in (
        old.delete,
        lambda: old.append([{"id": 2}]),
        old.optimize,
        old.vacuum,
    ):
        with pytest.raises(hw.InputError):
            attempt()
