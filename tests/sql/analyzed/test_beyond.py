"""What Spark's analyzer makes of its own (windows of time, sessions, pivots, recursion, Expand) gives Spark's rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.sql.oracle import in_any_order, run_spark
from tests.sql.oracle import plan_of as read_plan

from headwater.base.errors import UnsupportedError
from headwater.spark.analyzer import analyzed
from headwater.sql.analyzed import plan_of

from .spoken import nexmark, queries, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_MINUTES = (0, 3, 5, 10, 11, 25, 35, 45, 59, None, 3)
TABLES = {
    "t": pa.table(
        {
            "a": pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, None, 1], pa.int32()),
            "s": ["x", "y", "x", "x", "y", "x", "x", "x", "x", "y", None],
            "ts": pa.array(
                [None if m is None else datetime(2024, 1, 1, 0, m, tzinfo=UTC) for m in _MINUTES],
                pa.timestamp("us", tz="UTC"),
            ),
            "day": pa.array([19_000 + i % 3 for i in range(11)], pa.int32()).cast(pa.date32()),
        }
    )
}
_QUERIES = """
select window.start, count(*) from t group by window(ts, '10 minutes')
select window.end, s, sum(a) from t group by window(ts, '10 minutes', '5 minutes'), s having count(*) > 1
select window.start, window.end, max(a) m from t group by window(ts, '7 minutes', '7 minutes', '2 minutes') order by m
select session_window.start, session_window.end, s, count(*), max(a) from t group by session_window(ts, '10 minutes'), s
select window(ts, '12 minutes', '5 minutes', '2 minutes').end, a from t
select *, window(ts, '10 minutes') from t
select window_time(window), n from (select window, count(*) n from t group by window(ts, '10 minutes'))
select session_window.end, count(*) c from t group by session_window(ts, '1 minute') having c > 1
with recursive r(n) as (values (1) union all select n + 1 from r where n < 5) select * from r
with recursive r(n, p) as (select a, s from t where a < 3 union all select n + 1, p from r where n < 5) select n, count(*) from r group by n
with recursive r(n) max recursion level 7 as (select 1 union all select n + 1 from r where n < 5) select sum(n) from r
select a, (a, s) in (select a, s from t where a > 3) from t
select a from t where (a, s) not in (select a, s from t where a > 3)
select a, s in (select s from t) or a = 1 from t
select a from t where not (a in (select a from t where a > 3) or a = 1)
select * from (select a, s, day from t) pivot (sum(a) for (s, day) in (('x', date'2022-01-08') as k, ('y', date'2022-01-09') as l))
select * from (select a, day from t) pivot (sum(a), max(a) as m for day in (date'2022-01-08', date'2022-01-09'))
select * from (select a, cast(a as bigint) b from t) unpivot include nulls (v for n in (a, b))
select s, a, grouping(s), grouping_id(s, a), count(*) from t group by grouping sets ((s, a), (s), (s), ())
select upper(s), count(*), sum(a + 1) from t group by cube(upper(s), a % 2)
select coalesce(sum(a), 0) + 1 x, s from t group by s having nvl(max(a), 0) > 1 order by x, s
select nvl(sum(a) over (partition by s), 0), nullif(a, 3), a between 2 and 4 from t
select s, first(a) filter (where a > 1), any_value(day) from (select * from t order by ts limit 100) where s is null group by s
select t.a, u.s from t left join t u on t.a = u.a and nvl(u.s, 'q') <> 'x' where nvl2(t.s, t.a, 5) > 1
select decode(a, 1, 'one', 2, 'two', 'many'), extract(day from ts), ts - interval 1 month, day + interval 2 days from t
select try_cast(s as int), try_divide(a, 0), try_add(a, 2147483647), try_to_date(s), try_element_at(array(a), 3) from t
select a, (select max(u.a) from t u where u.s = t.s) m, exists (select 1 from t u where u.a = t.a + 1) from t
select x.a, y.a from t x, lateral (select 1 as one) l, t y where x.a = y.a + one
select distinct s, a % 2 p from t order by p desc nulls last, s limit 3 offset 1
select a from t union select a + 1 from t intersect select 3 except all select 9
values (1, 'a', x'ff', 1.50, date'2024-01-31', null), (2, null, null, 2.25, null, null)
select 2.5D, 1e-3, cast('1e3' as double), timestamp'2024-01-31 12:00:00.5', timestamp_ntz'2024-01-31 00:00:00', interval 3 day = interval 3 day
"""
_LINES = [line for line in _QUERIES.splitlines() if line]
# What has no meaning here yet, and says so.
_REFUSED = {"lateral"}


@pytest.fixture(scope="module")
def session(interpreted: SparkSession) -> SparkSession:
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    for name, table in {**TABLES, **nexmark()}.items():
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    return interpreted


@pytest.mark.parametrize("text", _LINES)
def test_the_rows_are_sparks(text: str, spark: SparkSession, session: SparkSession) -> None:
    json_text = analyzed(spark, text, {n: t.schema for n, t in TABLES.items()})
    if any(word in text for word in _REFUSED):
        with pytest.raises(UnsupportedError):
            plan_of(json_text)
        return
    plan = plan_of(json_text)
    names, _, rows = run_spark(session, text)
    assert plan.schema.names == names
    assert rows_of(plan, TABLES) == in_any_order(rows)


@pytest.mark.parametrize("text", [line for line in _LINES if "window(ts" in line])
def test_our_reader_has_the_same_windows_of_time(text: str, session: SparkSession) -> None:
    plan = read_plan(text, TABLES)
    names, _, rows = run_spark(session, text)
    assert plan.schema.names == names
    assert rows_of(plan, TABLES) == in_any_order(rows)


@pytest.mark.parametrize("name", [n for n in queries() if n.startswith("nexmark")])
def test_nexmarks_rows_are_sparks(name: str, spark: SparkSession, session: SparkSession) -> None:
    text, tables = queries()[name]
    plan = plan_of(analyzed(spark, text, {n: t.schema for n, t in tables.items()}))
    names, _, rows_there = run_spark(session, text)
    assert plan.schema.names == names
    found = rows_of(plan, tables)
    assert found == in_any_order(rows_there)
    assert found, "a query without rows proves nothing"
