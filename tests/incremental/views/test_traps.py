"""Where libraries and SQL differ, views are Spark: each trap as a view whose rows came and went, against Spark itself.

Values are compared by their bits where SQL says which they are; what may be either zero, or a sum of floats, by twelve digits.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.sql.oracle import comparable

import headwater as hw
from headwater.base.errors import ExpressionError, HeadwaterError

from .stepwise import History, by_bits, circuit_of, play, small, spark_answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_MOST, _LEAST = 2**31 - 1, -(2**31)
_MOMENT = datetime(2024, 3, 31, 0, 59, 59, 999_999, tzinfo=UTC)
_WORDS = [None, "", "a", "A", "b", "ab", "é", "e\u0301", "Z", "ß", "ss", "\uffff", "\U0001f926", " a", "a "]


def _numbers() -> pa.Table:
    whole = [7, -7, 7, -7, 0, _MOST, _LEAST, 1, None, 5, -1, 2, 3, -3, 8]
    by = [2, 2, -2, -2, 3, 2, 3, -3, 4, None, 7, 2, -5, 5, 3]
    floats = [
        0.0,
        -0.0,
        math.nan,
        -math.nan,
        math.inf,
        -math.inf,
        2.5,
        3.5,
        -2.5,
        -0.5,
        None,
        1e-300,
        0.5,
        1.005,
        2.675,
    ]
    tens = [
        None,
        *(Decimal(n).scaleb(-2) for n in (5, -5, 15, 25, -25, 12345, 99999999, -99999999, 0, 1, 2, 3, 250, 350)),
    ]
    fine = [*(Decimal(n).scaleb(-4) for n in (3, -3, 7, 10000, 33333, 66667, -1, 1, 99999, 2, 5, 25, 125, 625)), None]
    rows = range(len(whole))
    return pa.table(
        {
            "id": pa.array(rows, pa.int32()),
            "g": pa.array([i % 4 or None for i in rows], pa.int32()),
            "a": pa.array(whole, pa.int32()),
            "b": pa.array(by, pa.int32()),
            "l": pa.array([v if v is None else v * 3 for v in whole], pa.int64()),
            "x": pa.array(floats, pa.float64()),
            "y": pa.array([*floats[3:], *floats[:3]], pa.float64()),
            "f": pa.array(floats, pa.float32()),
            "p": pa.array(tens, pa.decimal128(10, 2)),
            "q": pa.array(fine, pa.decimal128(7, 4)),
            "s": pa.array(_WORDS),
            "day": pa.array([date(2024, 2, 28) + timedelta(days=i) for i in rows]),
            "ts": pa.array([_MOMENT + timedelta(hours=7 * i) for i in rows], pa.timestamp("us", tz="UTC")),
            "nt": pa.array([_MOMENT.replace(tzinfo=None) - timedelta(hours=9 * i) for i in rows], pa.timestamp("us")),
        }
    )


def _others() -> pa.Table:
    return pa.table(
        {
            "k": pa.array([1, 2, None, 3, 3], pa.int32()),
            "x": pa.array([-0.0, math.nan, 1.5, None, 0.5]),
            "w": pa.array(["a", "A", None, "ß", "e\u0301"]),
        }
    )


def _histories() -> dict[str, History]:
    numbers, others = _numbers(), _others()
    none = numbers.slice(0, 0)
    return {"t": History(numbers, numbers), "o": History(others, others), "none": History(none, numbers)}


_BITS = {
    "whole division and remainder": """SELECT id, a div b AS c1, a % b AS c2, pmod(a, b) AS c3, mod(a, b) AS c4, a / b AS c5, l % b AS c6,
        l div b AS c7, pmod(l, b) AS c8, try_divide(a, 0) AS c9, try_mod(a, 0) AS c10, -a % 3 AS c11 FROM t WHERE a <> -2147483648""",
    "remainder of floats and decimals": """SELECT id, x % 2 AS c1, pmod(x, 2.5D) AS c2, p % q AS c3, pmod(p, -p) AS c4, p % -3 AS c5
        FROM t WHERE q <> 0 AND p <> 0""",
    "decimals": """SELECT id, p + q AS c1, p - q AS c2, p * q AS c3, p / q AS c4, p * p * q AS c5, p / 3 AS c6, p + a AS c7, q * 1.5 AS c8, a / 3.0 AS c9,
        CAST(p AS decimal(4,1)) IS NULL AS c10, try_cast(p AS decimal(4,1)) AS c11, CAST(q AS int) AS c12, p = q AS c13 FROM t
        WHERE p IS NULL OR abs(p) < 900""",
    "sums of decimals": """SELECT g, sum(p) AS c1, avg(p) AS c2, sum(q) AS c3, avg(q) AS c4, sum(p * q) AS c5, avg(p * q) AS c6, sum(DISTINCT p) AS c7,
        avg(a) AS c8, sum(a) AS c9, avg(l) AS c10, max(p) AS c11, min(q) AS c12 FROM t GROUP BY g""",
    "rounding": """SELECT id, round(x) AS c1, round(x, 1) AS c2, round(x, 2) AS c3, bround(x) AS c4, bround(x, 1) AS c5, round(p, 1) AS c6, bround(p, 1) AS c7,
        round(p, -1) AS c8, round(q, 2) AS c9, bround(q, 3) AS c10, ceil(p) AS c11, floor(p) AS c12, round(f, 2) AS c13,
        rint(x) AS c14, CAST(p AS int) AS c15 FROM t""",
    "rounding to tens": "SELECT id, round(a, -1) AS c1, bround(a, -1) AS c2, round(l, -2) AS c3 FROM t WHERE abs(l) < 100",
    "not in": """SELECT id FROM t WHERE a NOT IN (SELECT k FROM o WHERE k IS NOT NULL)""",
    "not in with null": "SELECT id FROM t WHERE a NOT IN (SELECT k FROM o)",
    "not in of nothing": "SELECT id FROM t WHERE a NOT IN (SELECT a FROM none)",
    "not in of values": "SELECT id, a NOT IN (7, NULL) AS c1, a IN (7, NULL) AS c2, a NOT IN (7, 5) AS c3, NOT a IN (b, 2) AS c4 FROM t",
    "not in by group": "SELECT id FROM t WHERE a NOT IN (SELECT k FROM o WHERE o.w = t.s)",
    "not exists": "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.k = t.a)",
    "sums of nothing": """SELECT sum(a) AS c1, count(*) AS c2, count(a) AS c3, avg(a) AS c4, min(s) AS c5, sum(p) AS c6, max(x) AS c7,
        collect_list(a) AS c8, bool_and(a > 0) AS c9, stddev(x) AS c10, count(DISTINCT a) AS c11, sum(x) AS c12 FROM none""",
    "groups of nothing": "SELECT g, sum(a) AS c1, count(*) AS c2 FROM none GROUP BY g",
    "sums of nulls": "SELECT id % 3 AS k, sum(a) AS c1, count(a) AS c2, count(*) AS c3, avg(p) AS c4 FROM t WHERE a IS NULL OR b IS NULL GROUP BY id % 3",
    "sum of no rows of a subquery": "SELECT id, (SELECT sum(k) FROM o WHERE o.k = t.a) AS c1, (SELECT count(*) FROM o WHERE o.k = t.a) AS c2 FROM t",
    "counts": """SELECT count(*) AS c1, count(1) AS c2, count(NULL) AS c3, count(a) AS c4, count(DISTINCT g) AS c5, count(DISTINCT a, b) AS c6,
        count(a, b) AS c7, count(*) FILTER (WHERE a > 0) AS c8, count(x) AS c9 FROM t""",
    "substr": """SELECT id, substr(s, 0) AS c1, substr(s, 0, 1) AS c2, substr(s, 1, 1) AS c3, substr(s, -1) AS c4, substr(s, -2, 1) AS c5, substr(s, -9, 9) AS c6,
        substr(s, 2) AS c7, substr('hello', a % 7, 2) AS c8, left(s, 1) AS c9, right(s, 1) AS c10, substring('hello', -3, 2) AS c11, substr(s, 1, -1) AS c12 FROM t
        WHERE a IS NULL OR a BETWEEN -100 AND 100""",
    "floats as keys": "SELECT x AS k, count(*) AS n, sum(a % 9) AS c FROM t GROUP BY x",
    "floats made keys": "SELECT -x AS k, f AS j, count(*) AS n FROM t GROUP BY -x, f",
    "distinct floats": "SELECT DISTINCT x, f FROM t",
    "distinct single floats": "SELECT DISTINCT -f AS f FROM t",
    "floats counted": "SELECT count(DISTINCT x) AS c1, count(DISTINCT x, f) AS c2, count(DISTINCT -x) AS c3 FROM t",
    "floats joined": "SELECT t.id, o.k FROM t JOIN o ON t.x = o.x",
    "floats joined with nulls": "SELECT t.id, o.k FROM t LEFT JOIN o ON t.x <=> o.x",
    "floats excepted": "SELECT x FROM t EXCEPT SELECT x FROM o",
    "floats of both": "SELECT x FROM t INTERSECT SELECT x FROM o",
    "floats compared": """SELECT id, x = y AS c1, x < y AS c2, x > 1 AS c3, x <=> y AS c4, x = sqrt(-1.0D) AS c5, x IN (0.0D, sqrt(-1.0D)) AS c6,
        x BETWEEN 0 AND sqrt(-1.0D) AS c7, isnan(x) AS c8, nanvl(x, y) AS c9, x = -0.0D AS c10, nullif(x, 0.0D) AS c11 FROM t""",
    "floats ranked": "SELECT id, rank() OVER (ORDER BY x) AS c1, rank() OVER (ORDER BY x DESC) AS c2, dense_rank() OVER (ORDER BY f) AS c3 FROM t",
    "floats in order": "SELECT x, id FROM t ORDER BY x DESC, id LIMIT 5",
    "nulls ranked": """SELECT id, rank() OVER (ORDER BY a) AS c1, rank() OVER (ORDER BY a DESC) AS c2, rank() OVER (ORDER BY a NULLS LAST) AS c3,
        rank() OVER (ORDER BY a DESC NULLS FIRST) AS c4, row_number() OVER (PARTITION BY g ORDER BY s, id) AS c5 FROM t""",
    "top of nulls": "SELECT a, id FROM t ORDER BY a, id LIMIT 3",
    "top without nulls": "SELECT a, id FROM t ORDER BY a DESC NULLS LAST, id LIMIT 3 OFFSET 1",
    "top descending": "SELECT b, id FROM t ORDER BY b DESC, id DESC LIMIT 14",
    "neighbours of nulls": "SELECT id, lag(a) OVER (ORDER BY b, id) AS c1, lead(a, 2, -1) OVER (ORDER BY b DESC NULLS FIRST, id) AS c2 FROM t",
    "dates and moments": """SELECT id, date_trunc('MONTH', ts) AS c1, CAST(ts AS date) AS c2, CAST(ts AS string) AS c3, hour(ts) AS c4, date_add(day, 1) AS c5, add_months(day, 12) AS c6,
        datediff(day, ts) AS c7, ts + INTERVAL '1' DAY AS c8, day - INTERVAL '1' MONTH AS c9, CAST(day AS timestamp) AS c10, CAST(ts AS timestamp_ntz) AS c11,
        CAST(nt AS timestamp) AS c12, unix_timestamp(ts) AS c13, last_day(day) AS c14, months_between(ts, nt) AS c15,
        from_utc_timestamp(ts, 'Asia/Tokyo') AS c16, to_utc_timestamp(ts, '+05:30') AS c17, ts > nt AS c18, nt + INTERVAL '36' HOUR AS c19 FROM t""",
    "dates grouped": "SELECT date_trunc('DAY', ts) AS d, count(*) AS n, max(nt) AS c1, min(day) AS c2 FROM t GROUP BY date_trunc('DAY', ts)",
    "names": "SELECT T.Id, A AS `Ab`, `S`, t.G FROM t AS T WHERE B > 1 AND t.`a` IS NOT NULL",
    "names of groups": "SELECT G, SUM(A % 5) AS Total FROM t GROUP BY g HAVING total > -100",
    "texts compared": "SELECT id, s < 'a' AS c1, s = 'A' AS c2, s > 'é' AS c3, s < '\U0001f926' AS c4, s = 'é' AS c5, upper(s) AS c6, lower(s) AS c7, length(s) AS c8 FROM t WHERE s <> '\uffff'",
    "texts in order": "SELECT s, id FROM t ORDER BY s DESC, id LIMIT 6",
    "texts ranked": "SELECT id, rank() OVER (ORDER BY s) AS c FROM t",
    "texts joined": "SELECT t.id, o.k FROM t JOIN o ON t.s = o.w",
    "texts as keys": "SELECT s, count(*) AS n FROM t GROUP BY s",
    "least and greatest text": "SELECT g, min(s) AS c1, max(s) AS c2 FROM t GROUP BY g",
    "casts of texts": "SELECT id, CAST(' 12 ' AS int) AS c1, try_cast(s AS int) AS c2, try_cast(concat(' ', a, ' ') AS bigint) AS c3, CAST(x AS string) AS c4, CAST(p AS string) AS c5 FROM t",
}
_DIGITS = {
    "floats of groups": "SELECT g, min(x) AS c1, max(x) AS c2, min(f) AS c3, max(f) AS c4, min(abs(x)) AS c5 FROM t GROUP BY g",
    "sums of floats": "SELECT g, sum(x) AS c1, avg(x) AS c2, sum(f) AS c3, avg(f) AS c4, stddev(y) AS c5 FROM t WHERE NOT isnan(x) AND abs(x) < 99 GROUP BY g",
    "sums of nan": "SELECT g, sum(x) AS c1, avg(x) AS c2 FROM t GROUP BY g",
    "greatest float": "SELECT id, greatest(x, y) AS c1, least(x, y) AS c2, greatest(x, NULL, 1) AS c3 FROM t",
}


@pytest.mark.spark
def test_traps(interpreted: SparkSession) -> None:
    small(interpreted)
    histories = _histories()
    schemas = {n: h.final.schema for n, h in histories.items()}
    for name, history in histories.items():
        frame = interpreted.createDataFrame(history.final).coalesce(1)
        if "nt" in frame.columns:
            frame = frame.withColumn("nt", frame["nt"].cast("timestamp_ntz"))
        frame.createOrReplaceTempView(name)
    wrong = []
    for queries, values in ((_BITS, by_bits), (_DIGITS, comparable)):
        for title, sql in queries.items():
            ours = play(circuit_of(sql, schemas), histories, values)
            theirs = spark_answer(interpreted, sql, values)
            if ours != theirs:
                only = [r for r in ours.rows if r not in theirs.rows], [r for r in theirs.rows if r not in ours.rows]
                heads = f"{ours.names} {ours.types}\n  spark: {theirs.names} {theirs.types}"
                wrong.append(f"{title}: {sql}\n  view:  {only[0]}\n  spark: {only[1]}\n  view:  {heads}")
    assert not wrong, "\n".join(wrong)


_STOPPING = {
    "a + b": (_MOST, 1),
    "a - b": (_LEAST, 1),
    "a * b": (_MOST, 2),
    "-a": (_LEAST, 0),
    "abs(a)": (_LEAST, 0),
    "a / b": (1, 0),
    "a % b": (1, 0),
    "a div b": (1, 0),
    "CAST(a AS smallint)": (70_000, 1),
    "CAST(substr('12345x', a, 2) AS int)": (5, 1),
    "element_at(array(1, 2), a)": (3, 1),
    "CAST(a AS decimal(3,1))": (100, 1),
    "l + a": (1, 1),
    "make_date(2024, 2, a)": (30, 1),
}
_STOPPING_SUMS = {
    "sum(l)": (0, 0),
    "sum(CAST(l AS decimal(38,0)) * CAST(9999999999999999999 AS decimal(38,0)))": (0, 0),
    "sum(a / b)": (5, 0),
}
_PAIRS = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("l", pa.int64())])
_GOOD = pa.Table.from_pylist([{"a": 1, "b": 1, "l": 4}, {"a": 2, "b": 1, "l": 5}], _PAIRS)


def _bad(a: int, b: int) -> pa.Table:
    return pa.Table.from_pylist([{"a": a, "b": b, "l": 2**63 - 1}] * 2, _PAIRS)


@pytest.mark.parametrize("text", [*_STOPPING, *_STOPPING_SUMS])
def test_a_step_that_fails_leaves_everything_as_it_was(text: str) -> None:
    pair = {**_STOPPING, **_STOPPING_SUMS}[text]
    circuit = circuit_of(f"SELECT {text} AS c FROM t", {"t": _PAIRS})
    first = circuit.step(t=_GOOD)["view"].to_arrow()
    with pytest.raises(ExpressionError) as caught:
        circuit.step(t=_bad(*pair))
    assert caught.value.code == "E1303", caught.value
    undone = circuit.step(t=_GOOD.append_column("_weight", pa.array([-1, -1], pa.int64())))["view"].to_arrow()
    aggregates = text in _STOPPING_SUMS
    gone = [r for r in undone.to_pylist() if r["_weight"] < 0]
    assert sorted(r["c"] for r in gone) == sorted(r["c"] for r in first.to_pylist())
    assert len(undone) == len(gone) + aggregates, "a sum of no rows is null"


@pytest.mark.spark
def test_what_stops_a_view_stops_spark(interpreted: SparkSession) -> None:
    from pyspark.errors import PySparkException

    passed = []
    for text, pair in {**_STOPPING, **_STOPPING_SUMS}.items():
        interpreted.createDataFrame(pa.concat_tables([_GOOD, _bad(*pair)])).coalesce(1).createOrReplaceTempView("pairs")
        try:
            interpreted.sql(f"SELECT {text} AS c FROM pairs").toArrow()
            passed.append(text)
        except PySparkException:
            pass
    assert not passed


def test_a_refresh_that_fails_publishes_nothing(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("pairs", _GOOD)
    views = [
        lake.view("v", "SELECT a, a + b AS c FROM pairs"),
        lake.view("w", "SELECT b, sum(l) AS total, count(*) AS n FROM pairs GROUP BY b"),
    ]
    for view in views:
        view.refresh()
    before = [(v.to_pylist(), str(v.frontier)) for v in views]
    lake.table("pairs").append(_bad(_MOST, 1))
    for view, (rows, frontier) in zip(views, before, strict=True):
        for _ in range(2):
            with pytest.raises(HeadwaterError, match=r"overflow|does not fit"):
                view.refresh()
            assert (view.to_pylist(), str(view.frontier)) == (rows, frontier)
    lake.table("pairs").delete(f"a = {_MOST}")
    for view, (rows, _) in zip(views, before, strict=True):
        view.refresh()
        assert view.to_pylist() == rows and view.verify().equal


def test_a_decimal_of_two_to_the_63_units() -> None:
    schema = pa.schema([("p", pa.decimal128(20, 0))])
    circuit = circuit_of("SELECT p FROM t", {"t": schema})
    rows = circuit.step(t=pa.Table.from_pylist([{"p": Decimal(2**63)}], schema))["view"].to_arrow()
    assert rows["p"].to_pylist() == [Decimal(2**63)]
