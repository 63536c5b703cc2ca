"""A table's changes as a stream, and streams into tables, each row exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.waiting import PATIENCE_S, wait_until

import headwater as hw
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.source import ChangeReader, Stream
from headwater.lake.spark.stream import foreach_batch_append
from headwater.lake.spark.tasks import without_files
from headwater.lake.table import Table
from headwater.lakehouse import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = list[tuple[int, list[tuple[int, int, int]]]]


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "v": ["x"] * (stop - start)})


def drain(frame: DataFrame, checkpoint: Path, each: Callable[[DataFrame, int], None]) -> None:
    stream = frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query = stream.trigger(availableNow=True).start()
    query.awaitTermination(int(PATIENCE_S))
    assert not query.isActive


def collecting(into: Batches) -> Callable[[DataFrame, int], None]:
    def collect(frame: DataFrame, number: int) -> None:
        found = frame.select("_commit_version", "id", "_weight").collect()
        into.append((number, sorted((r[0], r[1], r[2]) for r in found)))

    return collect


@pytest.fixture
def source(lake: Lake) -> Table:
    """Versions: 0 three rows, 1 two more, 2 an update, 3 OPTIMIZE, 4 a delete."""
    table = lake.write("source", rows(0, 3))
    table.append(rows(3, 5))
    table.update({"v": "'y'"}, where="id = 1")
    table.optimize()
    table.delete("id = 4")
    return table


def test_versions_split_into_batches(source: Table, tmp_path: Path) -> None:
    got: Batches = []
    drain(source.spark_changes(starting_version=0, max_versions_per_trigger=2), tmp_path / "c", collecting(got))
    assert got == [
        (0, [(0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 3, 1), (1, 4, 1)]),
        (1, [(2, 1, -1), (2, 1, 1)]),
        (2, [(4, 4, -1)]),
    ]


def test_where_a_stream_begins(source: Table, tmp_path: Path) -> None:
    whole: Batches = []
    drain(source.spark_changes(max_versions_per_trigger=1), tmp_path / "whole", collecting(whole))
    assert whole == [(0, [(4, i, 1) for i in range(4)])], "all rows that are there, first"
    later: Batches = []
    drain(source.spark_changes(starting_version=4, columns=["id"]), tmp_path / "later", collecting(later))
    assert later == [(0, [(4, 4, -1)])]
    none: Batches = []
    drain(source.spark_changes(starting_version="latest"), tmp_path / "latest", collecting(none))
    assert [r for _, batch in none for r in batch] == []
    for bad in (-1, "soon", True):
        with pytest.raises(hw.InputError):
            source.spark_changes(starting_version=bad)  # type: ignore[arg-type]
    with pytest.raises(hw.InputError):
        source.spark_changes(max_versions_per_trigger=0)


def test_a_restart_goes_on(source: Table, tmp_path: Path) -> None:
    got: Batches = []
    drain(source.spark_changes(), tmp_path / "c", collecting(got))
    source.append(rows(10, 12))
    source.optimize()
    source.delete("id = 10")
    drain(source.spark_changes(), tmp_path / "c", collecting(got))
    assert [r for _, batch in got[1:] for r in batch] == [(5, 10, 1), (5, 11, 1), (7, 10, -1)]
    drain(source.spark_changes(), tmp_path / "c", collecting(got))
    summed: dict[int, int] = {}
    for _, batch in got:
        for _, key, weight in batch:
            summed[key] = summed.get(key, 0) + weight
    assert sorted(k for k, w in summed.items() if w) == sorted(source.to_arrow()["id"].to_pylist())


def test_a_live_query(source: Table, tmp_path: Path) -> None:
    got: Batches = []
    stream = source.spark_changes(starting_version="latest").writeStream.foreachBatch(collecting(got))
    stream = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(processingTime="100 milliseconds")
    query = stream.start()
    try:
        for i in range(3):
            source.append(rows(100 + i, 101 + i))
            wait_until(lambda i=i: sum(len(b) for _, b in got) > i, "the row that was just appended")  # type: ignore[misc]
    finally:
        query.stop()
    assert [r for _, batch in got for r in batch] == [(5, 100, 1), (6, 101, 1), (7, 102, 1)]


def test_exactly_once_across_a_crash(source: Table, lake: Lake, tmp_path: Path) -> None:
    target = lake.table("target")
    append = foreach_batch_append(target, "query-1")
    seen: list[int] = []

    def crashing(frame: DataFrame, number: int) -> None:
        seen.append(number)
        append(frame, number)
        if seen.count(1) == 1 and number == 1:
            raise RuntimeError("after the table's commit, before Spark's checkpoint")

    def start() -> None:
        drain(source.spark_changes(starting_version=0, max_versions_per_trigger=1), tmp_path / "c", crashing)

    with pytest.raises(Exception, match="before Spark's checkpoint"):
        start()
    assert target.version == 1 and target.count() == 5
    start()
    assert seen.count(1) == 2, "Spark repeats the batch"
    expected = sum(source.changes(v - 1, v).num_rows for v in range(source.version + 1))
    assert target.count() == expected
    again = foreach_batch_append(target, "query-1")
    assert target.history()[0].operation == "WRITE"
    with pytest.raises(hw.InputError):
        foreach_batch_append(target, "")
    assert callable(again)


def test_a_new_column_stops_the_stream_until_it_restarts(source: Table, tmp_path: Path) -> None:
    old: Any = source.spark_changes(starting_version="latest")
    chosen: Any = source.spark_changes(starting_version="latest", columns=["id"])
    source.append([{"id": 50, "v": "z", "w": 1.5}], schema_mode="merge")
    with pytest.raises(Exception, match="adds the column `w`"):
        drain(old, tmp_path / "a", collecting([]))
    got: Batches = []
    drain(chosen, tmp_path / "b", collecting(got))
    assert got == [(0, [(5, 50, 1)])]
    fresh: Batches = []
    drain(source.spark_changes(starting_version=5), tmp_path / "a2", collecting(fresh))
    assert fresh == [(0, [(5, 50, 1)])]


def test_copy_on_write_and_the_change_feed(lake: Lake, tmp_path: Path) -> None:
    """However a version was written, the stream gives what `changes` gives."""
    for name, properties in {
        "cow": {"delta.enableDeletionVectors": "false"},
        "cdf": {"delta.enableChangeDataFeed": "true"},
    }.items():
        table = lake.write(name, rows(0, 20), partition_by=["v"], properties=properties)
        table.update({"v": "'y'"}, where="id < 3")
        table.delete("id = 7")
        table.overwrite(rows(18, 25))
        got: Batches = []
        drain(table.spark_changes(starting_version=0), tmp_path / name, collecting(got))
        want = [
            (v, r["id"], r["_weight"])
            for v in range(table.version + 1)
            for r in table.changes(v - 1, v).to_arrow().to_pylist()
        ]
        assert [r for _, batch in got for r in batch] == sorted(want)


def test_a_table_that_is_partitioned_otherwise_on_the_way(lake: Lake, tmp_path: Path) -> None:
    table = lake.write("t", rows(0, 3))
    frame = table.spark_changes(starting_version=0)
    table.create(table.schema, data=rows(1, 4), mode="replace", partition_by=["id"])
    table.update({"v": "'y'"}, where="id = 3")
    table.restore(0)
    wanted = [
        *((0, i, 1) for i in range(3)),
        *((1, 0, -1), (1, 3, 1)),
        *((2, 3, -1), (2, 3, 1)),
        *((3, 0, 1), (3, 3, -1)),
    ]
    for number, one in enumerate((frame, table.spark_changes(starting_version=0))):
        got: Batches = []
        drain(one, tmp_path / str(number), collecting(got))
        assert [r for _, batch in got for r in batch] == wanted


def test_a_column_that_is_dropped_stops_the_stream(tmp_path: Path) -> None:
    """Decided where a batch is planned, which needs no session."""
    table = hw.connect(tmp_path).write("t", rows(0, 3), properties={"delta.columnMapping.mode": "name"})

    def planned(base: Snapshot, *columns: str) -> list[int]:
        chosen = Stream(without_files(base), columns or ("id", "v"), bool(columns), -1, None)
        parts = ChangeReader(chosen).partitions({"version": -1, "began": -1}, {"version": table.version, "began": -1})
        return [part.version for part in parts]

    before = table.snapshot
    table.drop_column("v")
    table.add_columns({"v": pa.string()})
    with pytest.raises(hw.SchemaError, match="no column `v` any more"):
        planned(before)
    assert planned(before, "id") == planned(table.snapshot) == [0]
    before = table.snapshot
    table.widen_column("id", pa.decimal128(20, 0))
    with pytest.raises(hw.SchemaError, match="changes the column `id` from long to decimal"):
        planned(before, "id")
