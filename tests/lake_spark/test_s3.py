"""On object storage without a JAR: tasks read and write by themselves, and nobody sees the keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import headwater as hw
from headwater.lake.spark.stream import foreach_batch_append
from headwater.lakehouse import Lake
from headwater.testing.object_server import ObjectServer

from .conftest import agree
from .test_stream import Batches, collecting, drain, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def s3_lake(server: ObjectServer, spark: SparkSession) -> Lake:
    return hw.connect(server.url("spark-lake"), storage_options=server.options, spark=spark)


def test_read_and_write(s3_lake: Lake, spark: SparkSession) -> None:
    frame = spark.range(0, 1000, 1, 3).select(
        "id",
        sf.when(sf.col("id") % 3 > 0, sf.concat(sf.lit("a b/%é"), sf.col("id") % 3)).alias("k"),
        sf.lit(1.5).alias("v"),
    )
    table = s3_lake.write("t", frame, partition_by=["k"])
    assert agree(table) == 1000
    assert {f.num_records for f in table.snapshot.files.values()} <= set(range(50, 200)), "real statistics"
    table.delete("id % 10 = 0")
    assert agree(table) == 900
    assert table.append(table.spark().where("id < 10"), txn=("a", 1))["numOutputRows"] == 9
    assert table.append(table.spark(), txn=("a", 1)).skipped
    assert agree(table.at(version=0)) == 1000
    found = s3_lake.sql("SELECT k, count(*) FROM t WHERE id < :n GROUP BY k", engine="spark", parameters={"n": 500})
    here = s3_lake.sql("SELECT k, count(*) FROM t WHERE id < :n GROUP BY k", engine="duckdb", parameters={"n": 500})
    assert sorted(found.to_tuples(), key=str) == sorted(here.to_tuples(), key=str)
    table.overwrite(
        spark.range(3).select("id", sf.lit("a b/%é1").alias("k"), sf.lit(0.0).alias("v")), partitions="dynamic"
    )
    assert agree(table) == table.count()
    empty = s3_lake.table("e").create({"id": pa.int64()})
    assert agree(empty) == 0
    empty.append(spark.range(0))
    assert empty.version == 0


def test_rules(s3_lake: Lake, spark: SparkSession) -> None:
    table = s3_lake.table("rules").create({"id": pa.int64(), "n": pa.int32()}, constraints={"positive": "id > 0"})
    with pytest.raises(hw.ConstraintError, match=r"1 row\(s\) break the constraint"):
        table.append(spark.range(5))
    with pytest.raises(hw.SchemaError, match="does not fit int"):
        table.append(spark.range(1, 5).selectExpr("id", "id * 10000000000 AS n"))
    assert [e.path for e in table.storage.list("") if e.path.endswith(".parquet")] == []


def test_a_stream(s3_lake: Lake, tmp_path: Path) -> None:
    table = s3_lake.write("source", rows(0, 5))
    table.delete("id = 2")
    got: Batches = []
    changes = table.spark_changes(starting_version=0, max_versions_per_trigger=1)
    drain(changes, tmp_path / "a", collecting(got))
    assert got == [(0, [(0, i, 1) for i in range(5)]), (1, [(1, 2, -1)])]
    target = s3_lake.table("target")
    drain(table.spark_changes(), tmp_path / "b", foreach_batch_append(target, "q"))
    assert target.spark().count() == target.count() == 4


def test_keys_are_not_shown(s3_lake: Lake, server: ObjectServer, capsys: pytest.CaptureFixture[str]) -> None:
    secret = server.secret
    table = s3_lake.write("t2", rows(0, 5))
    for frame in (table.spark(), table.spark_changes()):
        frame.explain(extended=True)
        print(frame, frame.schema, table, table.storage)
    shown = capsys.readouterr().out
    assert "Plan" in shown and secret not in shown
