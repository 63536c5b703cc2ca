"""Small files hold what files of any size would, and say the same of it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.base.storage import LocalStorage
from headwater.lake import data_files, small_files
from headwater.lake.definition import define

ROWS = pa.record_batch(
    {
        "id": pa.array([3, 1, None]),
        "name": pa.array(["b", "a", "ß" * 40]),
        "price": pa.array([1.5, float("nan"), None]),
        "share": pa.array([0.0, -2.5, None]),
        "amount": pa.array([Decimal("1.10"), None, Decimal("-7.00")], pa.decimal128(12, 2)),
        "day": pa.array([date(2026, 1, 31), None, date(1999, 12, 31)]),
        "tags": pa.array([["x"], [], None]),
    }
)


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_rows_and_statistics_are_those_of_a_large_file(tmp_path: Path, mapping: str) -> None:
    properties = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    metadata, storage = define(ROWS.schema, table_properties=properties), LocalStorage(tmp_path)
    path = small_files.new_path("view-3")
    add = small_files.write_rows(storage, metadata, ROWS, path)
    (other,) = data_files.write_rows(storage, data_files.Layout(metadata), [ROWS])
    assert add.path == path and add.size == (tmp_path / path).stat().st_size
    assert add.stats is not None and other.stats is not None
    assert json.loads(add.stats) == json.loads(other.stats)
    mine, theirs = pq.read_table(tmp_path / path), pq.read_table(tmp_path / other.path)
    assert mine.schema == theirs.schema
    assert str(mine.to_pylist()) == str(theirs.to_pylist())


def test_the_feed_tells_deleted_rows_from_inserted_ones(tmp_path: Path) -> None:
    metadata, storage = define(ROWS.schema), LocalStorage(tmp_path)
    path = small_files.new_path("view-3", feed=True)
    action = small_files.write_feed(storage, metadata, ROWS, path, deleted=1)
    body = action["cdc"]
    assert body["path"] == path and path.startswith("_change_data/view-3-")
    assert body["size"] == (tmp_path / path).stat().st_size and body["dataChange"] is False
    found = pq.read_table(tmp_path / path)
    assert found["_change_type"].to_pylist() == ["delete", "insert", "insert"]
    assert found["id"].to_pylist() == [3, 1, None]
