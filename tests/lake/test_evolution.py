"""Schema changes that touch no data file: older files are read as the table is today."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake

MAPPED = {"delta.columnMapping.mode": "name"}


def test_added_columns_are_null_in_older_rows(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.add_columns({"s": pa.struct([("x", pa.int64())]), "n": pa.decimal128(10, 2)})
    table.append([{"id": 2, "s": {"x": 5}, "n": Decimal("1.50")}])
    assert table.to_pylist() == [{"id": 1, "s": None, "n": None}, {"id": 2, "s": {"x": 5}, "n": Decimal("1.50")}]
    assert table.to_pylist(where="n IS NULL") == [{"id": 1, "s": None, "n": None}]
    with pytest.raises(hw.InputError):
        table.add_columns({"ID": pa.int64()})
    with pytest.raises(hw.SchemaError):
        table.add_columns({"a b": pa.int64()})


WIDER: list[tuple[pa.DataType, Any, pa.DataType, Any]] = [
    (pa.int8(), 5, pa.int16(), 500),
    (pa.int16(), 5, pa.int32(), 100_000),
    (pa.int32(), -5, pa.int64(), 2**40),
    (pa.int32(), 5, pa.float64(), 0.5),
    (pa.float32(), 1.5, pa.float64(), 1e300),
    (pa.date32(), dt.date(2020, 1, 1), pa.timestamp("us"), dt.datetime(2020, 1, 1, 12)),
    (pa.decimal128(10, 2), Decimal("1.50"), pa.decimal128(14, 4), Decimal("1.2345")),
    (pa.int32(), 7, pa.decimal128(12, 2), Decimal("0.25")),
    (pa.int64(), 7, pa.decimal128(22, 2), Decimal("0.25")),
]


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize(("narrow", "old", "wide", "new"), WIDER, ids=[f"{a}-{c}" for a, _, c, _ in WIDER])
def test_widening(lake: Lake, narrow: pa.DataType, old: Any, wide: pa.DataType, new: Any, vectors: str) -> None:
    table = lake.write(
        "t",
        pa.table({"id": [1, 2, 3], "c": pa.array([old, None, old], narrow)}),
        properties={"delta.enableDeletionVectors": vectors},
    )
    table.widen_column("c", wide)
    table.append(pa.table({"id": [4], "c": pa.array([new], wide)}))
    was = pa.scalar(old, narrow).cast(wide).as_py()
    assert table.schema.field("c").type == wide
    assert [r["c"] for r in table.to_pylist()] == [was, None, was, new]
    assert table.at(version=0).schema.field("c").type == narrow
    table.delete("id = 3")
    assert sorted((r["id"], r["c"]) for r in table.to_pylist()) == [(1, was), (2, None), (4, new)]
    change = table.changes(after=0).to_arrow().to_pylist()
    assert sorted((r["id"], r["c"], r["_weight"]) for r in change) == [(3, was, -1), (4, new, 1)]
    table.optimize()
    assert sorted((r["id"], r["c"]) for r in table.to_pylist()) == [(1, was), (2, None), (4, new)]


@pytest.mark.parametrize(
    ("have", "want"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.int8(), pa.decimal128(5, 0)),
        (pa.int32(), pa.string()),
        (pa.decimal128(10, 2), pa.decimal128(11, 4)),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.int32(), pa.int32()),
    ],
)
def test_widening_that_would_lose_something(lake: Lake, have: pa.DataType, want: pa.DataType) -> None:
    table = lake.table("t").create({"c": have})
    with pytest.raises(hw.SchemaError):
        table.widen_column("c", want)
    assert table.version == 0


def test_old_files_without_a_field_of_a_struct(lake: Lake) -> None:
    """A struct that grew in a newer version of the schema, as other engines let it, is read with nulls."""
    table = lake.write("t", pa.table({"s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))}))
    entry = "_delta_log/00000000000000000000.json"
    old = rb"{\"name\": \"x\", \"type\": \"integer\", \"nullable\": true, \"metadata\": {}}"
    new = rb"{\"name\": \"y\", \"type\": \"string\", \"nullable\": true, \"metadata\": {}}, "
    log = table.storage.get(entry)
    assert old in log
    table.storage.put(entry, log.replace(old, new + old.replace(b"integer", b"long")))
    table = hw.connect(lake.location).table("t")
    assert table.to_pylist() == [{"s": {"y": None, "x": 1}}, {"s": None}]
    assert table.schema.field("s").type.field("x").type == pa.int64()


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("feed", ["true", "false"])
def test_rename_and_drop_with_mapping(lake: Lake, mode: str, feed: str) -> None:
    kinds = pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            ("s", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.struct([("y", pa.string())])))])),
            ("m", pa.map_(pa.string(), pa.struct([("z", pa.int32())]))),
        ]
    )
    rows: list[dict[str, Any]] = [
        {"id": 1, "p": "a", "s": {"x": 1, "l": [{"y": "k"}, None]}, "m": [("k", {"z": 1})]},
        {"id": 2, "p": None, "s": None, "m": None},
    ]
    properties = {"delta.columnMapping.mode": mode, "delta.enableChangeDataFeed": feed}
    table = lake.table("t").create(kinds, partition_by=["p"], properties=properties)
    table.append(pa.Table.from_pylist(rows, kinds))
    assert sorted(table.to_pylist(), key=repr) == sorted(rows, key=repr)
    table.rename_column("id", "key")
    table.rename_column("p", "part")
    renamed = [{"key": r["id"], "part": r["p"], "s": r["s"], "m": r["m"]} for r in rows]
    assert sorted(table.to_pylist(), key=repr) == sorted(renamed, key=repr)
    assert [r["key"] for r in table.to_pylist(where="part = 'a'")] == [1]
    table.update({"key": "key + 10"}, where="key = 1")
    table.drop_column("m")
    table.add_columns({"m": pa.int64()})
    assert sorted((r["key"], r["part"], r["m"]) for r in table.to_pylist()) == [(2, None, None), (11, "a", None)]
    table.optimize(zorder_by=["key"])
    assert sorted((r["key"], r["part"], r["m"]) for r in table.to_pylist()) == [(2, None, None), (11, "a", None)]
    change = table.changes(after=1).to_arrow().to_pylist()
    assert sorted((r["key"], r["_weight"]) for r in change) == [(1, -1), (11, 1)]
    assert {r["part"] for r in change} == {"a"}
    assert sorted(table.at(version=1).to_pylist(), key=repr) == sorted(rows, key=repr)


def test_renames_that_cannot_be(lake: Lake) -> None:
    plain = lake.write("plain", [{"id": 1}])
    with pytest.raises(hw.UnsupportedError):
        plain.rename_column("id", "key")
    table = lake.table("t").create(
        {"id": pa.int64(), "n": pa.int64(), "p": pa.string()},
        partition_by=["p"],
        properties=MAPPED,
        constraints={"positive": "n > 0"},
    )
    with pytest.raises(hw.SchemaError):
        table.rename_column("id", "N")
    with pytest.raises(hw.InputError):
        table.rename_column("id", "")
    with pytest.raises(hw.UnsupportedError):
        table.drop_column("n")
    with pytest.raises(hw.UnsupportedError):
        table.drop_column("p")
    with pytest.raises(hw.NotFoundError):
        table.drop_column("nowhere")
    assert table.schema.names == ["id", "n", "p"]
    table.rename_column("id", "ID")
    assert table.schema.names == ["ID", "n", "p"]


def test_mapping_cannot_be_turned_off(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}], properties=MAPPED)
    for attempt in (
        lambda: table.set_properties({"delta.columnMapping.mode": "none"}),
        lambda: table.unset_properties(["delta.columnMapping.mode"]),
        lambda: table.unset_properties(["delta.columnMapping.maxColumnId"]),
    ):
        with pytest.raises(hw.InputError):
            attempt()  # type: ignore[no-untyped-call]
    assert table.to_pylist() == [{"id": 1}]


def test_properties_come_and_go(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}], properties={"delta.enableDeletionVectors": "false"})
    table.set_properties({"delta.enableChangeDataFeed": "true", "owner": "me"})
    assert {"changeDataFeed"} <= set(table.detail()["features"])
    assert table.set_properties({"owner": "me"}).version == 1
    table.unset_properties(["owner"])
    assert "owner" not in table.detail()["properties"]
    table.set_properties({"delta.enableDeletionVectors": "true"})
    table.append([{"id": 2}, {"id": 3}])
    table.delete("id = 2")
    assert table.detail()["num_deleted_rows"] == 1
    table.set_properties({"delta.enableDeletionVectors": "false"})
    table.append([{"id": 4}])
    table.update({"id": "id + 10"}, where="id >= 3")
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 13, 14]
