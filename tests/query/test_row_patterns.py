"""MATCH_RECOGNIZE in queries of a lake, on each engine."""

from __future__ import annotations

import datetime as dt
import random
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.sql.matching.histories import SCHEMA, case, rows
from tests.sql.matching.test_plain_matcher import expected, plainly
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base.errors import ExpressionError, HeadwaterError
from headwater.lakehouse import Lake
from headwater.query.run import EngineName
from headwater.sql.matching import machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES: list[EngineName] = ["duckdb", "datafusion"]
BASE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
PRICES = {"x": [10, 9, 8, 9, 10, 11, 10, 9, 12], "y": [5, 6, 7], "z": [3, 2, 1, 4, 5]}
V_SHAPE = "PATTERN (A D+ U+) DEFINE D AS price < PREV(price), U AS price > PREV(price)"


@pytest.fixture
def ticks(lake: Lake) -> Lake:
    found = [
        {"sym": sym, "ts": BASE + dt.timedelta(seconds=at), "price": price}
        for sym, prices in PRICES.items()
        for at, price in enumerate(prices)
    ]
    lake.write("ticks", pa.Table.from_pylist(found))
    return lake


def answer(lake: Lake, sql: str, engine: EngineName = "duckdb", **more: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in lake.sql(sql, engine=engine, **more).to_arrow().to_pylist()), key=repr)


QUERIES: dict[str, tuple[str, list[tuple[Any, ...]] | None]] = {
    "one row": (
        (
            f"SELECT sym, n, low, high FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES MATCH_NUMBER() AS n, "
            f"LAST(D.price) AS low, LAST(U.price) AS high {V_SHAPE})"
        ),
        [("x", 1, 8, 11), ("x", 2, 9, 12), ("z", 1, 1, 5)],
    ),
    "all rows": (
        (
            f"SELECT sym, price, c, s FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES CLASSIFIER() AS c, "
            f"sum(price) AS s ALL ROWS PER MATCH {V_SHAPE}) WHERE sym = 'z'"
        ),
        [("z", 1, "D", 6), ("z", 2, "D", 5), ("z", 3, "A", 3), ("z", 4, "U", 10), ("z", 5, "U", 15)],
    ),
    "behind a subquery, with an alias": (
        (
            "SELECT m.sym, count(*) FROM (SELECT * FROM ticks WHERE price > 4) AS t MATCH_RECOGNIZE (PARTITION BY t.sym ORDER BY ts "
            "MEASURES A.price AS p AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS price > A.price) AS m GROUP BY m.sym"
        ),
        [("x", 4), ("y", 2)],
    ),
    "over a match": (
        (
            "SELECT * FROM (SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES B.price AS p, B.ts AS at "
            "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS price > A.price)) MATCH_RECOGNIZE (PARTITION BY sym "
            "ORDER BY at MEASURES count(*) AS n PATTERN (C+))"
        ),
        [("x", 4), ("y", 2), ("z", 2)],
    ),
    "joined, over a definition, twice": (
        (
            "WITH big AS (SELECT * FROM ticks WHERE price > 2), m AS (SELECT * FROM big MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts "
            "MEASURES FIRST(ts) AS start, count(*) AS n PATTERN (A+))) "
            "SELECT a.sym, a.n, b.n AS k FROM m AS a JOIN m AS b ON a.sym = b.sym JOIN big ON big.sym = a.sym AND big.ts = a.start"
        ),
        [("x", 9, 9), ("y", 3, 3), ("z", 3, 3)],
    ),
    "computed keys": (
        (
            "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY upper(sym), price % 2 ORDER BY -price DESC, ts "
            "MEASURES count(*) AS n PATTERN (A+))"
        ),
        [("X", 0, 5), ("X", 1, 4), ("Y", 0, 1), ("Y", 1, 2), ("Z", 0, 2), ("Z", 1, 3)],
    ),
    "no partitions": (
        (
            "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY price, sym, ts MEASURES count(*) AS n, FIRST(price) AS p PATTERN (A B*) "
            "WITHIN 1 DEFINE B AS sym >= A.sym)"
        ),
        None,
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [n for n, (_, wanted) in QUERIES.items() if wanted])
def test_queries(ticks: Lake, name: str, engine: EngineName) -> None:
    sql, wanted = QUERIES[name]
    assert wanted is not None and answer(ticks, sql, engine) == sorted(wanted, key=repr)


@pytest.mark.usefixtures("on_disk")  # Spark reads what lies there without another library
@pytest.mark.spark
def test_queries_on_spark(ticks: Lake, spark: SparkSession) -> None:
    lake = hw.connect(ticks.location, spark=spark)
    for name, (sql, wanted) in QUERIES.items():
        here = answer(lake, sql)
        assert answer(lake, sql, "spark") == here, name
        assert wanted is None or here == sorted(wanted, key=repr), name


@pytest.mark.parametrize("engine", ENGINES)
def test_parameters(ticks: Lake, engine: EngineName) -> None:
    sql = (
        "SELECT sym, n, ? FROM (SELECT * FROM ticks WHERE price > ?) MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts "
        "MEASURES count(*) + ? AS n PATTERN (A B??B*) DEFINE B AS price >= A.price + ?) WHERE n > ?"
    )
    assert answer(ticks, sql, engine, parameters=[7, 4, 100, 0, 101]) == [("x", 107, 7), ("y", 103, 7)]


@pytest.mark.usefixtures("on_disk")  # Spark reads what lies there without another library
@pytest.mark.spark
def test_parameters_on_spark(ticks: Lake, spark: SparkSession) -> None:
    test_parameters(hw.connect(ticks.location, spark=spark), "spark")


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_are_those_of_the_query(ticks: Lake, engine: EngineName) -> None:
    clause = "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS p {})"
    with pytest.raises(ExpressionError, match=r"E1308.*division by zero"):
        answer(ticks, clause.format("PATTERN (A) DEFINE A AS 10 / (price - 10) > 1"), engine)
    with pytest.raises(ExpressionError, match=r"E1316.*first row of a match"):
        answer(ticks, clause.format("AFTER MATCH SKIP TO A PATTERN (A)"), engine)
    with pytest.raises(HeadwaterError, match=r"E1002.*no column `prize`") as raised:
        answer(ticks, clause.format("PATTERN (A) DEFINE A AS prize > 1"), engine)
    assert raised.value.position == len(clause) - 3 + len("PATTERN (A) DEFINE A AS ")
    with pytest.raises(ExpressionError, match="recursion"):
        answer(
            ticks,
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM (SELECT * FROM r MATCH_RECOGNIZE (ORDER BY n "
            "MEASURES A.n AS n PATTERN (A) DEFINE A AS n < 3))) SELECT * FROM r",
            engine,
        )


@pytest.mark.usefixtures("on_disk")  # Spark reads what lies there without another library
@pytest.mark.spark
def test_errors_on_spark(ticks: Lake, spark: SparkSession) -> None:
    lake = hw.connect(ticks.location, spark=spark)
    clause = "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS p {})"
    with pytest.raises(ExpressionError, match=r"division by zero"):
        answer(lake, clause.format("PATTERN (A) DEFINE A AS 10 / (price - 10) > 1"), "spark")
    with pytest.raises(ExpressionError, match=r"E1316"):
        answer(lake, clause.format("AFTER MATCH SKIP TO A PATTERN (A)"), "spark")
    with pytest.raises(HeadwaterError, match=r"no column `prize`"):
        answer(lake, clause.format("PATTERN (A) DEFINE A AS prize > 1"), "spark")
    with pytest.raises(ExpressionError, match="a table is expected"):
        answer(lake, "SELECT * FROM MATCH_RECOGNIZE (ORDER BY a PATTERN (A))", "spark")


def test_explain_shows_the_machine(ticks: Lake) -> None:
    text = "\n".join(r["plan"] for r in ticks.sql(f"EXPLAIN {QUERIES['one row'][0]}").to_arrow().to_pylist())
    assert "match (A D+ U+); partition by sym#1" in text
    more = "\n".join(r["plan"] for r in ticks.sql(f"EXPLAIN EXTENDED {QUERIES['one row'][0]}").to_arrow().to_pylist())
    assert "pattern A D+ U+\n  A: any row\n  D: (price < prev(price, 1)), for all rows at once" in more
    assert "either" in more and "duckdb:" in more


def test_a_pattern_can_be_looked_at(ticks: Lake) -> None:
    (found,) = ticks.patterns(QUERIES["one row"][0])
    assert str(found).startswith("pattern A D+ U+\n  A: any row\n  D: (price < prev(price, 1)), for all rows at once")
    assert "  0  row A\n" in str(found) and str(found).endswith("accept")
    dot = found.dot()
    assert dot.startswith("digraph pattern {") and dot.count("shape=circle") == 5 and "-> end" in dot
    assert found._repr_svg_() in found._repr_html_()
    assert ">D</text>" in found.svg() and "D: (price &lt; prev(price, 1))" in found.svg()
    assert ticks.patterns("SELECT * FROM ticks") == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(12))
def test_engines_give_what_the_plain_matcher_gives(lake: Lake, engine: EngineName, seed: int) -> None:
    dice = random.Random(seed)
    one, given = case(dice), rows(dice, 8, 8)
    lake.write("t", pa.Table.from_pylist(given, SCHEMA))
    try:
        wanted = expected(one, given)
    except ValueError:
        with pytest.raises(ExpressionError, match=r"E131[56]"):
            lake.sql(one.sql, engine=engine).to_arrow()
        return
    found = lake.sql(one.sql, engine=engine).to_arrow().to_pylist()
    assert plainly([tuple(r.values()) for r in found]) == plainly(wanted), one.sql


@pytest.mark.usefixtures("on_disk")  # Spark reads what lies there without another library
@pytest.mark.spark
def test_spark_gives_what_the_plain_matcher_gives(lake: Lake, spark: SparkSession) -> None:
    dice = random.Random(99)
    given = rows(dice, 8, 8)
    lake.write("t", pa.Table.from_pylist(given, SCHEMA))
    there = hw.connect(lake.location, spark=spark)
    compared = 0
    while compared < 8:
        one = case(dice)
        try:
            wanted = expected(one, given)
        except ValueError:
            continue
        found = there.sql(one.sql, engine="spark").to_arrow().to_pylist()
        assert plainly([tuple(r.values()) for r in found]) == plainly(wanted), one.sql
        compared += 1


def test_cancelling_stops_the_search(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_STEPS", 1 << 60)
    began, check = threading.Event(), machine._Limits.check

    def noticed(self: Any, state: Any) -> None:
        began.set()
        check(self, state)

    monkeypatch.setattr(machine._Limits, "check", noticed)
    lake.write("t", [{"ts": at, "x": 1} for at in range(8_000)])
    # From no start more than the square of the rows, and the cube of them from all: hours.
    result = lake.sql(
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.x AS x PATTERN (A+ B+ C) "
        "DEFINE A AS count(*) > 0, C AS x = 2)",
        engine="duckdb",  # DataFusion is given the rows of a match before there is a result to cancel
    )
    codes: list[str] = []

    def read() -> None:
        with pytest.raises(hw.CancelledError) as raised:
            result.to_arrow()
        codes.append(raised.value.code)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    assert began.wait(PATIENCE_S), "the search has to be on its way for this to mean something"
    result.cancel()
    reading.join(PATIENCE_S)
    assert not reading.is_alive() and codes == ["E1402"]
