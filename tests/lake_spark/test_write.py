"""What Spark writes is what the table then holds; what fails leaves nothing."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

import headwater as hw
from headwater.lake.spark.types import arrow_schema
from headwater.lakehouse import Lake
from headwater.testing.faults import FaultPlan, SimulatedCrash

from .conftest import agree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files_below(location: str) -> set[str]:
    return {os.path.join(d, f) for d, _, names in os.walk(location) for f in names if "_delta_log" not in d}


def test_modes(lake: Lake, spark: SparkSession) -> None:
    ten = spark.range(10).select("id", (sf.col("id") % 3).alias("k"))
    table = lake.write("t", ten, partition_by=["k"], properties={"delta.dataSkippingNumIndexedCols": "1"})
    assert table.snapshot.partition_columns == ("k",) and agree(table) == 10
    assert table.history()[0].operation == "CREATE TABLE AS SELECT"
    assert table.snapshot.schema.field("id").nullable, "that a frame has no nulls is no rule for the table"
    assert lake.write("t", ten).count() == 20
    done = table.overwrite(spark.range(100, 103).select("id", sf.lit(1).cast("long").alias("k")), partitions="dynamic")
    assert done["numOutputRows"] == 3 and agree(table) == 20 - 6 + 3
    table.overwrite(spark.range(4, 7).select("id", (sf.col("id") % 3).alias("k")), where="id BETWEEN 4 AND 6")
    assert agree(table) == 17 - 2 - 2 + 3
    table.overwrite(spark.range(5).select("id", sf.lit(0).cast("long").alias("k")))
    assert agree(table) == 5
    table.overwrite(table.spark().where("id > 2"))  # from itself
    assert agree(table) == 2
    with pytest.raises(hw.InputError, match="exists already"):
        lake.write("t", ten, mode="error")


def test_statistics_come_from_the_footers(lake: Lake, spark: SparkSession) -> None:
    frame = spark.range(0, 1000, 1, 1).select("id", sf.timestamp_seconds("id").alias("ts"), sf.lit("x").alias("s"))
    table = lake.write("t", frame)
    (add,) = table.snapshot.files.values()
    assert add.num_records == 1000 and add.stats is not None
    assert '"minValues":{"id":0,"ts":"1970-01-01T00:00:00.000Z","s":"x"}' in add.stats
    footer = pq.read_metadata(Path(table.location, add.path))
    assert footer.schema.column(1).physical_type == "INT64", "not the INT96 of Spark's default"
    assert add.size == os.path.getsize(Path(table.location, add.path))
    assert len(files_below(table.location)) == 1, "no markers, no checksums, no empty files"


def test_the_session_keeps_its_settings(lake: Lake, spark: SparkSession) -> None:
    name = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(name, "TIMESTAMP_MILLIS")
    try:
        lake.write("t", spark.range(3))
        assert spark.conf.get(name) == "TIMESTAMP_MILLIS"
    finally:
        spark.conf.unset(name)
    lake.write("t", spark.range(3))
    assert spark.conf.get(name, None) is None


def test_schema_modes(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", spark.range(3))
    wide = spark.range(3, 5).select(sf.lit("x").alias("s"), sf.col("id").alias("ID"))
    with pytest.raises(hw.SchemaError, match="columns the table lacks: s"):
        table.append(wide)
    table.append(wide, schema_mode="merge")
    assert table.schema.names == ["id", "s"] and agree(table) == 5
    table.append(spark.range(5, 6))  # a column that is left out is null
    assert table.to_arrow(where="id = 5")["s"].to_pylist() == [None]
    table.overwrite(spark.range(2).select(sf.col("id").cast("string").alias("id")), schema_mode="replace")
    assert table.schema.field("id").type == pa.string() and agree(table) == 2


CONVERSIONS = [
    ("int", "cast(7 as bigint)", 7),
    ("int", "cast(1L << 40 as bigint)", None),
    ("tinyint", "300", None),
    ("bigint", "cast(3.0 as double)", 3),
    ("bigint", "cast(3.5 as double)", None),
    ("double", "cast(7 as bigint)", 7.0),
    ("double", "cast(9007199254740993 as bigint)", None),
    ("double", "cast('NaN' as double)", "nan"),
    ("float", "cast(0.1 as double)", pytest.approx(0.1)),
    ("decimal(5,2)", "cast(1.5 as decimal(10,3))", 1.5),
    ("decimal(5,2)", "cast(1.555 as decimal(10,3))", None),
    ("decimal(5,2)", "123456", None),
    ("int", "cast(null as bigint)", "null"),
    ("string", "null", "null"),
    ("timestamp", "timestamp_ntz'2020-07-01 12:00:00.5'", dt.datetime(2020, 7, 1, 12, 0, 0, 500000, dt.UTC)),
    ("timestamp", "date'2020-07-01'", dt.datetime(2020, 7, 1, tzinfo=dt.UTC)),
    ("timestamp_ntz", "timestamp'1931-07-01 12:00:00.000001Z'", dt.datetime(1931, 7, 1, 12, 0, 0, 1)),
    ("timestamp_ntz", "date'2020-07-01'", dt.datetime(2020, 7, 1)),
    ("array<struct<a:bigint,b:string>>", "array(named_struct('b', 'x', 'a', 1))", [{"a": 1, "b": "x"}]),
    ("struct<a:bigint,b:string>", "named_struct('a', 1)", {"a": 1, "b": None}),
    ("map<string,double>", "map('k', 1)", [("k", 1.0)]),
]


@pytest.mark.parametrize(("ansi", "zone"), [("true", "UTC"), ("false", "America/New_York")])
def test_conversions(lake: Lake, spark: SparkSession, ansi: str, zone: str) -> None:
    """A column for each; a value that would lose something is refused, whatever mode and zone the session has."""
    columns = ", ".join(f"c{i} {kind}" for i, (kind, *_) in enumerate(CONVERSIONS))
    table = lake.table("t").create(arrow_schema(spark.createDataFrame([], columns).schema))
    good = [f"{text} AS c{i}" for i, (_, text, want) in enumerate(CONVERSIONS) if want is not None]
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        table.append(spark.range(1).selectExpr(*good))
        (row,) = table.to_pylist()
        for i, (kind, text, want) in enumerate(CONVERSIONS):
            have = row[f"c{i}"]
            if want is None:
                with pytest.raises(hw.SchemaError) as caught:
                    table.append(spark.range(2).selectExpr(f"{text} AS c{i}"))
                assert caught.value.code == "E1210"
            else:
                ok = have != have if want == "nan" else have is None if want == "null" else have == want
                assert ok, (kind, text, have)
        assert table.version == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_clashes(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", spark.createDataFrame([], "n int, s struct<a:int>"))
    for frame in (
        spark.range(1).selectExpr("'1' AS n"),
        spark.range(1).selectExpr("1 AS n", "named_struct('a', 1L) AS s"),
        spark.range(1).selectExpr("1 AS n", "named_struct('b', 1) AS s"),
    ):
        with pytest.raises(hw.SchemaError) as caught:
            table.append(frame)
        assert caught.value.code == "E1201"
    with pytest.raises(hw.SchemaError, match="Spark type `interval day`"):
        lake.write("u", spark.range(1).selectExpr("interval '1' day AS i"))
    assert files_below(table.location) == set()


def test_rules(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t").create(
        pa.schema([pa.field("id", pa.int64(), False), ("n", pa.int32()), ("g", pa.int64())]),
        constraints={"positive": "n > 0"},
        generated={"g": "id * 2"},
    )
    good = spark.range(1, 10).select("id", sf.col("id").cast("int").alias("n"))
    table.append(good)
    table.append(good.withColumn("g", sf.col("id") * 2))
    assert agree(table) == 18 and table.to_arrow(where="id = 4")["g"].to_pylist() == [8, 8]
    before = files_below(table.location)
    breaking = {
        "E2001": good.withColumn("id", sf.when(sf.col("id") > 3, sf.col("id"))),
        "E2002": good.withColumn("n", sf.when(sf.col("n") > 2, sf.col("n"))),
        "E2003": good.withColumn("g", sf.col("id")),
        "E2004": good,
    }
    for code, frame in breaking.items():
        write = partial(table.overwrite, where="id < 5") if code == "E2004" else table.append
        with pytest.raises(hw.ConstraintError) as caught:
            write(frame)
        assert caught.value.code == code and " row(s) " in caught.value.message
    with pytest.raises(hw.SchemaError, match="lacks required columns: id"):
        table.append(good.select("n"))
    assert table.version == 2 and files_below(table.location) == before
    table.append(good.limit(0))


def test_an_append_that_fails_leaves_nothing(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", spark.range(3))
    before = files_below(table.location)
    with pytest.raises(Exception, match="broken"):
        table.append(spark.range(0, 100, 1, 4).selectExpr("if(id = 99, raise_error('broken'), id) AS id"))
    assert files_below(table.location) == before and table.version == 0


@pytest.mark.parametrize("point", ["lake.spark.after_job", "lake.spark.before_clean_up", "lake.commit.before_publish"])
def test_a_crash_leaves_files_for_vacuum(lake: Lake, spark: SparkSession, point: str) -> None:
    """Whatever point the driver dies at, the table is as it was, and vacuum finds what lies there."""
    table = lake.write("t", spark.range(3), properties={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    before = files_below(table.location)
    with FaultPlan().crash_at(point), pytest.raises(SimulatedCrash):
        table.append(spark.range(3, 9))
    assert files_below(table.location) > before
    assert table.version == 0 and agree(table) == 3
    time.sleep(0.01)
    assert len(table.vacuum(retention_hours=0)) >= 1
    left = {f for f in files_below(table.location) if f.endswith(".parquet")}
    assert left == {f for f in before if f.endswith(".parquet")}
    table.append(spark.range(3, 9))
    assert agree(table) == 9


def test_appends_at_once(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", spark.range(0))

    def work(start: int) -> None:
        for i in range(3):
            table.append(spark.range(start + i * 10, start + i * 10 + 10))

    threads = [threading.Thread(target=work, args=(n * 1000,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert table.version == 12 and agree(table) == 120
    assert len(set(table.to_arrow()["id"].to_pylist())) == 120


def test_overwrite_of_what_was_read(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", spark.range(3))
    version, frame = table.version, table.spark().where("id > 0")
    table.append(spark.range(10, 11))
    with pytest.raises(hw.ConflictError):
        table.overwrite(frame, if_version=version)
    assert agree(table) == 4
    assert len(files_below(table.location)) == len(table.snapshot.files)


def test_a_transaction_is_applied_once(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", spark.range(3), txn=("app", 0))
    assert not table.append(spark.range(3), txn=("app", 1), tags={"why": "test"}).skipped
    ran: list[int] = []
    unseen = spark.range(3).mapInArrow(lambda batches: _noted(batches, ran), "id long")
    again = table.append(unseen, txn=("app", 1))
    assert again.skipped and again.version == 1 and not ran, "the rows are not even computed"
    assert table.overwrite(spark.range(1), txn=("app", 0)).skipped
    assert agree(table) == 6


def _noted(batches: Iterator[pa.RecordBatch], ran: list[int]) -> Iterator[pa.RecordBatch]:
    ran.append(1)
    yield from batches


def test_the_change_feed(lake: Lake, spark: SparkSession) -> None:
    table = lake.write("t", spark.range(10), properties={"delta.enableChangeDataFeed": "true"})
    table.overwrite(spark.range(5, 7), where="id >= 5")
    assert sorted(table.changes(after=0).deleted()["id"].to_pylist()) == [7, 8, 9]
