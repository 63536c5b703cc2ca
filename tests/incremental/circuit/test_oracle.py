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

STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "40"))
SEEDS = range(int(os.environ.get("HEADWATER_TEST_SEEDS", "2")))

T = pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.int32()), ("d", pa.decimal128(12, 2))])
U = pa.schema([("k", pa.int64()), ("w", pa.int64()), ("ts", pa.timestamp("us"))])
_WORDS = [None, "", "a", "b", "exactly 12 by", "a string that does not fit a slot", "ünïcödé ✓ ünïcödé"]
_EPOCH = datetime(2024, 1, 1)  # noqa: DTZ001


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
    t.group_by("k").agg(x="sum(CAST(v AS BIGINT) * 2) FILTER (WHERE v > 0)", y="CAST(max(v) AS BIGINT) - min(v) + count(*)").output("mixed")
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

TRIALS = {
    "joins": Trial(build_joins, JOINS, DRAWS),
    "rows": Trial(build_rows, ROWS, DRAWS),
    "aggregates": Trial(build_aggregates, AGGREGATES, DRAWS),
}


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
