"""Restore: an older version becomes the newest, rows, schema and all."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake


def test_rows_come_back(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}, {"id": 2}])
    table.delete("id = 1")
    table.append([{"id": 3}])
    done = table.restore(0)
    assert (done.version, sorted(r["id"] for r in table.to_pylist())) == (3, [1, 2])
    change = table.changes(after=2).to_arrow().to_pylist()
    assert sorted((r["id"], r["_weight"]) for r in change) == [(1, 1), (3, -1)]
    table.restore(2)
    assert sorted(r["id"] for r in table.to_pylist()) == [2, 3]
    assert table.history(1)[0].operation == "RESTORE"


def test_restoring_what_is_there_is_no_commit(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.append([{"id": 2}])
    assert table.restore(1).version == 1
    assert table.version == 1


def test_vectors_come_back(lake: Lake) -> None:
    table = lake.write("t", pa.table({"id": range(10)}))
    table.delete("id < 3")
    table.delete("id < 6")
    table.restore(1)
    assert sorted(r["id"] for r in table.to_pylist()) == list(range(3, 10))
    table.delete("id = 9")
    assert table.count() == 6


def test_schema_and_properties_come_back(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}], properties={"delta.columnMapping.mode": "name"})
    table.add_columns({"extra": pa.int64()})
    table.set_properties({"owner": "me"})
    table.restore(0)
    assert table.schema.names == ["id"]
    assert "owner" not in table.detail()["properties"]
    table.add_columns({"other": pa.int64()})
    ids = [f.metadata["delta.columnMapping.id"] for f in table.snapshot.schema.fields]
    assert ids == [1, 3], "an id is never given twice"


def test_a_lost_file_is_found_out_before_the_commit(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    (path,) = table.snapshot.files
    table.overwrite([{"id": 2}])
    os.unlink(Path(table.location) / path)
    with pytest.raises(hw.NotFoundError):
        table.restore(0)
    assert (table.version, table.to_pylist()) == (1, [{"id": 2}])


def test_by_timestamp(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.append([{"id": 2}])
    base = datetime.now(UTC) - timedelta(days=1)
    for version in (0, 1):
        moment = (base + timedelta(hours=version)).timestamp()
        os.utime(Path(table.location) / f"_delta_log/{version:020d}.json", (moment, moment))
    table.restore(timestamp=base + timedelta(minutes=1))
    assert table.to_pylist() == [{"id": 1}]


def test_what_cannot_be_restored(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    for version in (5, -1):
        with pytest.raises(hw.InputError):
            table.restore(version)
    with pytest.raises(hw.InputError):
        table.restore()
