"""Circuits equal a recomputation by DuckDB after every step of random histories: batches, transactions, restarts, shards."""

from __future__ import annotations

import os
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.incremental.circuit.circuit import Circuit
from headwater.testing.circuits import Trial, run

# A step is one of all 47 outputs: 2,350 in all.
STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "16"))
SEEDS = range(int(os.environ.get("HEADWATER_TEST_SEEDS", "2")))

T = pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.int32()), ("d", pa.decimal128(12, 2))])
U = pa.schema([("k", pa.int64()), ("w", pa.int64()), ("ts", pa.timestamp("us"))])
_WORDS = [None, "", "a", "b", "exactly 12 by", "a string that does not fit a slot", "ünïcödé ✓ ünïcödé"]
_EPOCH = datetime(2024, 1, 1)


def draw_t(rng: random.Random) -> tuple[Any, ...]:
    return (
        rng.choice([None, 1, 2, 3, -(2**63)]),
        rng.choice(_WORDS),
        rng.choice([None, 0, 1, 5, -7, 2**31 - 1]),
        rng.choice([None, Decimal("0.01"), Decimal("-12.50"), Decimal("9999999999.99")]),
    )


def draw_u(rng: random.Random) -> tuple[Any, ...]:
    return (
        rng.choice([None, 1, 2, 4]),
        rng.choice([None, 0, 1, 10, 2**40]),
        rng.choice([None, _EPOCH, _EPOCH + timedelta(seconds=rng.randint(0, 5)), _EPOCH - timedelta(days=3)]),
    )


DRAWS = {"t": draw_t, "u": draw_u}


def build_joins(c: Circuit) -> None:
    t, u = c.input("t", T), c.input("u", U)
    condition = "w > 0 AND s <> 'b'"
    for how in ("inner", "left", "right", "full", "semi", "anti"):
        t.join(u, "k", how=how).output(how)
        t.join(u, "k", how=how, where=condition).output(f"{how}_where")
    t.join(u.rename(k="j"), [("k", "j")], how="left").output("renamed")
    t.select("s").join(u.select("w"), how="cross").output("crossed")
    t.star_join([u, u.group_by("k").agg(n="count(*)")], "k").output("star")


def _outer(how: str, condition: str) -> str:
    key = {"inner": "t.k", "left": "t.k", "right": "u.k", "full": "coalesce(t.k, u.k)"}[how]
    return f"SELECT {key}, s, v, d, w, ts FROM t {how} JOIN u ON t.k = u.k{condition}"


JOINS = {
    name: text
    for suffix, more in (("", ""), ("_where", " AND w > 0 AND s <> 'b'"))
    for name, text in {
        **{f"{how}{suffix}": _outer(how, more) for how in ("inner", "left", "right", "full")},
        f"semi{suffix}": f"SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.k = u.k{more})",
        f"anti{suffix}": f"SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE t.k = u.k{more})",
    }.items()
} | {
    "renamed": "SELECT t.k, s, v, d, u.k, w, ts FROM t LEFT JOIN u ON t.k = u.k",
    "crossed": "SELECT s, w FROM t, u",
    "star": "SELECT t.*, w, ts, n FROM t JOIN u USING (k) JOIN (SELECT k, count(*) AS n FROM u GROUP BY k) AS c USING (k)",
}


def build_rows(c: Circuit) -> None:
    t, u = c.input("t", T), c.input("u", U)
    t.filter("v > 0 OR s IS NULL").output("filtered")
    t.with_columns(twice="CAST(v AS BIGINT) * 2", up="upper(s)").drop("d").output("computed")
    t.select("k").plus(u.select("k")).output("union_all")
    t.select("k").plus(u.select("k")).distinct().output("union_distinct")
    t.distinct().output("distinct")
    t.join(t.rename(s="s2", v="v2", d="d2"), "k").select("k", "v", "v2").output("self_join")


ROWS = {
    "filtered": "SELECT * FROM t WHERE v > 0 OR s IS NULL",
    "computed": "SELECT k, s, v, v::BIGINT * 2, upper(s) FROM t",
    "union_all": "SELECT k FROM t UNION ALL SELECT k FROM u",
    "union_distinct": "SELECT k FROM t UNION SELECT k FROM u",
    "distinct": "SELECT DISTINCT * FROM t",
    "self_join": "SELECT t.k, t.v, b.v FROM t JOIN t AS b ON t.k = b.k",
}


def build_aggregates(c: Circuit) -> None:
    t, u = c.input("t", T), c.input("u", U)
    t.group_by("k", "s").agg(n="count(*)", c="count(v)", total="sum(v)", lo="min(v)", hi="max(d)").output("grouped")
    t.group_by("s").agg(mean="avg(v)", exact="sum(d)", kinds="count(DISTINCT v)").output("by_text")
    t.group_by().agg(n="count(*)", lo="min(s)", hi="max(s)").output("overall")
    t.group_by("k").agg(
        x="sum(CAST(v AS BIGINT) * 2) FILTER (WHERE v > 0)", y="CAST(max(v) AS BIGINT) - min(v) + count(*)"
    ).output("mixed")
    u.group_by("k").agg(first="min(ts)", last="max(ts)").output("times")
    per_key = t.join(u, "k").group_by("k").agg(n="count(*)", w="sum(w)")
    per_key.filter("n > 1").output("having")
    per_key.group_by("n").agg(keys="count(*)").output("twice")


AGGREGATES = {
    "grouped": "SELECT k, s, count(*), count(v), sum(v), min(v), max(d) FROM t GROUP BY k, s",
    "by_text": "SELECT s, avg(v), sum(d), count(DISTINCT v) FROM t GROUP BY s",
    "overall": "SELECT count(*), min(s), max(s) FROM t",
    "mixed": "SELECT k, sum(v::BIGINT * 2) FILTER (WHERE v > 0), max(v)::BIGINT - min(v) + count(*) FROM t GROUP BY k",
    "times": "SELECT k, min(ts), max(ts) FROM u GROUP BY k",
    "having": "SELECT k, count(*) AS n, sum(w) FROM t JOIN u USING (k) GROUP BY k HAVING n > 1",
    "twice": "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM t JOIN u USING (k) GROUP BY k) GROUP BY n",
}


def build_ordered(c: Circuit) -> None:
    u = c.input("u", U)
    c.input("t", T).over(order=["v desc", "k", "s", "d"]).top(3).output("top")
    o = u.over("k", order=["ts", "w"])
    o.rank(n="row_number", r="rank", d="dense_rank").output("ranks")
    u.over("k", order="w desc").rank(r="rank", p="percent_rank", c="cume_dist").output("shares")
    o.lag("w", 2, name="before", default=-1).output("lag")
    o.lead("ts", name="after").output("lead")
    o.agg(rows=(-2, 1), n="count(*)", total="sum(w)", lo="min(w)", last="last_value(ts)").output("rows")
    o.agg(rows=(None, 0), total="sum(w)").output("running")
    u.over("k", order="ts").agg(range=("-2 seconds", "1 second"), n="count(w)", hi="max(w)").output("range")
    u.over("k").agg(n="count(*)", total="sum(w)").output("whole")
    u.window("ts", "2 seconds").group_by("window_start", "k").agg(n="count(*)", w="sum(w)").output("tumbling")
    u.window("ts", "4 seconds", every="2 seconds").group_by("window_start").agg(n="count(*)").output("hopping")


_OVER = "OVER (PARTITION BY k ORDER BY ts NULLS FIRST, w NULLS FIRST"
_BUCKET = "time_bucket(INTERVAL 2 SECONDS, ts, TIMESTAMP '1970-01-01')"
ORDERED = {
    "top": "SELECT * FROM t ORDER BY v DESC NULLS LAST, k NULLS FIRST, s NULLS FIRST, d NULLS FIRST LIMIT 3",
    "ranks": f"SELECT *, row_number() {_OVER}), rank() {_OVER}), dense_rank() {_OVER}) FROM u",
    "shares": """SELECT *, rank() OVER o, percent_rank() OVER o, cume_dist() OVER o FROM u
                 WINDOW o AS (PARTITION BY k ORDER BY w DESC NULLS LAST)""",
    "lag": f"SELECT *, lag(w, 2, -1) {_OVER}) FROM u",
    "lead": f"SELECT *, lead(ts) {_OVER}) FROM u",
    "rows": """SELECT *, count(*) OVER o, sum(w) OVER o, min(w) OVER o, last_value(ts) OVER o FROM u WINDOW o AS
               (PARTITION BY k ORDER BY ts NULLS FIRST, w NULLS FIRST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)""",
    "running": f"SELECT *, sum(w) {_OVER} ROWS UNBOUNDED PRECEDING) FROM u",
    "range": """SELECT *, count(w) OVER o, max(w) OVER o FROM u WINDOW o AS (PARTITION BY k ORDER BY ts NULLS FIRST
                RANGE BETWEEN INTERVAL 2 SECONDS PRECEDING AND INTERVAL 1 SECOND FOLLOWING)""",
    "whole": "SELECT *, count(*) OVER (PARTITION BY k), sum(w) OVER (PARTITION BY k) FROM u",
    "tumbling": f"SELECT {_BUCKET} AS b, k, count(*), sum(w) FROM u WHERE ts IS NOT NULL GROUP BY b, k",
    "hopping": f"""SELECT b, count(*) FROM (SELECT {_BUCKET} AS b FROM u UNION ALL
                   SELECT {_BUCKET} - INTERVAL 2 SECONDS FROM u) WHERE b IS NOT NULL GROUP BY b""",
}

P = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("p", pa.int64())])


def draw_p(rng: random.Random) -> tuple[Any, ...]:
    return rng.choice([None, "a", "b"]), rng.choice([None, *range(12)]), rng.randint(0, 3)


def build_times(c: Circuit) -> None:
    a, b = c.input("a", P), c.input("b", P)
    prices = b.group_by("k", "ts").agg(p="max(p)")
    a.join_asof(prices, "ts", by="k").output("asof")
    a.join_asof(prices, "ts", by="k", direction="forward", tolerance=2, how="inner", strict=True).output("next")
    a.join_range(b, "ts", by="k", below=2, above=1).output("near")
    a.with_columns(until="ts + p").join_between(b, ("ts", "until"), "ts", by="k").output("between")
    a.intersect(b).output("both")
    a.intersect(b, all=True).output("both_all")
    a.except_(b).output("only")
    a.except_(b, all=True).output("only_all")


_PRICES = "(SELECT k, ts, max(p) AS p FROM b GROUP BY k, ts)"
TIMES = {
    "asof": f"""SELECT a.*, q.ts, q.p FROM a LEFT JOIN {_PRICES} AS q ON a.k = q.k AND q.ts =
                (SELECT max(r.ts) FROM b AS r WHERE r.k = a.k AND r.ts <= a.ts)""",
    "next": f"""SELECT a.*, q.ts, q.p FROM a JOIN {_PRICES} AS q ON a.k = q.k AND q.ts <= a.ts + 2 AND q.ts =
                (SELECT min(r.ts) FROM b AS r WHERE r.k = a.k AND r.ts > a.ts)""",
    "near": "SELECT a.*, b.ts, b.p FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - 2 AND a.ts + 1",
    "between": "SELECT a.*, a.ts + a.p, b.ts, b.p FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + a.p",
    "both": "FROM a INTERSECT FROM b",
    "both_all": "FROM a INTERSECT ALL FROM b",
    "only": "FROM a EXCEPT FROM b",
    "only_all": "FROM a EXCEPT ALL FROM b",
}

TRIALS = {
    "joins": Trial(build_joins, JOINS, DRAWS),
    "rows": Trial(build_rows, ROWS, DRAWS),
    "aggregates": Trial(build_aggregates, AGGREGATES, DRAWS),
    "ordered": Trial(build_ordered, ORDERED, DRAWS),
    "times": Trial(build_times, TIMES, {"a": draw_p, "b": draw_p}),
}


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TRIALS)
def test_every_step_equals_a_recomputation(name: str, seed: int) -> None:
    assert run(TRIALS[name], steps=STEPS, seed=seed) == STEPS


def test_the_oracle_sees_a_difference() -> None:
    wrong = Trial(
        lambda c: c.input("t", pa.schema([("a", pa.date32())])).distinct().output("o"),
        {"o": "SELECT a FROM t"},
        {"t": lambda _: (date(2024, 1, 1),)},
    )
    with pytest.raises(AssertionError, match="output o after step"):
        run(wrong, steps=10, seed=0)
