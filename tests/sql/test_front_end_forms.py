"""What a hand that knows Spark types in the first minutes: ``::``, int(), ILIKE, range(), typeof(), TABLE t, FROM t SELECT."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.query import parse_query
from headwater.sql.reader.clock import CLOCKS

from .oracle import in_any_order, plan_of, run_here, run_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "t": pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "s": ["a", "B", None],
            "day": pa.array([date(2024, 1, 31), date(1970, 1, 1), None]),
            "ts": pa.array([datetime(2024, 1, 31, 12, tzinfo=UTC), None, None], pa.timestamp("us", tz="UTC")),
        }
    )
}
QUERIES = """
    SELECT id::string, t.id::bigint, (id + 1)::string, id::string || 'x', '5'::int, 5::string, NULL::int FROM t
    SELECT -1::int, -128::tinyint, - 1::bigint, 2 - 1::int, -id::bigint, 1.5::int, -1.5::decimal(5,2), -1::int::string FROM t
    SELECT max(id)::string, array(id)[0]::string FROM t GROUP BY id
    SELECT id::string::int, s::string::string, '2024-01-31'::date, 1::decimal, id::decimal(5, 2), -2Y::int, 3L::int FROM t
    SELECT CAST(1 AS TINYINT), 1Y, -1Y, -128Y, CAST(-1 AS SMALLINT), -CAST(1 AS SMALLINT), 2.5BD, 1.5D, 1.5F, 5L, 5S
    SELECT int('5'), int(id), string(id), string(5), double(id), decimal('5'), decimal(id), boolean('true'), string(t.id) FROM t
    SELECT bigint(1), float(1), smallint(1), tinyint(1), binary('a'), date('2024-01-01'), timestamp('2024-01-01')
    SELECT int(id) + 1, string(id) || 'x', upper(string(id)), year(date('2024-01-01')), int(id)::string, -int(id) FROM t
    SELECT string(max(id)) FROM t
    SELECT typeof(id), typeof(1.5), typeof(s), typeof(day), typeof(ts), typeof(NULL), typeof(array(1)), typeof(map('a', 1)) FROM t
    SELECT typeof(struct(1 AS a, 'x' AS b)), typeof(1e0), typeof(X'00'), typeof(true), typeof(now()), typeof(localtimestamp())
    SELECT s ILIKE 'A%', s NOT ILIKE 'b', s ilike 'A', ilike(s, 'B'), 'É' ILIKE 'é', 'ß' ILIKE 'SS', 'Σ' ILIKE 'ς', 1 ILIKE '1' FROM t
    SELECT id FROM t WHERE s ILIKE 'b'
    SELECT * FROM range(3)
    SELECT * FROM range(1, 4)
    SELECT * FROM range(1, 10, 3)
    SELECT * FROM range(10, 1, -3)
    SELECT * FROM range(0, 4, 1, 2)
    SELECT * FROM range(5, 1)
    SELECT * FROM range(-3)
    SELECT * FROM range('3')
    SELECT r.id, x FROM range(2) r, range(1 + 1) AS q(x)
    SELECT count(*), sum(id) FROM range(1000)
    SELECT id FROM range(10) WHERE id % 3 = 0
    TABLE t
    TABLE t ORDER BY id LIMIT 1
    FROM t
    FROM t ORDER BY id LIMIT 2
    FROM t SELECT id, s WHERE id > 1
    FROM t SELECT *
    SELECT * EXCEPT (id) FROM t
    SELECT 1e300, -1e300, 1e-5, 1e7, 1.5e3, 12345678e0, 0e0
    SELECT NULL / -0.25, NULL / 0.25, -0.25 / NULL, NULL + 0.25, NULL * 0.25, NULL % 0.25, NULL - 0.25, NULL / 2, NULL + 1
    SELECT day - INTERVAL 7 DAYS, day + INTERVAL 1 WEEK, INTERVAL 1 DAY + day, day + INTERVAL 1 MONTH, ts - INTERVAL 1 DAY FROM t
    SELECT (SELECT max(id) FROM t u WHERE u.id = t.id), (SELECT 1), (SELECT max(id) FROM t u WHERE u.id = t.id) + 1 FROM t
    SELECT (SELECT max(u.id) FROM t u WHERE u.s = t.s AND u.id = t.id), EXISTS (SELECT 1 FROM t u WHERE u.id = t.id) FROM t
    SELECT (SELECT count(*) FROM t u WHERE u.id = t.id AND u.id < t.id + t.id) FROM t
    SELECT now() = current_timestamp(), current_date() = date(now()), current_timezone(), localtimestamp() IS NULL
    SELECT EXTRACT(YEAR FROM day), extract(dow FROM day), POSITION('a', 'ba'), POSITION('a' IN 'ba'), TRIM(TRAILING FROM ' a ') FROM t
    SELECT first(t.s) IGNORE NULLS, t.id FROM t JOIN (t u JOIN t v ON u.id = v.id) ON t.id = u.id GROUP BY t.id
    SELECT SUBSTRING('abc' FROM 2 FOR 1), SUBSTRING('abc', 2), TRIM(BOTH FROM ' a '), TRIM(LEADING 'a' FROM 'ab'), IF(true, 1, 2)
"""
TEXTS = [line.strip() for line in QUERIES.strip().splitlines()]


@pytest.mark.spark
def test_names_types_and_rows_are_sparks(interpreted: SparkSession) -> None:
    for name, table in TABLES.items():
        interpreted.createDataFrame(table).createOrReplaceTempView(name)
    for text in TEXTS:
        ours, theirs = run_here(text, TABLES), run_spark(interpreted, text)
        assert ours[:2] == theirs[:2], text
        assert in_any_order(ours[2]) == in_any_order(theirs[2]), text


def test_the_clock_stands_still_in_a_query() -> None:
    before = datetime.now(UTC)
    text = "SELECT now() AS a, current_timestamp AS b, current_date AS c, localtimestamp() AS d, curdate() AS e FROM t, t u"
    _, types, rows = run_here(text, TABLES)
    assert types == ["timestamp", "timestamp", "date", "timestamp_ntz", "date"]
    assert len(rows) == 9 and len(set(rows)) == 1
    micros, again, days, wall, _ = rows[0]
    assert micros == again == wall
    assert isinstance(micros, int) and isinstance(days, int)
    assert before.timestamp() * 1e6 - 1 <= micros <= datetime.now(UTC).timestamp() * 1e6
    assert days == micros // 86_400_000_000


@pytest.mark.spark
def test_clocks_are_called_as_in_spark(interpreted: SparkSession) -> None:
    text = "SELECT current_date, current_date(), curdate(), current_timestamp, now(), localtimestamp(), date_add(current_date, 1)"
    assert run_here(text, TABLES)[:2] == run_spark(interpreted, text)[:2]
    assert {"current_date", "now"} <= CLOCKS


def test_a_column_comes_before_the_clock() -> None:
    schema = pa.schema([("current_date", pa.int32())])
    assert parse_query("SELECT current_date FROM t", lambda *_: schema).schema.types == [pa.int32()]


@pytest.mark.parametrize("text", ["SELECT now FROM t", "SELECT localtimestamp FROM t", "SELECT `current_date` FROM t"])
def test_clocks_that_need_parentheses(text: str) -> None:
    with pytest.raises(LookupError, match="no column"):
        plan_of(text, TABLES)


def test_time_travel_to_now() -> None:
    asked: list[datetime | None] = []

    def catalog(name: str, version: int | None, timestamp: datetime | None) -> pa.Schema:
        asked.append(timestamp)
        return TABLES["t"].schema

    parse_query("SELECT id FROM t TIMESTAMP AS OF current_timestamp()", catalog)
    parse_query("SELECT id FROM t TIMESTAMP AS OF current_date()", catalog)
    (now, today) = asked
    assert now is not None and today is not None
    assert abs((datetime.now(UTC) - now).total_seconds()) < 60
    assert today == datetime(now.year, now.month, now.day, tzinfo=UTC)


def test_a_range_has_an_end() -> None:
    with pytest.raises(ExpressionError, match="a range"):
        plan_of("SELECT * FROM range(100000000000)", {})
