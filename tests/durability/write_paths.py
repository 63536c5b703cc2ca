"""Every way a lake is written, as a preparation and an act; and what must hold whatever interrupts the act.

After a crash or an error the table is at the version before the act or at the one after it, its rows are those of that
version, other readers agree, the next write works, and a vacuum leaves exactly the files that the table needs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.base import settings
from headwater.lake.partitions import decode_path
from headwater.lake.table import Table
from headwater.lakehouse import Lake

Step = Callable[[Lake], Any]


@dataclass(frozen=True)
class WritePath:
    name: str
    prepare: Step
    act: Step


def _rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": ids, "p": [f"p{i % 3}" for i in ids], "v": [i * 10 for i in ids]})


def _nothing(lake: Lake) -> None:
    return None


def _made(properties: Mapping[str, str] | None = None, *, partitioned: bool = False) -> Step:
    def prepare(lake: Lake) -> None:
        given = {f"delta.{name}": value for name, value in (properties or {}).items()}
        t = lake.write("t", _rows(0, 60), partition_by=["p"] if partitioned else [], properties=given)
        t.append(_rows(60, 90))
        t.delete("id = 70")

    return prepare


def _table(act: Callable[[Table], Any], *, small_vector_bytes: int | None = None) -> Step:
    def run(lake: Lake) -> None:
        if small_vector_bytes is None:
            act(lake.table("t"))
        else:
            with settings.override(small_vector_bytes=small_vector_bytes):
                act(lake.table("t"))

    return run


def _merge(t: Table) -> None:
    merge = t.merge(_rows(50, 100).set_column(2, "v", pa.array([7] * 50)), on=["id"])
    merge = merge.when_matched_delete(condition="t.id % 7 = 0").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()


def _expired_log(lake: Lake) -> None:
    _made({"checkpointInterval": "2", "logRetentionDuration": "interval 0 seconds"})(lake)
    time.sleep(0.01)


def _dead_files(lake: Lake) -> None:
    _made()(lake)
    t = lake.table("t")
    t.update({"v": "v + 1"}, where="id < 20")
    t.optimize()
    time.sleep(0.005)


def _vacuum(t: Table) -> None:
    t.vacuum(retention_hours=0, enforce_retention=False)


FEED = {"enableChangeDataFeed": "true"}
COPY = {"enableDeletionVectors": "false"}
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])

# A path that Spark writes belongs here as well: its tasks are other processes, so only the driver's part is killed.
PATHS = [
    WritePath("create", _nothing, _table(lambda t: t.create(SCHEMA))),
    WritePath("create_with_rows", _nothing, lambda lake: lake.write("t", _rows(0, 60))),
    WritePath("create_partitioned", _nothing, lambda lake: lake.write("t", _rows(0, 60), partition_by=["p"])),
    WritePath("append", _made(), _table(lambda t: t.append(_rows(100, 120)))),
    WritePath("append_partitioned", _made(partitioned=True), _table(lambda t: t.append(_rows(100, 120)))),
    WritePath("append_once", _made(), _table(lambda t: t.append(_rows(100, 120), txn=("app", 1)))),
    WritePath(
        "append_new_column",
        _made(),
        _table(
            lambda t: t.append(_rows(100, 120).append_column("w", pa.array(range(20))), schema_mode="merge"),
        ),
    ),
    WritePath("append_checkpoint", _made({"checkpointInterval": "1"}), _table(lambda t: t.append(_rows(100, 120)))),
    WritePath("append_clean_log", _expired_log, _table(lambda t: [t.append(_rows(n, n + 1)) for n in (200, 201)])),
    WritePath("overwrite", _made(), _table(lambda t: t.overwrite(_rows(5, 9)))),
    WritePath("overwrite_where", _made(), _table(lambda t: t.overwrite(_rows(5, 9), where="id < 40"))),
    WritePath(
        "overwrite_partitions",
        _made(partitioned=True),
        _table(lambda t: t.overwrite(_rows(3, 5), partitions="dynamic")),
    ),
    WritePath("overwrite_feed", _made(FEED), _table(lambda t: t.overwrite(_rows(5, 9), where="id < 40"))),
    WritePath("delete_inline", _made(), _table(lambda t: t.delete("id % 3 = 0"))),
    WritePath("delete_vector_file", _made(), _table(lambda t: t.delete("id % 3 = 0"), small_vector_bytes=0)),
    WritePath("delete_copy", _made(COPY), _table(lambda t: t.delete("id % 3 = 0"))),
    WritePath("delete_feed", _made(FEED), _table(lambda t: t.delete("id % 3 = 0"))),
    WritePath("delete_all", _made(), _table(lambda t: t.delete())),
    WritePath("update_inline", _made(), _table(lambda t: t.update({"v": "v + 1"}, where="id > 40"))),
    WritePath(
        "update_vector_file", _made(), _table(lambda t: t.update({"v": "v + 1"}, where="id > 40"), small_vector_bytes=0)
    ),
    WritePath("update_copy", _made(COPY), _table(lambda t: t.update({"v": "v + 1"}, where="id > 40"))),
    WritePath("update_feed", _made(FEED), _table(lambda t: t.update({"v": "v + 1"}, where="id > 40"))),
    WritePath("merge_inline", _made(), _table(_merge)),
    WritePath("merge_vector_file", _made(partitioned=True), _table(_merge, small_vector_bytes=0)),
    WritePath("merge_copy", _made(COPY), _table(_merge)),
    WritePath("merge_feed", _made(FEED), _table(_merge)),
    WritePath("optimize", _made(), _table(lambda t: t.optimize())),
    WritePath("zorder", _made(partitioned=True), _table(lambda t: t.optimize(zorder_by=["id", "v"]))),
    WritePath("restore", _made(), _table(lambda t: t.restore(version=0))),
    WritePath("add_column", _made(), _table(lambda t: t.add_columns({"w": pa.string()}))),
    WritePath("set_properties", _made(), _table(lambda t: t.set_properties({"delta.enableChangeDataFeed": "true"}))),
    WritePath("add_constraint", _made(), _table(lambda t: t.add_constraint("sane", "id >= 0"))),
    WritePath("checkpoint", _made(), _table(lambda t: t.checkpoint())),
    WritePath("vacuum", _dead_files, _table(_vacuum)),
]
BY_NAME = {path.name: path for path in PATHS}


@dataclass(frozen=True)
class State:
    """What a reader sees; version -1 is no table."""

    version: int
    rows: tuple[str, ...]


def row_texts(table: pa.Table) -> tuple[str, ...]:
    return tuple(sorted(json.dumps(r, sort_keys=True, default=str) for r in table.to_pylist()))


def state_of(folder: Path) -> State:
    t = hw.connect(folder).table("t")
    return State(t.version, row_texts(t.to_arrow())) if t.exists() else State(-1, ())


def check_after(folder: Path, path: WritePath, before: State, after: State, *, others: bool = True) -> State:
    """Assert what must hold after the act was interrupted; returns the state that was found."""
    lake = hw.connect(folder)
    found = state_of(folder)
    between = range(before.version, after.version + 1)
    assert found.version in between, f"version {found.version}, not in {before.version}..{after.version}"
    if len(between) <= 2:
        assert found.rows == (after if found.version == after.version else before).rows
    if found.version < 0:
        assert lake.tables() == []
        path.act(lake)
        assert state_of(folder) == after
    t = lake.table("t")
    if others:
        check_other_readers(t)
    kept = row_texts(t.to_arrow())
    t.append([{"id": 10_000}])
    assert t.version == max(found.version, 0) + 1
    assert t.delete("id = 10000")["numDeletedRows"] == 1
    assert row_texts(t.to_arrow()) == kept
    check_vacuum_sweeps(t)
    assert row_texts(t.to_arrow()) == kept
    return found


def check_other_readers(t: Table) -> None:
    import polars as pl
    from deltalake import DeltaTable

    ours = row_texts(t.to_arrow())
    assert DeltaTable(t.location).version() == t.version
    assert row_texts(pl.read_delta(t.location).to_arrow()) == ours


def check_vacuum_sweeps(t: Table) -> None:
    """A vacuum without retention leaves the log and the live files, and nothing else."""
    time.sleep(0.003)
    t.vacuum(retention_hours=0, enforce_retention=False)
    live = {decode_path(f.path) for f in t.snapshot.files.values()}
    vectors = [f.deletion_vector for f in t.snapshot.files.values() if f.deletion_vector is not None]
    live |= {v.relative_path() for v in vectors if not v.is_inline}
    there, staged = set(), []
    for folder, _, names in os.walk(t.location):
        for name in names:
            relative = os.path.relpath(os.path.join(folder, name), t.location)
            if name.endswith(".tmp"):
                staged.append(relative)
            elif not relative.startswith("_delta_log"):
                there.add(relative)
    assert there == live
    assert not staged
