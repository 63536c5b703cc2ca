"""Texts that sqlglot forgives and Spark does not are refused here too, so that one text means one thing on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.query import parse_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = pa.schema([("id", pa.int32()), ("s", pa.string()), ("b", pa.bool_())])
LENIENT = """
    SELECT , 1
    SELECT id, FROM t WHERE id = 1
    SELECT *, , id FROM t
    SELECT id FROM t WHERE id IN (1, 2,)
    SELECT id FROM t WHERE id IN (, 1)
    SELECT coalesce(s,) FROM t
    SELECT coalesce(, s) FROM t
    SELECT count(DISTINCT id,) FROM t
    SELECT id FROM t GROUP BY id,
    SELECT id FROM t GROUP BY ROLLUP (id,)
    SELECT id FROM t GROUP BY GROUPING SETS ((id,), ())
    SELECT id FROM t GROUP BY DISTINCT id
    SELECT id FROM t GROUP BY ALL id
    SELECT id FROM t ORDER BY id,
    SELECT id FROM t ORDER BY ,id
    SELECT id FROM t,
    VALUES (1,), (2,)
    VALUES (1), (2),
    VALUES ()
    WITH x(a,) AS (SELECT 1) SELECT * FROM x
    SELECT a FROM t AS x(a, b, c,)
    SELECT t.id FROM t JOIN t u USING (id,)
    SELECT t.id FROM t JOIN t u USING id
    SELECT t.id FROM t NATURAL JOIN t u ON true
    SELECT * EXCLUDE (id) FROM t
    SELECT * EXCEPT id FROM t
    SELECT * EXCEPT (id,) FROM t
    SELECT * REPLACE (1 AS id) FROM t
    SELECT id FROM t LIMIT 1, 1
    SELECT id FROM t LIMIT 1 ROWS
    SELECT id FROM t OFFSET 1 ROWS
    SELECT id FROM t OFFSET 1 LIMIT 1
    SELECT id FROM t FETCH FIRST 1 ROWS ONLY
    SELECT id FROM t ORDER BY id WHERE id = 1
    SELECT id FROM t LIMIT 1 WHERE id = 1
    SELECT id FROM t LIMIT 1 ORDER BY id
    SELECT id FROM t GROUP BY id WHERE id = 1
    SELECT id FROM t HAVING id > 1 GROUP BY id
    SELECT id FROM t ORDER BY id ASC DESC
    SELECT 1 LIMIT 1 UNION SELECT 2
    SELECT 1 ORDER BY 1 UNION SELECT 2
    SELECT 1 UNION SELECT 2 LIMIT 1 UNION SELECT 3
    SELECT id FROM t UNION BY NAME SELECT 1 AS id
    SELECT AS STRUCT 1 a
    SELECT AS VALUE 1
    SELECT id FROM t WHERE s ISNULL
    SELECT id FROM t WHERE s NOTNULL
    SELECT s NOT NULL FROM t
    SELECT id FROM t WHERE id BETWEEN 1 3
    SELECT id IN [1, 2] FROM t
    SELECT id IN s FROM t
    SELECT s ~~ 'a' FROM t
    SELECT s SIMILAR TO 'a' FROM t
    SELECT s GLOB 'a' FROM t
    SELECT sum(id) FILTER (id > 1) FROM t
    SELECT sum(id) OVER (PARTITION BY) FROM t
    SELECT sum(id) OVER (ORDER BY id GROUPS 1 PRECEDING) FROM t
    SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING) FROM t
    SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND) FROM t
    SELECT CAST(id AS TEXT) FROM t
    SELECT CAST(id AS INT64) FROM t
    SELECT CAST(id AS INT4) FROM t
    SELECT CAST(id AS BOOL) FROM t
    SELECT CAST(id AS FLOAT8) FROM t
    SELECT CAST(id AS DOUBLE PRECISION) FROM t
    SELECT CAST(id AS NUMBER(5,2)) FROM t
    SELECT CAST(s AS CLOB) FROM t
    SELECT CAST(s AS TIMESTAMPTZ) FROM t
    SELECT CAST(s AS TIMESTAMP WITH TIME ZONE) FROM t
    SELECT TIMESTAMPTZ '2024-01-01'
    SELECT TIMESTAMP WITH TIME ZONE '2024-01-01'
    SELECT SUBSTRING('abc' FOR 2)
    SELECT TRIM(BOTH 'a', 'abc')
    SELECT TRIM(LEADING 'abc')
    SELECT TRIM(FROM 'abc')
    SELECT IF b THEN 1 ELSE 2 END FROM t
    WITH x AS NOT MATERIALIZED (SELECT 1) SELECT * FROM x
    WITH x AS (SELECT 1) WITH y AS (SELECT 2) SELECT * FROM x, y
    FROM t WHERE id = 1
    SELECT id FROM t*
    SELECT id FROM t FOR UPDATE
    SELECT id FROM t WITH (NOLOCK)
    SELECT id FROM t CONNECT BY id
    SELECT DISTINCT ON (id) id FROM t
    SELECT id FROM t VERSION AS OF 0 + 1
    SELECT t.id FROM t JOIN t u JOIN t v ON u.id = v.id ON t.id = u.id
    SELECT * FROM (SELECT 1) (a)
    SELECT id FROM t FOR VERSION 1
    SELECT id := 1 FROM t
    SELECT id FROM t WHERE id IS 1
    SELECT [1, 2]
    SELECT array(1)[0, 1]
    SELECT id AT TIME ZONE 'UTC' FROM t
    SELECT @x
    SELECT $1
    SELECT id FROM t @v0
    SELECT id FROM t@nonsense
    SELECT id @v0 FROM t
"""
TEXTS = [line.strip() for line in LENIENT.strip().splitlines()]


def _parse(text: str) -> Any:
    return parse_query(text, lambda *_: _T)


@pytest.mark.parametrize("text", TEXTS)
def test_refused_here(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        _parse(text)
    assert caught.value.hint
    assert "sqlglot" not in str(caught.value).lower()


@pytest.mark.spark
def test_refused_by_spark(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    parser = spark._jsparkSession.sessionState().sqlParser()

    def taken(text: str) -> bool:
        try:
            parser.parsePlan(text)
        except PySparkException:
            return False
        return True

    # These parse as something else, and fail when their names are looked up.
    resolved = {"SELECT id, FROM t WHERE id = 1", "SELECT DISTINCT ON (id) id FROM t"}
    assert [t for t in TEXTS if taken(t) and t not in resolved] == []


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT id, , s FROM t", ", , s"),
        ("SELECT id FROM t WHERE id IN (1, 2,)", ",)"),
        ("SELECT id FROM t LIMIT 1, 1", "LIMIT"),
        ("SELECT id FROM t LIMIT 1 WHERE id = 1", "LIMIT"),
        ("SELECT id FROM t@nonsense", "@"),
    ],
)
def test_the_place_is_shown(text: str, at: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        _parse(text)
    assert caught.value.position == text.index(at)


def test_words_of_other_dialects_are_plain_names() -> None:
    columns = ("text", "isnull", "notnull", "int4", "number", "only", "exclude", "rows", "value")
    schema = pa.schema([(name, pa.int32()) for name in columns])
    plan = parse_query(f"SELECT {', '.join(columns)} FROM t", lambda *_: schema)
    assert tuple(plan.schema.names) == columns
    # Without a keyword of that name, the word behind a column is its alias, as in Spark.
    assert _parse("SELECT s ISNULL FROM t").schema.names == ["ISNULL"]


@pytest.mark.parametrize("word", ["{", "{x}"])
def test_a_brace_has_no_meaning_in_a_query(word: str) -> None:
    with pytest.raises(ExpressionError, match="no meaning in a query"):
        _parse(f"SELECT {word}")
