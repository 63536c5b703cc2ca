"""Spark's analyzer: its plan leaves the JVM whole, the user's session stays as it was, and its errors are ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import ExpressionError, HeadwaterError, NotFoundError
from headwater.spark.analyzer import analyzed
from headwater.sql.analyzed import plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
T = pa.schema(
    [
        ("a", pa.int32()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("p", pa.decimal128(10, 2)),
        ("xs", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        pa.field("must", pa.int64(), nullable=False),
    ]
)
TABLES = {"t": T, "sales.orders": pa.schema([("id", pa.int64()), ("amount", pa.decimal128(10, 2))])}


def _nodes(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        own = [value] if "class" in value else []
        return own + [n for v in value.values() for n in _nodes(v)]
    return [n for v in value for n in _nodes(v)] if isinstance(value, list) else []


def _kinds(json_text: str, kind: str) -> list[dict[str, Any]]:
    return [n for n in _nodes(json.loads(json_text)["plan"]) if n["class"] == kind]


def test_the_types_of_columns_survive(spark: SparkSession) -> None:
    plan = plan_of(analyzed(spark, "SELECT * FROM t", TABLES))
    assert plan.schema.types == plan_of(analyzed(spark, "TABLE t", TABLES)).schema.types
    assert plan.schema.field("p").type == pa.decimal128(10, 2)
    assert plan.schema.field("m").type == pa.map_(pa.string(), pa.int32())
    assert [f.name for f in plan.schema if not f.nullable] == ["must"]


def test_modes_that_spark_leaves_out_are_told(spark: SparkSession) -> None:
    text = analyzed(
        spark,
        "SELECT CAST(s AS INT), TRY_CAST(s AS INT), a + 1, try_add(a, 1), (SELECT max(TRY_CAST(s AS DATE)) FROM t)"
        " FROM t WHERE s LIKE 'a#%' ESCAPE '#' AND a IN (SELECT CAST(s AS INT) FROM t)",
        TABLES,
    )
    assert [n["evalMode"] for n in _kinds(text, "Cast")].count("TRY") == 2
    assert {n["evalMode"] for n in _kinds(text, "Add")} == {"ANSI", "TRY"}
    assert [n["escapeChar"] for n in _kinds(text, "Like")] == ["#"]


def test_bytes_and_rows_that_spark_leaves_out_are_told(spark: SparkSession) -> None:
    text = analyzed(spark, "SELECT x'00FF' AS b FROM VALUES (1, 'a'), (2, NULL) AS v(i, s) WHERE i = 1", {})
    assert plan_of(text).dump().splitlines() == [
        "project b'\\x00\\xff' as b#3",
        "  filter (i#1 = 1)",
        "    values (1, 'a'), (2, null) as [i#1, s#2]",
    ]


def test_what_changes_with_every_run_is_not_in_the_plan(spark: SparkSession) -> None:
    first, second = (plan_of(analyzed(spark, "SELECT a, count(*) FROM t GROUP BY a", TABLES)).dump() for _ in range(2))
    assert first == second
    assert "jvmId" not in analyzed(spark, "SELECT a FROM t", TABLES)


def test_the_users_views_and_session_stay_as_they_are(spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("t")
    spark.range(3).createOrReplaceTempView("mine")
    try:
        assert plan_of(analyzed(spark, "SELECT day FROM t", TABLES)).schema.names == ["day"]
        with pytest.raises(NotFoundError):
            analyzed(spark, "SELECT * FROM mine", TABLES)
        assert spark.table("t").columns == ["id"]
        assert hw.spark() is spark
    finally:
        spark.catalog.dropTempView("t")
        spark.catalog.dropTempView("mine")
    with pytest.raises(NotFoundError):  # nor does a view of ours stay behind
        analyzed(spark, "SELECT * FROM t", {})


def test_the_session_may_be_set_up_otherwise(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        plan_of(analyzed(spark, "SELECT CAST(s AS INT), CAST(ts AS DATE), hour(ts), a + 1 FROM t", TABLES))
        assert spark.sql("SELECT CAST('x' AS INT) AS i").collect()[0].i is None  # it still means the user's session
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM sales.orders",
        "SELECT o.id FROM sales.orders o",
        "SELECT orders.id FROM `sales`.`orders` WHERE orders.id IN (SELECT max(id) FROM Sales . Orders)",
        "WITH c AS (SELECT id FROM sales.orders) SELECT id FROM c",
        "SELECT x.id FROM sales.orders x JOIN sales.orders AS y ON x.id = y.id AND 'sales.orders' <> ''",
    ],
)
def test_dotted_names(spark: SparkSession, text: str) -> None:
    plan = plan_of(analyzed(spark, text, TABLES))
    assert plan.schema.names == ["id"]
    assert "scan sales.orders" in plan.dump() and "headwater_view" not in plan.dump()


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("SELECT nope FROM t", "E1002", "nope"),
        ("SELECT orders.id, nope FROM sales.orders, t", "E1002", "nope"),
        ("SELECT 1 FROM sales.orders JOIN there ON true", "E1101", "there"),
        ("SELECT a FROM t WHERE a LIKE", "E1310", ""),
        ("SELECT sum(a), s\nFROM t", "E1310", "SELECT"),
        ("SELECT strange(a) FROM t", "E1310", "strange(a)"),
        ("SELECT (a FROM t", "E1310", "FROM"),
        ("SELECT day + xs FROM t", "E1310", "day + xs"),
    ],
)
def test_errors_are_ours_and_point_into_the_text(spark: SparkSession, text: str, code: str, part: str) -> None:
    with pytest.raises(HeadwaterError) as caught:
        analyzed(spark, text, TABLES)
    assert caught.value.code == code
    assert "org.apache" not in str(caught.value) and "headwater_view" not in str(caught.value)
    assert caught.value.__cause__ is None
    if part:
        assert caught.value.position is not None
        assert text[caught.value.position :].startswith(part)


def test_nothing_is_run(spark: SparkSession) -> None:
    with pytest.raises(hw.UnsupportedError, match="CreateDataSourceTable"):
        plan_of(analyzed(spark, "CREATE TABLE made AS SELECT 1 AS x", {}))
    assert not spark.catalog.tableExists("made")


def test_a_text_that_is_no_sql(spark: SparkSession) -> None:
    with pytest.raises(ExpressionError, match="Syntax error"):
        analyzed(spark, "this is no SQL", {})
