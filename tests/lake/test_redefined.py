"""A table that was defined otherwise in between: each file is read by the definition of its own version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import headwater as hw
from headwater.lake import log
from headwater.lake.table import Table
from headwater.lakehouse import Lake

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["x", "y", "x"], "v": [1.5, 2.5, None]})
VARIANTS = {
    "vectors": {},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "rewrite": {"delta.enableDeletionVectors": "false"},
    "name": {"delta.columnMapping.mode": "name"},
    "id": {"delta.columnMapping.mode": "id"},
}
MAPPED = VARIANTS["name"]


@pytest.fixture(params=VARIANTS)
def properties(request: pytest.FixtureRequest) -> dict[str, str]:
    return VARIANTS[request.param]


def change(table: Table, after: int, until: int | None = None, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in table.changes(after, until, **options).to_arrow().to_pylist())


@pytest.mark.long
def test_the_same_rows_partitioned_otherwise_are_no_change(lake: Lake, properties: dict[str, str]) -> None:
    table = lake.table("t").create(ROWS.schema, data=ROWS, properties=properties)
    for split_by in (["id"], ["p", "id"], [], ["p"]):
        table.create(ROWS.schema, data=ROWS, mode="replace", partition_by=split_by, properties=properties)
    for after in range(5):
        for until in range(after, 5):
            assert table.changes(after, until).is_empty, (after, until)


@pytest.mark.long
def test_rows_that_went_with_the_old_partitioning(lake: Lake, properties: dict[str, str]) -> None:
    table = lake.table("t").create(ROWS.schema, data=ROWS, properties=properties)
    table.delete("id = 2")
    table.create(ROWS.schema, data=ROWS.slice(0, 2), mode="replace", partition_by=["id"], properties=properties)
    table.update({"v": "0"}, where="id = 1")
    assert change(table, 1) == [(1, "x", 0.0, 1), (1, "x", 1.5, -1), (2, "y", 2.5, 1), (3, "x", None, -1)]
    assert change(table, 1, 2) == [(2, "y", 2.5, 1), (3, "x", None, -1)]
    assert change(table, 0, 1) == [(2, "y", 2.5, -1)]
    table.restore(1)
    assert change(table, 1) == []
    assert change(table, 3) == [(1, "x", 0.0, -1), (1, "x", 1.5, 1), (2, "y", 2.5, -1), (3, "x", None, 1)]
    table.restore(2)
    assert change(table, 2) == []
    assert change(table, 4) == [(2, "y", 2.5, 1), (3, "x", None, -1)]


def test_vectors_of_a_file_that_a_restore_brought_back(lake: Lake) -> None:
    table = lake.table("t").create(ROWS.schema, data=ROWS)
    table.create(ROWS.schema, mode="replace", partition_by=["id"])
    table.restore(0)
    table.delete("id = 3")
    table.create(ROWS.schema, mode="replace", partition_by=["p"])
    assert change(table, 2, 3) == [(3, "x", None, -1)]
    assert change(table, 1, 3) == [(1, "x", 1.5, 1), (2, "y", 2.5, 1)]
    table.restore(3)
    assert change(table, 0) == [(3, "x", None, -1)], "a difference of vectors, across two other definitions"
    assert change(table, 4) == [(1, "x", 1.5, 1), (2, "y", 2.5, 1)]


@pytest.mark.interop
@pytest.mark.parametrize("feed", ["true", "false"])
def test_a_table_that_deltalake_repartitioned(lake: Lake, feed: str) -> None:
    table = lake.table("t")
    write_deltalake(table.location, ROWS, configuration={"delta.enableChangeDataFeed": feed})
    write_deltalake(table.location, ROWS, mode="overwrite", schema_mode="overwrite", partition_by=["id"])
    write_deltalake(table.location, ROWS.slice(1), mode="overwrite", schema_mode="overwrite", partition_by=["p"])
    assert change(table, 0, 1) == []
    assert change(table, 0) == change(table, 1) == [(1, "x", 1.5, -1)]
    table.restore(0)
    assert change(table, 2) == [(1, "x", 1.5, 1)]


def test_the_feed_shows_the_old_rows_whole(lake: Lake) -> None:
    properties = VARIANTS["feed"]
    table = lake.table("t").create(ROWS.schema, data=ROWS, properties=properties)
    table.update({"v": "v + 1"}, where="id = 1")
    table.create(ROWS.schema, data=ROWS, mode="replace", partition_by=["id"], properties=properties)
    table.update({"v": "v + 1"}, where="id = 2")
    rows = (
        lake.sql("SELECT _commit_version, _change_type, id, p, v FROM table_changes('t', 1, 3)").to_arrow().to_pylist()
    )
    found = {tuple(r.values()) for r in rows}
    assert found == {
        (1, "update_preimage", 1, "x", 1.5),
        (1, "update_postimage", 1, "x", 2.5),
        *((2, "delete", i, p, v) for i, p, v in ((1, "x", 2.5), (2, "y", 2.5), (3, "x", None))),
        *((2, "insert", i, p, v) for i, p, v in ((1, "x", 1.5), (2, "y", 2.5), (3, "x", None))),
        (3, "update_preimage", 2, "y", 2.5),
        (3, "update_postimage", 2, "y", 3.5),
    }


def test_columns_of_a_replaced_table_stay_what_they_are(lake: Lake) -> None:
    table = lake.table("t").create(ROWS.schema, data=ROWS, properties=MAPPED)
    before = {f.name: f for f in table.snapshot.schema.fields}
    other = pa.table({"id": pa.array([1], pa.int64()), "p": pa.array([7], pa.int32()), "n": [None]}).cast(
        pa.schema([("id", pa.int64()), ("p", pa.int32()), ("n", pa.string())])
    )
    table.create(other.schema, data=other, mode="replace", partition_by=["p"], properties=MAPPED)
    after = {f.name: f for f in table.snapshot.schema.fields}
    assert after["id"].physical_name == before["id"].physical_name
    assert after["p"].physical_name != before["p"].physical_name, "another type: another column"
    assert len({f.metadata["delta.columnMapping.id"] for f in [*before.values(), *after.values()]}) == 5
    assert change(table, 0, columns=["id"]) == [(2, -1), (3, -1)]
    assert set(table.changes(after=0).rows["p"].to_pylist()) == {None, 7}, "old values are not those of another column"


def test_column_mapping_that_comes_with_a_replacement(lake: Lake) -> None:
    table = lake.table("t").create(ROWS.schema, data=ROWS)
    table.create(ROWS.schema, data=ROWS, mode="replace", partition_by=["id"], properties=MAPPED)
    table.rename_column("id", "key")
    assert table.changes(after=0).is_empty
    table.create(ROWS.schema, data=ROWS, mode="replace")
    assert change(table, 1, 2) == change(table, 0, 2) == []
    with pytest.raises(hw.SchemaError, match="gave up column mapping"):
        table.changes(after=0)
    assert change(table, 2, columns=["p", "v"]) == []


@pytest.mark.long
def test_a_dropped_column_that_is_added_again_is_another_one(lake: Lake) -> None:
    table = lake.table("t").create(ROWS.schema, data=ROWS, properties=MAPPED)
    table.drop_column("v")
    table.add_columns({"v": pa.float64()})
    table.delete("id = 1")
    assert change(table, 0) == [(1, "x", None, -1)]
    assert change(table, 0, 1) == []
    table.restore(0)
    assert change(table, 0) == []
    with pytest.raises(hw.SchemaError, match="old values again"):
        table.changes(after=2)
    assert change(table, 3, columns=["id", "p"]) == [(1, "x", 1)]


@pytest.mark.parametrize("feed", ["true", "false"])
def test_a_column_that_was_dropped_and_restored_on_the_way(lake: Lake, feed: str) -> None:
    properties = {**MAPPED, "delta.enableChangeDataFeed": feed}
    table = lake.table("t").create(ROWS.schema, data=ROWS, properties=properties)
    table.drop_column("v")
    table.delete("id = 1")
    table.create(ROWS.schema.remove(2), mode="replace", properties=properties)
    table.restore(0)
    table.delete("id = 2")
    assert change(table, 0) == [(2, "y", 2.5, -1)], "rows that went while it was dropped have its values"
    table.restore(2)
    table.optimize()
    table.restore(0)
    assert change(table, 5, columns=["id"]) == [(2, 1)]
    with pytest.raises(hw.SchemaError, match="rewrote files without column `v`"):
        table.changes(after=0)


def test_a_narrowed_column_is_refused_only_where_its_values_are_read(lake: Lake) -> None:
    table = lake.write("t", pa.table({"id": pa.array([1], pa.int32()), "v": ["a"]}))
    table.widen_column("id", pa.int64())
    table.append(pa.table({"id": [2**40], "v": ["b"]}))
    table.restore(0)
    assert change(table, 0) == change(table, 1) == []
    assert change(table, 2, columns=["v"]) == [("b", -1)]
    with pytest.raises(hw.SchemaError, match="`id` changed from long to integer"):
        table.changes(after=2)


def test_a_definition_that_is_gone_with_the_log_is_not_guessed(lake: Lake) -> None:
    table = lake.table("t").create(ROWS.schema, data=ROWS)
    table.append(ROWS)
    table.create(ROWS.schema, data=ROWS, mode="replace", partition_by=["id"])
    table.checkpoint()
    for version in (0, 1):
        table.storage.delete(log.commit_path(version))
    with pytest.raises(hw.NotFoundError):
        hw.connect(lake.location, lake.catalog.root.options).table("t").changes(after=1)
