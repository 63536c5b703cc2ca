"""Checkpoints in every shape, damaged ones, and the log that is cleaned up behind them."""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import headwater as hw
from headwater.lake import log, snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake

LOG = "_delta_log"


@pytest.fixture
def table(lake: Lake) -> Table:
    """Nine versions with vectors, removed files, a transaction and partitions; no checkpoint yet."""
    made = lake.write("t", [{"id": i, "p": "a b"} for i in range(4)], partition_by=["p"], txn=("app", 7))
    for i in range(4, 8):
        made.append([{"id": i, "p": None}])
    made.delete("id = 1")
    made.delete("id = 2")
    made.delete("id = 7")
    made.set_properties({"owner": "me"})
    return made


EXPECTED = [0, 3, 4, 5, 6]


def reopened(table: Table) -> Table:
    snapshot.forget(table.storage)
    return Table(table.storage, table.name)


def check(table: Table) -> None:
    table = reopened(table)
    assert sorted(r["id"] for r in table.to_pylist()) == EXPECTED
    assert table.count() == 5
    assert table.snapshot.state.txns == {"app": 7}
    assert table.detail()["properties"]["owner"] == "me"
    assert table.snapshot.version == 8


def folder(table: Table) -> Path:
    return Path(table.location) / LOG


def drop_commits(table: Table, until: int) -> None:
    for version in range(until + 1):
        (folder(table) / f"{version:020d}.json").unlink()


def test_a_classic_checkpoint_says_everything(table: Table) -> None:
    table.checkpoint()
    drop_commits(table, 7)
    check(table)
    assert len(DeltaTable(table.location).file_uris()) == 4
    with pytest.raises(hw.NotFoundError, match="version 3"):
        reopened(table).at(version=3)


def test_one_is_written_every_few_commits(lake: Lake) -> None:
    table = lake.write("t", [{"id": 0}], properties={"delta.checkpointInterval": "3"})
    for i in range(1, 8):
        table.append([{"id": i}])
    names = sorted(p.name for p in folder(table).iterdir() if "checkpoint" in p.name and p.name[0] != "_")
    assert names == [f"{v:020d}.checkpoint.parquet" for v in (3, 6)]
    assert json.loads((folder(table) / "_last_checkpoint").read_text())["version"] == 6


def rewrite(table: Table) -> pa.Table:
    """The rows of a classic checkpoint, which is taken away."""
    table.checkpoint()
    path = folder(table) / f"{8:020d}.checkpoint.parquet"
    rows = pq.read_table(path)
    path.unlink()
    (folder(table) / "_last_checkpoint").unlink()
    return rows


def of_kind(rows: pa.Table, *kinds: str) -> pa.Table:
    return rows.filter(pa.compute.is_valid(rows[kinds[0]]) if len(kinds) == 1 else _any_valid(rows, kinds))


def _any_valid(rows: pa.Table, kinds: tuple[str, ...]) -> pa.ChunkedArray:
    found = pa.compute.is_valid(rows[kinds[0]])
    for kind in kinds[1:]:
        found = pa.compute.or_(found, pa.compute.is_valid(rows[kind]))
    return found


@pytest.mark.parametrize("order", [("add", "remove"), ("remove", "add")])
def test_several_parts_whichever_holds_the_tombstones(table: Table, order: tuple[str, str]) -> None:
    rows = rewrite(table)
    parts = [of_kind(rows, order[0]), of_kind(rows, order[1]), of_kind(rows, "protocol", "metaData", "txn")]
    for i, part in enumerate(parts, 1):
        pq.write_table(part, folder(table) / f"{8:020d}.checkpoint.{i:010d}.{3:010d}.parquet")
    drop_commits(table, 8)
    check_files_stay(table)


def check_files_stay(table: Table) -> None:
    check(table)
    state = log.load(table.storage, tombstones=True)
    assert set(state.files) == set(reopened(table).snapshot.files)
    assert len(state.tombstones or ()) == 3
    table.checkpoint()
    check(table)


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_manifest_with_sidecars(table: Table, kind: str) -> None:
    rows = rewrite(table)
    sidecars = folder(table) / "_sidecars"
    sidecars.mkdir()
    names = []
    for part in (of_kind(rows, "add"), of_kind(rows, "remove")):
        names.append(f"{uuid.uuid4()}.parquet")
        pq.write_table(part.select(["add", "remove"]), sidecars / names[-1])
    rest = of_kind(rows, "protocol", "metaData", "txn").select(["protocol", "metaData", "txn"])
    manifest = folder(table) / f"{8:020d}.checkpoint.{uuid.uuid4()}.{kind}"
    files = [{"path": n, "sizeInBytes": 1, "modificationTime": 1, "tags": None} for n in names]
    if kind == "json":
        lines: list[dict[str, Any]] = [{"checkpointMetadata": {"version": 8}}]
        lines += [{k: v for k, v in r.items() if v is not None} for r in rest.to_pylist(maps_as_pydicts="strict")]
        lines += [{"sidecar": f} for f in files]
        manifest.write_text("\n".join(json.dumps(line) for line in lines))
    else:
        sidecar = pa.array([None] * rest.num_rows + files)
        more = pa.concat_tables(
            [rest, pa.table({"txn": pa.nulls(len(files), rest.schema.field("txn").type)})], promote_options="default"
        )
        pq.write_table(more.append_column("sidecar", sidecar), manifest)
    drop_commits(table, 8)
    check_files_stay(table)


def test_parts_that_are_missing_make_no_checkpoint(table: Table) -> None:
    rows = rewrite(table)
    pq.write_table(of_kind(rows, "add"), folder(table) / f"{8:020d}.checkpoint.{1:010d}.{2:010d}.parquet")
    check(table)


@pytest.mark.parametrize("damage", [b"", b"PAR1 not really PAR1", b"{}"])
def test_a_damaged_checkpoint_is_passed_over(table: Table, damage: bytes) -> None:
    table.checkpoint()
    (folder(table) / f"{8:020d}.checkpoint.parquet").write_bytes(damage)
    check(table)
    reopened(table).append([{"id": 100, "p": "x"}])
    assert reopened(table).count() == 6


def test_a_damaged_checkpoint_that_is_needed_is_an_error(table: Table) -> None:
    table.checkpoint()
    path = folder(table) / f"{8:020d}.checkpoint.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    drop_commits(table, 3)
    with pytest.raises(hw.CorruptionError, match="checkpoint"):
        reopened(table).count()


@pytest.mark.parametrize("hint", [b"", b"not json", b'{"version": 999}', b'{"version": 3}'])
def test_the_hint_is_only_a_hint(table: Table, hint: bytes) -> None:
    table.checkpoint()
    (folder(table) / "_last_checkpoint").write_bytes(hint)
    check(table)


def test_gaps_and_broken_entries_are_told_apart(table: Table) -> None:
    path = folder(table) / f"{5:020d}.json"
    kept = path.read_bytes()
    path.unlink()
    with pytest.raises(hw.CorruptionError, match="version 5 is missing"):
        reopened(table).count()
    path.write_bytes(kept[:50])
    with pytest.raises(hw.CorruptionError, match=r"00000000000000000005\.json"):
        reopened(table).count()
    assert reopened_at(table, 4) == 8
    path.write_bytes(kept)
    check(table)


def reopened_at(table: Table, version: int) -> int:
    return Table(table.storage, "t", pinned=snapshot.at_version(table.storage, version)).count()


def test_old_log_files_go_after_a_checkpoint(lake: Lake) -> None:
    table = lake.write("t", [{"id": 0}], properties={"delta.checkpointInterval": "5"})
    for i in range(1, 9):
        table.append([{"id": i}])
    for version in range(8):
        os.utime(folder(table) / f"{version:020d}.json", (1, 1))
    for i in range(9, 11):
        table.append([{"id": i}])
    commits = sorted(int(p.name[:20]) for p in folder(table).glob("*.json"))
    assert commits == list(range(5, 11)), "what version 5 is rebuilt from stays, and everything after it"
    table = reopened(table)
    assert [table.at(version=v).count() for v in range(5, 11)] == list(range(6, 12))
    with pytest.raises(hw.NotFoundError):
        table.at(version=4)
    with pytest.raises(hw.NotFoundError):
        table.changes(after=2)
    assert len(table.changes(after=5)) == 5
    assert [e.version for e in table.history()] == list(range(10, 4, -1))


def test_log_cleanup_can_be_off(lake: Lake) -> None:
    properties = {"delta.checkpointInterval": "2", "delta.enableExpiredLogCleanup": "false"}
    table = lake.write("t", [{"id": 0}], properties=properties)
    for i in range(1, 5):
        os.utime(folder(table) / f"{i - 1:020d}.json", (1, 1))
        table.append([{"id": i}])
    assert len(list(folder(table).glob("*.json"))) == 5


def test_statistics_as_columns_only(lake: Lake) -> None:
    """Writers may keep a file's statistics as a struct, and leave the text out."""
    at = dt.datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=dt.UTC)
    kinds = {
        "id": pa.int64(),
        "n": pa.decimal128(10, 2),
        "at": pa.timestamp("us", "UTC"),
        "d": pa.date32(),
        "s": pa.string(),
    }
    data: list[dict[str, Any]] = [
        {"id": i, "n": Decimal(i) / 4, "at": at + dt.timedelta(hours=i), "d": at.date(), "s": f"s{i}"} for i in range(8)
    ]
    table = lake.table("t").create(kinds)
    for i in (0, 4):
        table.append(pa.Table.from_pylist(data[i : i + 4], table.schema))
    table.checkpoint()
    path = folder(table) / f"{2:020d}.checkpoint.parquet"
    rows = pq.read_table(path)
    adds = rows["add"].to_pylist()
    bounds = pa.struct(list(kinds.items()))
    parsed = pa.struct(
        [
            ("numRecords", pa.int64()),
            ("minValues", bounds),
            ("maxValues", bounds),
            ("nullCount", pa.struct([(k, pa.int64()) for k in kinds])),
        ]
    )
    numbers = iter((0, 4))
    for add in [a for a in adds if a is not None]:
        first = next(numbers)
        del add["stats"]
        nulls = dict.fromkeys(kinds, 0)
        add["stats_parsed"] = {
            "numRecords": 4,
            "minValues": data[first],
            "maxValues": data[first + 3],
            "nullCount": nulls,
        }
    fields = [f for f in rows.schema.field("add").type if f.name != "stats"]
    column = pa.array(adds, pa.struct([*fields, pa.field("stats_parsed", parsed)]))
    pq.write_table(rows.set_column(rows.column_names.index("add"), "add", column), path)
    drop_commits(table, 2)
    table = reopened(table)
    assert table.count() == 8
    for text in (
        "n = 1.25",
        "n < 0.5",
        f"at >= TIMESTAMP '{data[5]['at'].isoformat()}'",
        "d = DATE '2024-01-01'",
        "s = 's6'",
    ):
        expected = {
            "n = 1.25": [5],
            "n < 0.5": [0, 1],
            "d = DATE '2024-01-01'": list(range(8)),
            "s = 's6'": [6],
        }.get(text, [5, 6, 7])
        assert sorted(r["id"] for r in table.to_pylist(where=text)) == expected, text
    table.delete("id = 5")
    assert table.count() == 7
