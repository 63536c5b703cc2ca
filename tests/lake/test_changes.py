"""Changes: the exact difference of two versions, whatever was done between them."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake.table import Table
from headwater.lakehouse import Lake

FEED = {"delta.enableChangeDataFeed": "true"}
PROPERTIES = [{}, FEED, {"delta.enableDeletionVectors": "false"}]


@pytest.fixture(params=PROPERTIES, ids=["vectors", "feed", "rewrite"])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    return lake.write("t", [{"id": i, "v": "a"} for i in range(5)], properties=request.param)


def change(table: Table, after: int, until: int | None = None) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in table.changes(after, until).to_arrow().to_pylist())


def test_each_kind_of_commit(table: Table) -> None:
    table.append([{"id": 5, "v": "b"}])
    table.delete("id = 0")
    table.update({"v": "'c'"}, where="id = 1")
    table.overwrite([{"id": 2, "v": "z"}], where="id = 2")
    assert change(table, 0, 1) == [(5, "b", 1)]
    assert change(table, 1, 2) == [(0, "a", -1)]
    assert change(table, 2, 3) == [(1, "a", -1), (1, "c", 1)]
    assert change(table, 3, 4) == [(2, "a", -1), (2, "z", 1)]
    assert len(change(table, 0)) == 6
    assert change(table, 4) == []


def test_from_the_beginning(table: Table) -> None:
    table.delete("id > 1")
    assert change(table, -1) == [(0, "a", 1), (1, "a", 1)]
    assert len(change(table, -1, 0)) == 5


def test_what_comes_and_goes_is_nothing(table: Table) -> None:
    table.append([{"id": 9, "v": "x"}])
    table.delete("id = 9")
    table.update({"v": "'b'"}, where="id = 3")
    table.update({"v": "'a'"}, where="id = 3")
    assert change(table, 0) == []
    assert table.changes(after=0).is_empty


def test_an_added_file_that_is_edited_then_dropped(table: Table) -> None:
    """The feed tells of one commit, files of the next: their sum is still exact."""
    table.append([{"id": 6, "v": "x"}, {"id": 7, "v": "x"}])
    table.update({"v": "'y'"}, where="id = 6")
    table.delete()
    assert change(table, 0) == [(i, "a", -1) for i in range(5)]
    assert change(table, 1) == [(i, "a", -1) for i in range(5)] + [(6, "x", -1), (7, "x", -1)]
    assert change(table, 2, 3) == [(i, "a", -1) for i in range(5)] + [(6, "y", -1), (7, "x", -1)]


def test_optimize_is_nothing_and_restore_over_it_is_exact(table: Table) -> None:
    table.append([{"id": 6, "v": "x"}])
    table.optimize()
    table.delete("id = 6")
    assert change(table, 1) == [(6, "x", -1)]
    table.restore(1)
    assert change(table, 0) == [(6, "x", 1)]
    assert change(table, 1) == []
    assert change(table, 3) == [(6, "x", 1)]


def test_overwrite_that_keeps_rows(table: Table) -> None:
    table.overwrite([{"id": 4, "v": "a"}, {"id": 5, "v": "a"}])
    assert change(table, 0) == [(0, "a", -1), (1, "a", -1), (2, "a", -1), (3, "a", -1), (5, "a", 1)]


def test_duplicates_count(table: Table) -> None:
    table.append([{"id": 0, "v": "a"}] * 3)
    table.delete("id = 0")
    table.append([{"id": 0, "v": "a"}] * 2)
    assert change(table, 0) == [(0, "a", 1)]
    assert change(table, 1, 2) == [(0, "a", -4)]
    assert change(table, 2) == [(0, "a", 2)]


def test_some_columns(table: Table) -> None:
    table.update({"id": "id + 100"}, where="id < 2")
    assert table.changes(after=0, columns=["v"]).is_empty
    assert len(table.changes(after=0, columns=["id"])) == 4


def test_added_columns_are_null_in_older_rows(table: Table) -> None:
    table.append([{"id": 9, "v": "n", "extra": 1}], schema_mode="merge")
    table.delete("id = 0")
    assert [tuple(r.values()) for r in table.changes(after=0).to_arrow().sort_by("id").to_pylist()] == [
        (0, "a", None, -1),
        (9, "n", 1, 1),
    ]
    assert table.changes(after=0, until=0).schema.names == ["id", "v"]


def test_a_column_that_changed_its_type_for_good(table: Table) -> None:
    table.overwrite([{"id": "one", "v": "a"}], schema_mode="replace")
    with pytest.raises(hw.SchemaError, match="`id` changed"):
        table.changes(after=0)
    table.append([{"id": "two", "v": "b"}])
    assert change(table, 1) == [("two", "b", 1)]


def test_zeros_and_nans_are_told_apart_bit_by_bit(lake: Lake) -> None:
    table = lake.write("t", [{"f": 0.0, "l": [0.0]}, {"f": float("nan"), "l": [float("nan")]}])
    table.overwrite([{"f": -0.0, "l": [0.0]}, {"f": float("nan"), "l": [float("nan")]}])
    found = table.changes(after=0).to_arrow().to_pylist()
    assert sorted((str(r["f"]), r["_weight"]) for r in found) == [("-0.0", 1), ("0.0", -1)]
    table.overwrite([{"f": -0.0, "l": [-0.0]}, {"f": float("nan"), "l": [float("nan")]}])
    assert len(table.changes(after=1)) == 2


def test_nested_rows(lake: Lake) -> None:
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("l", pa.list_(pa.string()))])
    kinds = pa.schema([("id", pa.int64()), ("s", inner), ("m", pa.map_(pa.string(), pa.int32())), ("b", pa.binary())])
    rows: list[dict[str, Any]] = [
        {"id": 1, "s": {"x": 1, "l": ["a", None]}, "m": [("k", 1)], "b": b"\x00\xff"},
        {"id": 2, "s": None, "m": [], "b": None},
        {"id": 3, "s": {"x": 3, "l": None}, "m": None, "b": b""},
    ]
    table = lake.table("t").create(kinds, properties={"delta.enableDeletionVectors": "false"})
    table.append(pa.Table.from_pylist(rows, kinds))
    table.delete("id = 2")
    assert table.changes(after=1).to_arrow().to_pylist() == [{**rows[1], "_weight": -1}]
    table.update({"b": "X'01'"}, where="id = 3")
    assert len(table.changes(after=2)) == 2
    assert table.changes(after=0).apply_to(table.at(version=0).to_arrow()).num_rows == 2


def test_ranges_that_cannot_be(table: Table) -> None:
    for after, until in ((1, None), (0, 5), (1, 0), (-2, None)):
        with pytest.raises(hw.InputError):
            table.changes(after, until)
    with pytest.raises(hw.NotFoundError):
        table.changes(after=0, columns=["nowhere"])


def test_a_file_without_partition_values_in_its_removal(lake: Lake) -> None:
    """Old writers leave them out of the action; the rows still have them."""
    table = lake.write("t", [{"id": 1, "p": "x"}], partition_by=["p"])
    table.delete("p = 'x'")
    entry = "_delta_log/00000000000000000001.json"
    log = (
        table.storage.get(entry)
        .replace(b',"partitionValues":{"p":"x"}', b"")
        .replace(b'"extendedFileMetadata":true,', b"")
    )
    assert b"partitionValues" not in log
    table.storage.put(entry, log)
    assert change(table, 0) == [(1, "x", -1)]


@pytest.mark.long
def test_a_large_rewrite_streams_in_bounded_memory(lake: Lake) -> None:
    rows = 3_000_000
    table = lake.write("t", pa.table({"id": np.arange(rows), "n": np.arange(rows) % 1000}), properties=PROPERTIES[2])
    table.delete("id % 1000000 = 7")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with hw.settings.override(memory_limit_bytes=200 << 20):
        found = list(table.changes_reader(after=0))
    assert sorted(r["id"] for b in found for r in b.to_pylist()) == [7, 1_000_007, 2_000_007]
    assert {r["_weight"] for b in found for r in b.to_pylist()} == {-1}
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mb < 600, "both versions together are 96 MB of numbers, and ten times that as rows of a hash table"


def test_an_unconsolidated_stream_of_appends_is_just_the_files(table: Table) -> None:
    table.append([{"id": 9, "v": "x"}])
    reader = table.changes_reader(after=0, consolidated=False)
    assert reader.schema.names == ["id", "v", "_weight"]
    assert reader.read_all().to_pylist() == [{"id": 9, "v": "x", "_weight": 1}]
