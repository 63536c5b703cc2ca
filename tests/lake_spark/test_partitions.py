"""Partition values come from the log, and Spark still prunes by them."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake import snapshot
from headwater.lake.spark.placement import place
from headwater.lakehouse import Lake

from .conftest import agree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = [
    "plain",
    "a b",
    "50%",
    "a/b",
    "é 日本",
    "k=v",
    "%20",
    "x:y",
    "[b]*?",
    "",
    None,
    "1",
    "01",
    "2020-01-01",
    "null",
]

VALUES = {
    "string": pa.array(TEXTS),
    "int": pa.array([1, -7, None], pa.int32()),
    "long": pa.array([1 << 60, None], pa.int64()),
    "bool": pa.array([True, False, None]),
    "double": pa.array([0.1, 1e300, float("inf"), float("nan"), None]),
    "float": pa.array([0.1, None], pa.float32()),
    "decimal": pa.array([Decimal("1.50"), Decimal("0.00"), None], pa.decimal128(20, 2)),
    "date": pa.array([dt.date(2020, 2, 29), dt.date(1, 1, 1), None]),
    "timestamp": pa.array([dt.datetime(2020, 1, 1, 1, 2, 3, 4, dt.UTC), None], pa.timestamp("us", "UTC")),
    "clock": pa.array([dt.datetime(2020, 1, 1, 1, 2, 3), dt.datetime(2020, 1, 1, 0, 0, 0, 7)], pa.timestamp("us")),
    "binary": pa.array([b"abc", "é".encode(), None]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_each_type(lake: Lake, kind: str) -> None:
    values = VALUES[kind]
    rows = pa.table({"id": range(len(values)), "p": values})
    table = lake.write("t", rows, partition_by=["p"])
    assert agree(table) == len(values)
    by_spark = lake.write("u", table.spark(), partition_by=["p"])
    assert agree(by_spark) == len(values)
    texts = [sorted(str(f.partition_values) for f in t.snapshot.files.values()) for t in (table, by_spark)]
    assert texts[0] == texts[1], "both writers say the same in the log"
    assert hw.ChangeBatch.diff(by_spark.to_arrow(), table.to_arrow()).is_empty
    folders = [{os.path.dirname(f) for f in t.snapshot.files} for t in (table, by_spark)]
    assert folders[0] == folders[1], "and in the folders"


@pytest.mark.interop
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_timestamps_of_both_writers_for_other_readers(lake: Lake, zone: str) -> None:
    """Files that are written here and by Spark lie in folders of one form, which polars and deltalake read."""
    import polars as pl
    from deltalake import DeltaTable, QueryBuilder

    rows = pa.table({"id": range(2), "p": VALUES["timestamp"]})
    table = lake.write("t", rows, partition_by=["p"], properties={"delta.enableDeletionVectors": "false"})
    lake.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table.append(table.spark())
        assert agree(table) == 4
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert len({os.path.dirname(f) for f in table.snapshot.files}) == 2
    assert [s.root for s in place(table.snapshot, list(table.snapshot.files.values()))] == [""], (
        "Spark can prune by them"
    )
    expected = pa.concat_tables([rows, rows])
    theirs = QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT id, p FROM t")
    for found in (pa.RecordBatchReader.from_stream(theirs).read_all(), pl.read_delta(table.location).to_arrow()):
        assert hw.ChangeBatch.diff(found.cast(expected.schema), expected).is_empty


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_zone_of_the_session_changes_nothing(lake: Lake, zone: str) -> None:
    moments = [dt.datetime(2020, 11, 1, hour, 30, tzinfo=dt.UTC) for hour in range(4, 8)]  # New York turns its clocks
    rows = pa.table({"id": range(4), "p": pa.array(moments, pa.timestamp("us", "UTC")), "ts": moments})
    lake.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table = lake.write("t", rows, partition_by=["p"])
        table.append(table.spark())
        assert table.to_arrow().num_rows == 8
        assert hw.ChangeBatch.diff(table.to_arrow(), pa.concat_tables([rows, rows]).cast(table.schema)).is_empty
        assert agree(table) == 8
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_pruning(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    moments = pa.array([dt.datetime(2020, 1, d, tzinfo=dt.UTC) for d in (1, 2, 3)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": range(3), "day": [dt.date(2020, 1, d) for d in (1, 2, 3)], "ts": moments})
    table = lake.write("t", rows, partition_by=["day", "ts"])
    frame = table.spark().where("day = DATE'2020-01-02' AND ts = TIMESTAMP'2020-01-02 00:00:00'")
    frame.explain()
    plan = capsys.readouterr().out
    filters = plan[plan.index("PartitionFilters") : plan.index("PushedFilters")]
    assert "day" in filters and "ts" in filters, plan
    assert frame.select("id").toArrow()["id"].to_pylist() == [1]


def test_folders_that_lie(lake: Lake, spark: SparkSession) -> None:
    """Another writer may put files anywhere; what the log says counts."""
    table = lake.write(
        "t", pa.table({"id": range(6), "p": ["a", "b", "c"] * 2, "q": [1, 1, 1, 2, 2, 2]}), partition_by=["p", "q"]
    )
    log = Path(table.location, "_delta_log", f"{0:020d}.json")
    text = log.read_text()
    homes = ["x", "p=zzz/q=9", "q=1/p=a", "p=a/q=1/deeper", "", "p=__HIVE_DEFAULT_PARTITION__/q=1"]
    for number, (path, home) in enumerate(zip(table.snapshot.files, homes, strict=True)):
        to = f"{home}/f{number}.parquet".lstrip("/")
        os.makedirs(Path(table.location, home), exist_ok=True)
        os.rename(Path(table.location, path), Path(table.location, to))
        text = text.replace(f'"{path}"', f'"{to}"')
    log.write_text(text)
    snapshot.forget(table.storage)
    assert [s.root for s in place(table.snapshot, list(table.snapshot.files.values()))] == [None]
    assert agree(table) == 6
    table.delete("id IN (0, 4)")
    table.append(spark.createDataFrame([(9, "a", 1)], "id long, p string, q long"))
    assert agree(table) == 5


def test_many_partitions(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", pa.table({"id": range(400), "p": [f"n{i}" for i in range(400)]}), partition_by=["p"])
    assert agree(table) == 400
    assert table.spark().where("p = 'n7'").count() == 1


def test_a_text_too_long_for_a_folder(lake: Lake, spark: SparkSession) -> None:
    rows = [(1, "x" * 300), (2, "é" * 200), (3, "short")]
    table = lake.write("t", spark.createDataFrame(rows, "id long, p string"), partition_by=["p"])
    assert agree(table) == 3
    assert sorted(table.to_arrow()["p"].to_pylist()) == sorted(p for _, p in rows)
