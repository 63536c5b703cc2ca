"""Subqueries, LATERAL and recursions give Spark's rows, as they are read and after all rules; and fail where Spark fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from tests.sql.conftest import fixture_lines

from headwater.base.errors import InputError
from headwater.sql.rewriting import decorrelated, prepared

from .oracle import connected, read, rows
from .shapes import Shapes, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = {
    "t": pa.table({"a": pa.array([1, 2, None, 3, 1], pa.int32()), "b": pa.array([1, None, 3, 4, 1], pa.int32())}),
    "u": pa.table({"k": pa.array([1, 1, None, 7, 3], pa.int32()), "v": pa.array([1, 2, 5, None, 4], pa.int32())}),
    "e": pa.table({"k": pa.array([], pa.int32()), "v": pa.array([], pa.int32())}),
}
_SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "1")) * 12
_FAMILIES = ("subqueries", "lateral", "recursion")
_FAILING = [
    "SELECT a, (SELECT v FROM u WHERE u.k = t.a) FROM t",
    "SELECT a, (SELECT v FROM u) FROM t",
    "SELECT a, (SELECT max(v) FROM u WHERE u.k = t.a GROUP BY u.v) FROM t",
    "SELECT a FROM t WHERE b = (SELECT v FROM u WHERE u.k = t.a)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 101) SELECT max(n) FROM r",
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 4 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
]
_REFUSED = [
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1L FROM r WHERE n < 5) SELECT * FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 'a' UNION ALL SELECT 1 FROM r WHERE n = 'b') SELECT * FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT sum(n) FROM r WHERE n < 5) SELECT * FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT t.a FROM t LEFT JOIN r ON t.a = r.n) SELECT * FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 EXCEPT SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5 LIMIT 3) SELECT * FROM r",
    "WITH RECURSIVE r(n) AS (SELECT n + 1 FROM r UNION ALL SELECT 1) SELECT * FROM r",
    "SELECT a FROM t ORDER BY a IN (SELECT k FROM u)",
]


@pytest.fixture(scope="module")
def views(interpreted: SparkSession) -> SparkSession:
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    for name, table in (*_TABLES.items(), *((f"{n}_", t) for n, t in tables(1).items())):
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    return interpreted


def _of_spark(session: SparkSession, text: str) -> list[tuple[object, ...]]:
    return sorted((tuple(r) for r in session.sql(text).collect()), key=repr)


@pytest.mark.parametrize("family", _FAMILIES)
def test_the_rows_are_sparks(family: str, views: SparkSession) -> None:
    with connected(_TABLES) as con:
        for text in fixture_lines(f"{family}.sql"):
            expected = _of_spark(views, text)
            plan = read(text, _TABLES)
            for rule in (lambda p: p, decorrelated, prepared):
                assert rows(rule(plan), con) == expected, text


def test_generated_ones_too(views: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    known = tables(1)
    compared = 0
    with connected(known) as con:
        for seed in range(_SEEDS):
            text = Shapes(seed, spark=True).query()
            theirs = text
            for name in known:
                theirs = theirs.replace(f" {name} AS ", f" {name}_ AS ")
            try:
                expected = _of_spark(views, theirs)
            except (PySparkException, Py4JJavaError):
                continue  # Spark has internal errors of its own for one in twelve
            assert rows(prepared(read(text, known)), con) == expected, text
            compared += 1
    assert compared > _SEEDS * 2 // 3


@pytest.mark.parametrize("text", _FAILING)
def test_what_fails_in_spark_fails_here(text: str, views: SparkSession) -> None:
    with pytest.raises(Exception, match=r"TOO_MANY_ROWS|one row|RECURSION|calling"):
        _of_spark(views, text)
    for rule in (lambda p: p, decorrelated, prepared):
        with connected(_TABLES) as con, pytest.raises(duckdb.Error):
            rows(rule(read(text, _TABLES)), con)


@pytest.mark.parametrize("text", _REFUSED)
def test_what_spark_does_not_take_is_refused(text: str, views: SparkSession) -> None:
    with pytest.raises(Exception, match=r"RECURSIVE|UNSUPPORTED|calling"):
        _of_spark(views, text)
    with pytest.raises(InputError):
        read(text, _TABLES)
