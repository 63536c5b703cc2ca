"""Overwriting: all rows, those that meet a condition, or the partitions that come in."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake.table import Table
from headwater.lakehouse import Lake

FEED = {"delta.enableChangeDataFeed": "true"}


def _sorted(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in table.to_pylist())


def test_whole(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}, {"id": 2}])
    table.overwrite([{"id": 3}])
    assert table.to_pylist() == [{"id": 3}]
    assert table.at(version=0).count() == 2
    table.overwrite([])
    assert table.to_pylist() == []


def test_where(lake: Lake) -> None:
    table = lake.write("t", [{"id": i, "k": i % 2} for i in range(6)])
    table.overwrite([{"id": 10, "k": 1}], where="k = 1")
    assert _sorted(table) == [(0, 0), (2, 0), (4, 0), (10, 1)]
    with pytest.raises(hw.ConstraintError, match="k = 1"):
        table.overwrite([{"id": 11, "k": 0}], where="k = 1")
    with pytest.raises(hw.ConstraintError):
        table.overwrite([{"id": 11, "k": None}], where="k = 1")
    assert table.version == 1


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_where_with_new_columns_and_a_feed(lake: Lake, vectors: str) -> None:
    table = lake.write("t", [{"id": 1}, {"id": 2}], properties={**FEED, "delta.enableDeletionVectors": vectors})
    table.overwrite([{"id": 2, "extra": "x"}], where="id = 2", schema_mode="merge")
    assert table.to_pylist() == [{"id": 1, "extra": None}, {"id": 2, "extra": "x"}]
    assert table.changes(after=0).to_arrow().sort_by("_weight").to_pylist() == [
        {"id": 2, "extra": None, "_weight": -1},
        {"id": 2, "extra": "x", "_weight": 1},
    ]


def test_dynamic_partitions(lake: Lake) -> None:
    day = {"a": dt.date(2024, 1, 1), "b": dt.date(2024, 1, 2), None: None}
    rows = [{"id": i, "day": day[d]} for i, d in enumerate(["a", "b", None, "a"])]
    table = lake.write("t", rows, partition_by=["day"])
    table.overwrite([{"id": 9, "day": day["a"]}, {"id": 8, "day": None}], partitions="dynamic")
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 8, 9]
    assert table.overwrite(pa.table({"id": pa.array([], pa.int64())}), partitions="dynamic").version == 1


def test_partitions_are_values_not_spellings(lake: Lake) -> None:
    """Another writer may spell 2024-01-01T10:00:00Z otherwise in its actions; it is the same partition."""
    at = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    table = lake.write("t", [{"id": 1, "at": at}], partition_by=["at"])
    entry = "_delta_log/00000000000000000000.json"
    written = table.storage.get(entry)
    table.storage.put(entry, written.replace(b"2024-01-01T10:00:00.000000Z", b"2024-01-01 10:00:00"))
    table.overwrite([{"id": 2, "at": at}], partitions="dynamic")
    assert [r["id"] for r in table.to_pylist()] == [2]


def test_schema_replace(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1, "old": "x"}])
    table.overwrite([{"id": "one", "new": 1.5}], schema_mode="replace")
    assert table.to_pylist() == [{"id": "one", "new": 1.5}]
    assert table.at(version=0).to_pylist() == [{"id": 1, "old": "x"}]
    assert not lake.write("u", [{"a": 1}], properties={"delta.enableDeletionVectors": "false"}).snapshot.writes_vectors
    lake.table("u").overwrite([{"b": 1}], schema_mode="replace")
    assert not lake.table("u").snapshot.writes_vectors


@pytest.mark.parametrize("mode", ["name", "id"])
def test_schema_replace_keeps_the_columns_that_stay(lake: Lake, mode: str) -> None:
    table = lake.write("t", [{"id": 1, "a": "x"}], properties={"delta.columnMapping.mode": mode})
    before = {f.name: f.physical_name for f in table.snapshot.schema.fields}
    table.overwrite([{"id": 2, "b": 2.5}], schema_mode="replace")
    after = {f.name: f.physical_name for f in table.snapshot.schema.fields}
    assert after["id"] == before["id"]
    assert int(table.snapshot.configuration["delta.columnMapping.maxColumnId"]) == 3
    assert table.to_pylist() == [{"id": 2, "b": 2.5}]
    assert sorted((r["id"], r["_weight"]) for r in table.changes(after=0).to_arrow().to_pylist()) == [(1, -1), (2, 1)]


@pytest.mark.parametrize(
    "options",
    [
        {"where": "id = 1", "partitions": "dynamic"},
        {"partitions": "static"},
        {"partitions": "dynamic"},
        {"where": "id = 1", "schema_mode": "replace"},
        {"schema_mode": "guess"},
        {"where": "nowhere = 1"},
        {"where": "id + 1"},
    ],
)
def test_what_cannot_be_asked(lake: Lake, options: dict[str, Any]) -> None:
    table = lake.write("t", [{"id": 1}])
    with pytest.raises(hw.InputError):
        table.overwrite([{"id": 1}], **options)
    assert table.version == 0


def test_an_append_only_table_keeps_its_rows(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}], properties={"delta.appendOnly": "true"})
    merge = table.merge([{"id": 1}], on=["id"])
    for attempt in (
        lambda: table.overwrite([{"id": 2}]),
        lambda: table.overwrite([{"id": 1}], where="id = 1"),
        lambda: table.delete("id = 1"),
        lambda: table.update({"id": "2"}),
        merge.when_matched_delete().execute,
    ):
        with pytest.raises(hw.InputError, match="append"):
            attempt()  # type: ignore[no-untyped-call]
    table.merge([{"id": 5}], on=["id"]).when_not_matched_insert_all().execute()
    table.optimize()
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 5]


def test_a_stale_overwrite_is_a_conflict(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    seen = table.version
    table.append([{"id": 2}])
    with pytest.raises(hw.ConflictError):
        table.overwrite([{"id": 9}], if_version=seen)
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 2]
