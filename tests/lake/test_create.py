"""Creating tables: columns, partitions, properties, constraints and generated columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake

PLAIN = {"id": pa.int64(), "city": pa.string()}


def test_an_empty_table_has_a_schema_and_no_rows(lake: Lake) -> None:
    table = lake.table("sales.orders").create(PLAIN, description="what was sold")
    assert (table.version, table.count(), table.to_pylist()) == (0, 0, [])
    assert table.schema == pa.schema(list(PLAIN.items()))
    assert lake.tables() == ["sales.orders"]
    assert table.detail()["description"] == "what was sold"


def test_new_tables_mark_deleted_rows(lake: Lake) -> None:
    table = lake.table("t").create(PLAIN)
    assert "deletionVectors" in table.detail()["features"]
    plain = lake.table("u").create(PLAIN, properties={"delta.enableDeletionVectors": "false"})
    assert (plain.detail()["min_reader_version"], plain.detail()["min_writer_version"]) == (1, 2)


def test_a_table_is_created_once(lake: Lake) -> None:
    lake.table("t").create(PLAIN)
    with pytest.raises(hw.InputError):
        lake.table("t").create({"other": pa.int32()})
    assert lake.table("t").create({"other": pa.int32()}, mode="ignore").schema.names == ["id", "city"]


@pytest.mark.parametrize(
    ("partition_by", "why"),
    [(["nowhere"], "no column"), (["id", "id"], "twice"), (["id", "city"], "no column would be left")],
)
def test_partitions_that_cannot_be(lake: Lake, partition_by: list[str], why: str) -> None:
    with pytest.raises(hw.InputError, match=why):
        lake.table("t").create(PLAIN, partition_by=partition_by)
    assert not lake.table("t").exists()


def test_partitions_need_a_plain_type(lake: Lake) -> None:
    with pytest.raises(hw.SchemaError):
        lake.table("t").create({"id": pa.int64(), "tags": pa.list_(pa.string())}, partition_by=["tags"])


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.appendOnly": "maybe"},
        {"delta.enableChangeFeed": "true"},
        {"delta.checkpointInterval": "often"},
        {"delta.logRetentionDuration": "long"},
        {"delta.columnMapping.mode": "nickname"},
        {"delta.feature.rowTracking": "supported"},
    ],
)
def test_properties_are_checked(lake: Lake, properties: dict[str, str]) -> None:
    with pytest.raises(hw.InputError):
        lake.table("t").create(PLAIN, properties=properties)
    assert not lake.table("t").exists()


def test_names_differ_by_more_than_case(lake: Lake) -> None:
    with pytest.raises(hw.SchemaError):
        lake.table("t").create({"id": pa.int64(), "ID": pa.int64()})


def test_odd_names_need_column_mapping(lake: Lake) -> None:
    with pytest.raises(hw.SchemaError):
        lake.table("t").create({"a b": pa.int64()})
    mapped = lake.table("t").create(
        {"a b": pa.int64(), "c,d": pa.string()}, properties={"delta.columnMapping.mode": "name"}
    )
    mapped.append([{"a b": 1, "c,d": "x"}])
    mapped.update({"a b": "`a b` + 1"}, where="`c,d` = 'x'")
    assert mapped.to_pylist() == [{"a b": 2, "c,d": "x"}]


def test_generated_columns_are_computed_or_checked(lake: Lake) -> None:
    table = lake.table("t").create(
        {"id": pa.int64(), "twice": pa.int64()}, generated={"twice": "id * 2"}, partition_by=["twice"]
    )
    table.append([{"id": 1}, {"id": 2}])
    table.append([{"id": 3, "twice": 6}])
    with pytest.raises(hw.ConstraintError, match="twice"):
        table.append([{"id": 4, "twice": 9}])
    table.update({"id": "id + 10"}, where="id = 1")
    assert sorted((r["id"], r["twice"]) for r in table.to_pylist()) == [(2, 4), (3, 6), (11, 22)]
    table.overwrite([{"id": 3}, {"id": 3}], where="twice = 6")
    assert sorted((r["id"], r["twice"]) for r in table.to_pylist()) == [(2, 4), (3, 6), (3, 6), (11, 22)]
    table.merge([{"id": 2}, {"id": 7}], on=["id"]).when_matched_delete().when_not_matched_insert_all().execute()
    assert sorted(r["twice"] for r in table.to_pylist()) == [6, 6, 14, 22]


def test_constraints_hold_for_every_write(lake: Lake) -> None:
    table = lake.table("t").create({"id": pa.int64(), "n": pa.int64()}, constraints={"positive": "n > 0"})
    table.append([{"id": 1, "n": 5}])
    attempts = [
        lambda: table.append([{"id": 2, "n": 0}]),
        lambda: table.append([{"id": 2}]),
        lambda: table.overwrite([{"id": 2, "n": -1}]),
        lambda: table.update({"n": "n - 5"}),
        lambda: table.merge([{"id": 9, "n": -9}], on=["id"]).when_not_matched_insert_all().execute(),
    ]
    for attempt in attempts:
        with pytest.raises(hw.ConstraintError, match="positive"):
            attempt()  # type: ignore[no-untyped-call]
    assert (table.version, table.to_pylist()) == (1, [{"id": 1, "n": 5}])


def test_a_constraint_is_tested_on_the_rows_that_are_there(lake: Lake) -> None:
    table = lake.write("t", [{"n": 1}, {"n": -1}])
    with pytest.raises(hw.ConstraintError):
        table.add_constraint("positive", "n > 0")
    table.delete("n < 0")
    table.add_constraint("positive", "n > 0")
    with pytest.raises(hw.ConstraintError):
        table.append([{"n": -1}])
    table.drop_constraint("POSITIVE")
    table.append([{"n": -1}])
    with pytest.raises(hw.NotFoundError):
        table.drop_constraint("positive")


def test_constraints_do_not_come_in_as_properties(lake: Lake) -> None:
    table = lake.write("t", [{"n": -1}])
    with pytest.raises(hw.InputError):
        table.set_properties({"delta.constraints.positive": "n > 0"})


def test_a_constraint_that_cannot_be_read_is_refused_at_once(lake: Lake) -> None:
    with pytest.raises(hw.InputError):
        lake.table("t").create(PLAIN, constraints={"odd": "no_such_column > 0"})
    assert not lake.table("t").exists()


def test_not_null_columns_nested_ones_too(lake: Lake) -> None:
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    table = lake.table("t").create(pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", inner)]))
    table.append(pa.table({"id": [1, 2], "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int64())]))}))
    with pytest.raises(hw.ConstraintError, match="`id`"):
        table.append(pa.table({"id": pa.array([None], pa.int64())}))
    with pytest.raises(hw.SchemaError, match="required columns: id"):
        table.append([{"s": None}])
    with pytest.raises(hw.ConstraintError, match=r"`s\.x`"):
        table.append(pa.table({"id": [3], "s": pa.array([{"x": None}], pa.struct([("x", pa.int64())]))}))
    assert table.version == 1
    table.drop_not_null("id")
    table.append(pa.table({"id": pa.array([None], pa.int64())}))
    assert table.count() == 3
