"""Features of other writers: read where that is safe, refused where it is not, with nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake import snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake


def doctored(lake: Lake, *, readers: list[str] = [], writers: list[str] = [], **change: Any) -> Table:  # noqa: B006
    """A table whose first commit claims more features, properties, or metadata of the column ``id``."""
    table = lake.write("t", [{"id": 1}, {"id": 2}])
    path = Path(table.location) / "_delta_log/00000000000000000000.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for action in lines:
        if "protocol" in action:
            protocol = action["protocol"]
            protocol["readerFeatures"] += readers
            protocol["writerFeatures"] += writers + readers
            protocol |= change.get("protocol", {})
        if "metaData" in action:
            action["metaData"]["configuration"] |= change.get("properties", {})
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] |= change.get("metadata", {})
            schema["fields"][0] |= change.get("field", {})
            action["metaData"]["schemaString"] = json.dumps(schema)
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    snapshot.forget(table.storage)
    return table


def contents(table: Table) -> dict[str, tuple[bytes, int]]:
    root = Path(table.location)
    return {str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*") if p.is_file()}


def writes(table: Table) -> list[Any]:
    return [
        lambda: table.append([{"id": 3}]),
        lambda: table.overwrite([{"id": 3}]),
        lambda: table.overwrite([{"id": 1}], where="id = 1"),
        lambda: table.delete("id = 1"),
        lambda: table.update({"id": "id + 1"}),
        lambda: table.merge([{"id": 1}], on=["id"]).when_matched_delete().execute(),
        lambda: table.optimize(zorder_by=["id"]),
        lambda: table.vacuum(retention_hours=0, enforce_retention=False),
        lambda: table.restore(0),
        lambda: table.add_columns({"n": pa.int64()}),
        lambda: table.set_properties({"owner": "me"}),
        lambda: table.add_constraint("positive", "id > 0"),
    ]


REFUSED: dict[str, dict[str, Any]] = {
    "row tracking": {"writers": ["rowTracking", "domainMetadata"], "properties": {"delta.enableRowTracking": "true"}},
    "row tracking, supported only": {"writers": ["rowTracking", "domainMetadata"]},
    "identity": {"writers": ["identityColumns"], "metadata": {"delta.identity.start": 1, "delta.identity.step": 1}},
    "defaults": {"writers": ["allowColumnDefaults"], "metadata": {"CURRENT_DEFAULT": "7"}},
    "clustering": {"writers": ["clustering", "domainMetadata"]},
    "iceberg": {"writers": ["icebergCompatV2"], "properties": {"delta.enableIcebergCompatV2": "true"}},
    "unknown": {"writers": ["somethingNew"]},
    "newer writers": {"protocol": {"minWriterVersion": 8}},
}


@pytest.mark.parametrize("case", REFUSED)
def test_writer_features_are_refused_and_nothing_is_written(lake: Lake, case: str) -> None:
    table = doctored(lake, **REFUSED[case])
    assert table.count() == 2
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 2]
    before = contents(table)
    for attempt in writes(table):
        with pytest.raises(hw.UnsupportedError, match="writer"):
            attempt()
        assert contents(table) == before


UNREADABLE: dict[str, dict[str, Any]] = {
    "unknown": {"readers": ["somethingNew"]},
    "newer readers": {"protocol": {"minReaderVersion": 4}},
    "variant": {"readers": ["variantType"], "field": {"type": "variant"}},
    "unknown type": {"field": {"type": "geography"}},
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_reader_features_are_refused(lake: Lake, case: str) -> None:
    table = doctored(lake, **UNREADABLE[case])
    before = contents(table)
    for attempt in [table.count, table.to_pylist, lambda: table.changes(-1), *writes(table)]:
        with pytest.raises(hw.UnsupportedError):
            attempt()
    assert contents(table) == before


HARMLESS: dict[str, dict[str, Any]] = {
    "variant": {"readers": ["variantType"]},
    "identity": {"writers": ["identityColumns"]},
    "suspended row tracking": {
        "writers": ["rowTracking", "domainMetadata"],
        "properties": {"delta.rowTrackingSuspended": "true"},
    },
    "defaults": {"writers": ["allowColumnDefaults"]},
    "iceberg": {"writers": ["icebergCompatV1"]},
}


@pytest.mark.parametrize("case", HARMLESS)
def test_features_that_no_column_uses_ask_nothing(lake: Lake, case: str) -> None:
    table = doctored(lake, **HARMLESS[case])
    table.append([{"id": 3}])
    table.delete("id = 1")
    assert sorted(r["id"] for r in table.to_pylist()) == [2, 3]


def test_a_field_may_be_called_variant(lake: Lake) -> None:
    table = lake.write("t", pa.table({"s": pa.array([{"variant": 1, "void": 2}]), "variant_id": [1]}))
    assert table.to_pylist() == [{"s": {"variant": 1, "void": 2}, "variant_id": 1}]


@pytest.mark.parametrize(
    ("versions", "ok"), [((1, 1), True), ((1, 2), True), ((1, 3), True), ((1, 4), True), ((2, 5), True), ((2, 6), True)]
)
def test_the_old_numbers(lake: Lake, versions: tuple[int, int], ok: bool) -> None:
    table = lake.write("t", [{"id": 1}, {"id": 2}], properties={"delta.enableDeletionVectors": "false"})
    path = Path(table.location) / "_delta_log/00000000000000000000.json"
    new = f'"minReaderVersion":{versions[0]},"minWriterVersion":{versions[1]}'
    path.write_text(path.read_text().replace('"minReaderVersion":1,"minWriterVersion":2', new))
    snapshot.forget(table.storage)
    table.append([{"id": 3}])
    assert table.detail()["min_writer_version"] == versions[1]
    table.set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    assert table.detail()["num_deleted_rows"] == 1
    assert sorted(r["id"] for r in table.to_pylist()) == [2, 3]
