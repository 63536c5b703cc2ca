"""Timestamps as partition values: one form in the log and one in folders, which are those that delta-spark writes."""

from __future__ import annotations

import datetime as dt
import json

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from headwater.lake import partitions, snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.oracles import assert_same_rows

NOON = dt.datetime(2020, 1, 31, 12, tzinfo=dt.UTC)
MOMENTS = [
    NOON,
    NOON.replace(microsecond=5),
    NOON.replace(microsecond=500_000),
    dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
    None,
]
ROWS = pa.table({"id": range(5), "ts": pa.array(MOMENTS, pa.timestamp("us", "UTC"))})


def places(table: Table) -> set[tuple[str | None, str]]:
    files = table.snapshot.files.values()
    return {(f.partition_values["ts"], partitions.decode_path(f.path).split("/")[0]) for f in files}


def test_the_forms(lake: Lake) -> None:
    table = lake.write("t", ROWS, partition_by=["ts"])
    assert places(table) == {
        ("2020-01-31T12:00:00.000000Z", "ts=2020-01-31%2012%3A00%3A00"),
        ("2020-01-31T12:00:00.000005Z", "ts=2020-01-31%2012%3A00%3A00.000005"),
        ("2020-01-31T12:00:00.500000Z", "ts=2020-01-31%2012%3A00%3A00.5"),
        ("1900-01-01T00:00:00.000000Z", "ts=1900-01-01%2000%3A00%3A00"),
        (None, "ts=__HIVE_DEFAULT_PARTITION__"),
    }
    text = lake.write("u", ROWS.set_column(1, "ts", pa.array(["2020-01-31T12:00:00.000000Z"] * 5)), partition_by=["ts"])
    assert places(text) == {("2020-01-31T12:00:00.000000Z", "ts=2020-01-31T12%3A00%3A00.000000Z")}, "text stays text"


@pytest.mark.interop
@pytest.mark.parametrize("ours_first", [True, False])
def test_other_readers_of_a_table_of_two_writers(lake: Lake, ours_first: bool) -> None:
    table = lake.table("t")
    plain = {"delta.enableDeletionVectors": "false"}
    for ours in (ours_first, not ours_first):
        if ours:
            table.write(ROWS, partition_by=["ts"], properties=plain if not table.exists() else None)
        else:
            write_deltalake(table.location, ROWS, partition_by=["ts"], mode="append")
            snapshot.forget(table.storage)
    spelled = {text for text, _ in places(table)}
    assert len(spelled) == 9, "deltalake has another form in the log"
    expected = pa.concat_tables([ROWS, ROWS])
    assert_same_rows(table.to_arrow(), expected)
    theirs = QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT id, ts FROM t")
    read = pa.RecordBatchReader.from_stream(theirs).read_all()
    assert_same_rows(read.cast(expected.schema), expected, where="deltalake")
    assert_same_rows(pl.read_delta(table.location).to_arrow().cast(expected.schema), expected, where="polars")


@pytest.mark.interop
def test_polars_reads_what_delta_spark_writes_beside_it(lake: Lake) -> None:
    """An action of delta-spark 4.4, taken from its log: the blank of the folder is encoded once."""
    table = lake.write("t", ROWS, partition_by=["ts"], properties={"delta.enableDeletionVectors": "false"})
    path = next(p for p in table.snapshot.files if "500000" not in p and "ts=2020" in p)
    data = table.storage.get(partitions.decode_path(path))
    table.storage.put("ts=2021-01-31 10%3A00%3A00.5/part-0.parquet", data)
    add = {
        "path": "ts=2021-01-31%2010%253A00%253A00.5/part-0.parquet",
        "partitionValues": {"ts": "2021-01-31T10:00:00.500000Z"},
        "size": len(data),
        "modificationTime": 1,
        "dataChange": True,
    }
    table.storage.put("_delta_log/00000000000000000001.json", json.dumps({"add": add}).encode())
    assert table.count() == 6
    ours = table.to_arrow()
    assert_same_rows(pl.read_delta(table.location).to_arrow().cast(ours.schema), ours, where="polars")
