"""What ``format("headwater")`` reads equals what plain Spark and the index itself give."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.search.spark.notes import QUERIES, notes

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.lakehouse import Lake
from headwater.search.spark.options import SourceOptions
from headwater.search.spark.source import HeadwaterSource

CONDITIONS = [
    "contains(body, 'refund')",
    "body LIKE '%lost, late%' OR author = 'bob'",
    "title ILIKE 'THE %'",
    "startswith(body, 'café') AND amount BETWEEN 10 AND 60",
    "endswith(title, 'again')",
    "author IN ('ann', 'Eve') AND NOT contains(body, 'card')",
    "author IS NULL AND contains(title, 'order')",
    "contains(body, '')",
    "contains(body, '%')",
    "amount > 1000",
    "id % 5 = 2",
]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A table of several files with deleted and updated rows, and an index that is behind."""
    with hw.settings.override(fsync=False):
        lake = hw.connect(tmp_path_factory.mktemp("lake"), spark=spark)
        table = lake.write("sales.notes", notes(600, seed=0))
        for seed in range(1, 4):
            table.append(notes(300, seed=seed))
        lake.index(
            "ix", "sales.notes", text=["title", "body"], keyword="author", numeric=["id", "amount"], refresh=True
        )
        table.delete("id % 13 = 4")
        table.update({"body": "concat('refund for ', author)"}, where="id % 29 = 7")
        table.append(notes(100, seed=50))
        yield lake


def read(spark: SparkSession, lake: Lake, schema: str | None = None, **options: Any) -> DataFrame:
    reading = spark.read.format("headwater").options(**options)
    if schema is not None:
        reading = reading.schema(schema)
    return reading.load(f"{lake.location}/sales/notes")


def same(found: DataFrame, wanted: DataFrame) -> int:
    rows = wanted.toArrow()
    assert ChangeBatch.diff(rows, found.toArrow().cast(rows.schema)).is_empty
    return int(rows.num_rows)


def test_a_plain_load_is_the_table(spark: SparkSession, lake: Lake) -> None:
    plain = lake.table("sales.notes").spark()
    found = read(spark, lake)
    assert found.schema == plain.schema
    assert same(found, plain) > 1_200
    assert same(found.where("amount > 50").select("id", "author"), plain.where("amount > 50").select("id", "author"))
    assert read(spark, lake, "author string, ID long").columns == ["author", "ID"]
    assert same(read(spark, lake, "author string, id long"), plain.select("author", "id"))


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_filter_gives_what_spark_gives(spark: SparkSession, lake: Lake, where: str) -> None:
    plain = lake.table("sales.notes").spark().where(where)
    same(read(spark, lake, filter=where), plain)
    same(read(spark, lake, "id long", filter=where), plain.select("id"))
    mine = lake.index("ix").spark(filter=where, columns=["id"])
    same(mine, plain.select("id"))
    if lake.index("ix").explain_filter(where).startswith("scan"):
        assert all(Path(file.removeprefix("file:")).suffix == ".parquet" for file in mine.inputFiles())


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_gives_what_the_index_gives(spark: SparkSession, lake: Lake, query: str) -> None:
    ix = lake.index("ix")
    wanted = ix.search(query, k=None, columns=["id"])
    scores = {row["id"]: row["_score"] for row in wanted.to_pylist(scores=True)}
    found = read(spark, lake, "id long", query=query).toArrow()
    assert sorted(found["id"].to_pylist()) == sorted(scores)
    both = read(spark, lake, "id long, _score double", query=query).toArrow()
    assert dict(zip(both["id"].to_pylist(), both["_score"].to_pylist(), strict=True)) == pytest.approx(scores)
    top = read(spark, lake, columns="id,_score", query=query, k=7).toArrow()
    assert top["_score"].to_pylist() == pytest.approx(wanted.scores[:7]), "in the order of their rank"
    where = "amount > 30 AND contains(body, 'e')"
    some = read(spark, lake, "id long", query=query, filter=where).toArrow()
    kept = ix.search(query, k=None, columns=["id"], filter=where).to_arrow()
    assert sorted(some["id"].to_pylist()) == sorted(kept["id"].to_pylist())
    few = read(spark, lake, "_score double", query=query, filter=where, k=3).toArrow()
    assert few["_score"].to_pylist() == pytest.approx(ix.search(query, k=3, filter=where).scores)


def test_the_words_of_the_index_equal_a_scan_with_plain_spark(spark: SparkSession, lake: Lake) -> None:
    plain = (
        lake.table("sales.notes").spark().where("body RLIKE '(?i)(^|[^\\\\p{L}\\\\p{N}])refund([^\\\\p{L}\\\\p{N}]|$)'")
    )
    assert same(read(spark, lake, "id long", query="body:refund"), plain.select("id")) > 100


def test_joins_aggregates_views_and_use_again(spark: SparkSession, lake: Lake) -> None:
    plain = lake.table("sales.notes").spark()
    found = read(spark, lake, "id long, author string, amount int", query="refund")
    ids = [row["id"] for row in lake.index("ix").search("refund", k=None, columns=["id"])]
    wanted = plain.where(sf.col("id").isin(ids)).select("id", "author", "amount")
    # One frame, used in several ways: no use may change another.
    assert found.where("author = 'ann'").count() == wanted.where("author = 'ann'").count()
    assert found.count() == len(ids)
    assert found.where("author = 'ann'").unionAll(found).count() == len(ids) + wanted.where("author = 'ann'").count()
    joined = found.alias("a").join(found.alias("b"), sf.expr("a.id = b.id + 1"))
    again = wanted.alias("a").join(wanted.alias("b"), sf.expr("a.id = b.id + 1"))
    assert joined.count() == again.count()
    same(found.groupBy("author").agg(sf.sum("amount")), wanted.groupBy("author").agg(sf.sum("amount")))
    same(plain.join(found.select("id"), "id", "left_semi"), plain.where(sf.col("id").isin(ids)))
    path = f"{lake.location}/sales/notes"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW hits USING headwater OPTIONS (path '{path}', query 'card AND late')")
    answer = spark.sql("SELECT count(*) AS n, min(id) AS least FROM hits WHERE amount < 90").collect()[0]
    rows = lake.index("ix").search("card AND late", k=None, filter="amount < 90", columns=["id"]).to_pylist()
    assert (answer.n, answer.least) == (len(rows), min(row["id"] for row in rows))


def test_older_versions(spark: SparkSession, lake: Lake) -> None:
    for version in (0, 2, 4):
        same(read(spark, lake, version=version), lake.table("sales.notes").at(version).spark())
        ids = {row["id"] for row in lake.index("ix").at(version).search("refund", k=None, columns=["id"])}
        found = read(spark, lake, "id long", version=version, query="refund").toArrow()
        assert set(found["id"].to_pylist()) == ids


def test_a_frame_stands_for_one_version(spark: SparkSession, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    table = lake.write("notes", notes(50, seed=0))
    lake.index("ix", "notes", text="body", refresh=True)
    whole = spark.read.format("headwater").load(str(tmp_path / "notes"))
    found = lake.index("ix").spark("refund OR NOT refund", columns=["id"])
    table.append(notes(50, seed=1))
    assert (whole.count(), found.count()) == (50, 50)
    assert spark.read.format("headwater").load(str(tmp_path / "notes")).count() == 100


def test_every_type_partitions_column_mapping_and_evolution(spark: SparkSession, tmp_path: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=dt.UTC)
    rows = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "part": pa.array(["a b", "x/y", None, "é", "a b", "x/y"]),
            "day": pa.array([dt.date(1969, 12, 31)] * 6),
            "ts": pa.array([moment, None] * 3, pa.timestamp("us", "UTC")),
            "ntz": pa.array([moment.replace(tzinfo=None)] * 6, pa.timestamp("us")),
            "money": pa.array([Decimal("12.345")] * 6, pa.decimal128(20, 3)),
            "flag": [True, None] * 3,
            "tiny": pa.array(range(6), pa.int8()),
            "real": pa.array([0.5] * 6, pa.float32()),
            "raw": [b"\x00\xff", None] * 3,
            "tags": [["a", None], []] * 3,
            "deep": [{"x": 1, "y": [{"z": "q"}]}, None] * 3,
            "map": pa.array([[("k", 1)], None] * 3, pa.map_(pa.string(), pa.int32())),
            "text": ["refund of the card", "nothing"] * 3,
        }
    )
    lake = hw.connect(tmp_path, spark=spark)
    mapping = {"delta.columnMapping.mode": "name"}
    for name, properties in (("plain", {}), ("mapped", mapping)):
        table = lake.write(name, rows, partition_by=["part"], properties=properties)
        lake.index(f"{name}_ix", name, text="text", keyword="part", refresh=True)
        table.delete("id = 4")
        table.append(rows.append_column("extra", pa.array(range(6), pa.int32())), schema_mode="merge")
        if properties:
            table.rename_column("text", "words")
            table.drop_column("flag")
        plain = table.spark()
        column = "words" if properties else "text"
        for options in ({}, {"filter": f"contains({column}, 'refund')"}):
            found = spark.read.format("headwater").options(**options).load(str(tmp_path / name))
            assert found.schema.simpleString() == plain.schema.simpleString()
            wanted = plain.where(f"contains({column}, 'refund')") if options else plain
            assert sorted(map(str, found.collect())) == sorted(map(str, wanted.collect()))
    found = spark.read.format("headwater").option("query", "refund").load(str(tmp_path / "plain"))
    wanted = lake.table("plain").spark().where("contains(text, 'refund')")
    assert sorted(map(str, found.collect())) == sorted(map(str, wanted.collect())) and found.count() == 5


def test_large_files_are_shared_and_small_ones_packed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.lake import snapshot
    from headwater.search.spark import reading

    monkeypatch.setattr(reading, "_TASK_BYTES", 20_000)
    monkeypatch.setattr(reading, "_LEAST_BYTES", 20_000)
    lake = hw.connect(tmp_path)
    with hw.settings.override(row_group_rows=500):
        table = lake.write("notes", notes(6_000, seed=0))
    for seed in range(1, 5):
        table.append(notes(20, seed=seed))
    options = SourceOptions.of({"path": str(tmp_path / "notes")}, {}, {})
    now = snapshot.latest(table.storage)
    reader = reading.SearchReader(options, now, reading.read_struct(now, ["id"]))
    parts = reader.partitions()
    assert len(parts) > 5 and any(len(part.pieces) > 1 for part in parts)  # type: ignore[attr-defined]
    sent: reading.SearchReader = pickle.loads(pickle.dumps(reader))
    ids = [i for part in parts for batch in sent.read(part) for i in batch.column("id").to_pylist()]
    assert sorted(ids) == sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    ("options", "schema", "code", "words"),
    [
        ({"qery": "x"}, None, "E1015", "did you mean `query`"),
        ({"k": "5"}, None, "E1001", "a query beside it"),
        ({"query": "x", "k": "many"}, None, "E1001", "whole number"),
        ({"query": "x", "index": "nope"}, None, "E", "nope"),
        ({"query": '"open'}, None, "E", "error"),
        ({"columns": "id,nope"}, None, "E", "nope"),
        ({"version": "99"}, None, "E", "99"),
        ({"filter": "amount >"}, None, "E", "error"),
        ({}, "id int", "E", "id"),
        ({}, "nope int", "E", "nope"),
    ],
)
def test_what_is_wrong_is_said(
    spark: SparkSession, lake: Lake, options: dict[str, str], schema: str | None, code: str, words: str
) -> None:
    with pytest.raises(PySparkException) as raised:
        read(spark, lake, schema, **options).collect()
    assert f"error[{code}" in str(raised.value) and words in str(raised.value)


def test_a_table_without_an_index_is_scanned(spark: SparkSession, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    lake.write("notes", notes(60, seed=3))
    (tmp_path / "notes").rename(tmp_path / "not-a-name")
    plain = lake.attach("there", str(tmp_path / "not-a-name")).spark()
    reading = spark.read.format("headwater")
    same(reading.load(str(tmp_path / "not-a-name")), plain)
    where = "contains(body, 'refund')"
    same(spark.read.format("headwater").option("filter", where).load(str(tmp_path / "not-a-name")), plain.where(where))
    lake.index("ix", "there", text="body", refresh=True)
    asked = spark.read.format("headwater").option("query", "refund").option("lake", str(tmp_path))
    assert asked.load(str(tmp_path / "not-a-name")).count() == lake.index("ix").count("refund")


def test_session_settings_and_secrets(spark: SparkSession, lake: Lake) -> None:
    from headwater.search import register

    session = spark.newSession()
    session.conf.set("spark.headwater.search.default", "and")
    session.conf.set("spark.headwater.search.spillDir", "/tmp")
    register(session)
    ix = lake.index("ix")
    found = read(session, lake, "id long", query="refund card")
    assert found.count() == ix.count("refund AND card") != ix.count("refund card")
    assert read(session, lake, "id long", query="refund card", default="or").count() == ix.count("refund card")
    source = HeadwaterSource({"path": f"{lake.location}/sales/notes", "aws_secret_access_key": "s3cr3t"})
    reader = source.reader(source.schema())
    for one in (source, source._options, reader, *reader.partitions()):
        assert "s3cr3t" not in repr(one)
    session.conf.set("spark.headwater.storage.azure_storage_account_key", "s3cr3t")
    session.conf.set("spark.headwater.storage.google_service_account_key", "s3cr3t")
    shown = {row.key: row.value for row in session.sql("SET").collect()}
    assert "spark.headwater.storage.azure_storage_account_key" in shown and "s3cr3t" not in shown.values()
