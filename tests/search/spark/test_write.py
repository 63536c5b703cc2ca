"""What ``format("headwater")`` writes: the rows, as plain Spark has them, and an index that covers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.search.spark.notes import notes

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.lake.spark.conf import conf
from headwater.lakehouse import Lake
from headwater.search.cover import Cover
from headwater.search.kept_index import KeptIndex
from headwater.testing.s3_server import S3Server


def write(frame: DataFrame, path: str, mode: str = "append", **options: Any) -> None:
    frame.write.format("headwater").options(**options).mode(mode).save(path)


def holds(lake: Lake, name: str, wanted: DataFrame, index: str) -> None:
    """The table has these rows, and its index covers and equals them."""
    rows = wanted.toArrow()
    assert ChangeBatch.diff(rows, lake.table(name).to_arrow().cast(rows.schema)).is_empty
    ix = lake.index(index)
    assert ix.coverage == 1.0 and ix.verify().equal
    assert not ix.store.orphans(ix.record.names)


def test_append_and_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    lake, path = hw.connect(tmp_path, spark=spark), str(tmp_path / "sales" / "notes")
    first = spark.createDataFrame(notes(900, seed=0)).repartition(3)
    write(first, path, text="title,body", keyword="author", targetRecordsPerSplit=200, lake=str(tmp_path))
    assert lake.artefacts() == {"sales.notes_index": "index"}
    holds(lake, "sales.notes", first, "sales.notes_index")
    ix = lake.index("sales.notes_index")
    assert ix.fields == {"title": "text", "body": "text", "author": "keyword"} and ix.meant.target_rows == 200
    covers = ix.store.covers(ix.record.names)
    assert max(cover.rows for cover in covers.values()) <= 200 and len(covers) >= 5

    second = spark.createDataFrame(notes(500, seed=1)).repartition(2)
    write(second, path, targetRecordsPerSplit=1_000)
    holds(lake, "sales.notes", first.unionAll(second), "sales.notes_index")
    third = spark.createDataFrame(notes(40, seed=2)).coalesce(1)
    write(third, path, "overwrite", text="title,body", keyword="author")
    holds(lake, "sales.notes", third, "sales.notes_index")
    assert lake.table("sales.notes").version == 2
    read = spark.read.format("headwater").option("query", "refund").load(path)
    assert read.count() == third.where("(concat_ws(' ', title, body)) RLIKE '(?i)\\\\brefund\\\\b'").count()


def test_types_partitions_and_columns_of_all_kinds(spark: SparkSession, tmp_path: Path) -> None:
    lake, path = hw.connect(tmp_path, spark=spark), str(tmp_path / "t")
    frame = spark.range(0, 200, 1, 3).select(
        "id",
        sf.when(sf.col("id") % 3 > 0, sf.concat(sf.lit("a b/%é"), sf.col("id") % 3)).alias("part"),
        sf.timestamp_micros(sf.col("id") * 1_000_003).alias("ts"),
        sf.expr("cast(id / 7 AS decimal(12, 4))").alias("money"),
        sf.expr("named_struct('a', id, 'b', array(cast(id AS string), null))").alias("deep"),
        sf.expr("map(cast(id AS string), id % 2 = 0)").alias("flags"),
        sf.expr("concat('note ', id, ' about ', repeat('refund ', cast(id % 3 AS int)))").alias("body"),
    )
    with conf(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        write(frame, path, text="body", numeric="ts", partitionColumns="part", index="by_text")
    assert lake.table("t").snapshot.partition_columns == ("part",)
    found = spark.read.format("headwater").load(path)
    assert sorted(map(str, found.collect())) == sorted(map(str, frame.collect()))
    assert lake.index("by_text").count("refund") == frame.where("body LIKE '%refund%'").count()
    assert lake.index("by_text").coverage == 1.0 and lake.index("by_text").verify().equal
    more = frame.withColumn("extra", sf.lit(1))
    with pytest.raises(PySparkException, match="extra"):
        write(more, path)
    write(more, path, mergeSchema="true")
    assert lake.table("t").count() == 400 and lake.index("by_text").coverage == 1.0
    write(more.drop("money"), path, "overwrite", overwriteSchema="true")
    assert lake.table("t").schema.names == [c for c in more.columns if c != "money"]
    assert lake.index("by_text").verify().equal


def test_without_fields_everything_simple_is_indexed_and_no_rows_are_fine(spark: SparkSession, tmp_path: Path) -> None:
    lake, path = hw.connect(tmp_path, spark=spark), str(tmp_path / "t")
    empty = spark.createDataFrame(notes(5, seed=0)).limit(0)
    write(empty, path)
    assert lake.table("t").count() == 0
    assert set(lake.index("t_index").fields) == {"id", "title", "body", "author", "amount"}
    rows = spark.createDataFrame(notes(5, seed=0))
    write(rows, path)
    holds(lake, "t", rows, "t_index")


def test_rules_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    lake, path = hw.connect(tmp_path, spark=spark), str(tmp_path / "t")
    lake.table("t").create({"id": pa.int64(), "body": pa.string()}, constraints={"positive": "id > 0"})
    good = spark.createDataFrame([(1, "refund")], "id long, body string")
    write(good, path, text="body", index="ix")
    for bad, words in [
        (spark.createDataFrame([(0, "x")], "id long, body string"), "positive"),
        (spark.createDataFrame([("a", "x")], "id string, body string"), "id"),
    ]:
        with pytest.raises(PySparkException, match=words):
            write(bad, path)
    with pytest.raises(PySparkException, match="E1616"):
        write(good, path, text="body", numeric="id", index="ix")
    with pytest.raises(PySparkException, match="partitioned by"):
        write(good, path, partitionColumns="id")
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        good.write.format("headwater").save(path)
    lake.view("v", "SELECT count(*) AS n FROM t", refresh=True)
    with pytest.raises(PySparkException, match="E1603"):
        write(spark.createDataFrame([(1,)], "n long"), str(tmp_path / "v"))
    assert lake.table("t").count() == 1 and lake.index("ix").verify().equal


def test_what_is_left_between_table_and_index_is_slower_and_not_wrong(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.search.spark import options, writing

    lake, path = hw.connect(tmp_path, spark=spark), str(tmp_path / "t")
    write(spark.createDataFrame(notes(50, seed=0)), path, text="body")
    frame = spark.createDataFrame(notes(60, seed=1))
    writer = writing.plan_write(options.SourceOptions.of({"path": path}, {}, {}), frame.schema, overwrite=False)
    part = writer.write(iter(frame.toArrow().to_batches()))

    def crashed(self: KeptIndex, built: dict[str, Cover]) -> None:
        raise hw.StorageError.failed(path, "the machine went away")

    with monkeypatch.context() as patched:
        patched.setattr(KeptIndex, "refresh_with", crashed)
        writer.commit([part, None])
    ix = lake.index("t_index")
    assert lake.table("t").count() == 110 and ix.coverage < 1.0
    wanted = lake.table("t").spark().where("body RLIKE '(?i)\\\\brefund\\\\b'").count()
    assert spark.read.format("headwater").option("query", "refund").load(path).count() == wanted == ix.count("refund")
    # What the task had built is an orphan now, and goes with the next refresh.
    ix.refresh()
    assert ix.coverage == 1.0 and ix.verify().equal and not ix.store.orphans(ix.record.names)


def test_splits_that_vanished_before_the_commit_are_built_again(spark: SparkSession, tmp_path: Path) -> None:
    from headwater.search.spark import options, writing

    lake, path = hw.connect(tmp_path, spark=spark), str(tmp_path / "t")
    write(spark.createDataFrame(notes(50, seed=0)), path, text="body")
    frame = spark.createDataFrame(notes(60, seed=1))
    writer = writing.plan_write(options.SourceOptions.of({"path": path}, {}, {}), frame.schema, overwrite=False)
    part = writer.write(iter(frame.toArrow().to_batches()))
    again = writer.write(iter(frame.toArrow().to_batches()))  # as a task that is run twice
    lake.index("t_index").store.delete(part.covers)
    writer.commit([part])
    ix = lake.index("t_index")
    assert ix.coverage == 1.0 and ix.verify().equal and lake.table("t").count() == 110
    assert not set(ix.record.names) & {*part.covers, *again.covers}


@pytest.mark.s3
def test_keys_reach_tasks_and_nobody_sees_them(
    spark: SparkSession, s3: S3Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    root = s3.url("search_source")
    lake = hw.connect(root, s3.options, spark=spark)
    frame = spark.createDataFrame(notes(300, seed=0)).repartition(2)
    write(frame, f"{root}/notes", text="body", targetRecordsPerSplit=100, **s3.options)
    holds(lake, "notes", frame, "notes_index")
    lake.table("notes").delete("id % 3 = 0")
    wanted = lake.index("notes_index").count("refund")
    read = spark.read.format("headwater").options(**s3.options).option("query", "refund").load(f"{root}/notes")
    assert read.count() == wanted > 0
    found = lake.index("notes_index").spark("refund", columns=["id"], k=5)
    assert found.count() == 5

    session = spark.newSession()
    from headwater.search import register

    register(session, storage_options=s3.options)
    mine = session.read.format("headwater").load(f"{root}/notes")
    assert mine.count() == 200
    secret = next(value for name, value in s3.options.items() if "SECRET" in name.upper())
    for one in (read, found, mine):
        one.explain(True)
        assert secret not in str(one) + str(one.schema)
    with pytest.raises(PySparkException) as raised:
        spark.read.format("headwater").options(**s3.options).option("query", "[").load(f"{root}/notes").count()
    assert secret not in str(raised.value)
    shown = capfd.readouterr()
    assert secret not in shown.out + shown.err
