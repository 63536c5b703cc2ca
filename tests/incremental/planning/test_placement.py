"""Rows stay where a part of a key has placed them: how many exchanges and parts plans have, and the answers on several shards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.incremental.planning.views import plan_of

from headwater.incremental.circuit import durable
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.circuit.parts import SHARDS, cut
from headwater.incremental.dataflow.dataflow import Dataflow
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.dataflow.vertex import Exchange
from headwater.incremental.planning import build
from headwater.incremental.store import Store
from headwater.testing.views import SCHEMAS, run_view

PLANS = {
    "join": ("SELECT t.k, t.e, u.n FROM t JOIN u ON t.k = u.k", 2),
    "grouped by the key of a join": ("SELECT t.k, sum(u.n) AS total FROM t JOIN u ON t.k = u.k GROUP BY t.k", 2),
    "grouped by more than the key of a join": (
        "SELECT t.k, t.e, max(u.n) AS top FROM t JOIN u ON t.k = u.k GROUP BY t.e, t.k",
        2,
    ),
    "joins by one key in two orders": (
        "SELECT t.d, t.k, sum(u.n) AS total FROM t JOIN u ON t.k = u.k AND t.d = u.d JOIN u x ON t.d = x.d AND t.k = x.k GROUP BY t.d, t.k",
        3,
    ),
    "a join by more than the key of another": (
        "SELECT t.k, t.e, sum(w.n) AS total FROM t JOIN u ON t.k = u.k JOIN w ON t.e = w.e AND t.k = w.k GROUP BY t.k, t.e",
        3,
    ),
    "outer join": ("SELECT t.k, t.e, u.n FROM t LEFT JOIN u ON t.k = u.k", 3),
    "outer join, grouped": ("SELECT t.k, count(u.n) AS n FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k", 3),
    "outer join with a condition": (
        "SELECT t.k, t.e, count(u.n) AS n FROM t LEFT JOIN u ON t.k = u.k AND t.d < u.d GROUP BY t.k, t.e",
        2,
    ),
    "semi-join": ("SELECT k, n FROM u WHERE k IN (SELECT k FROM t)", 2),
    "anti-join": ("SELECT k, n FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = u.k)", 2),
    "distinct rows, grouped": ("SELECT e, k, count(*) AS n FROM (SELECT DISTINCT k, e FROM t) GROUP BY e, k", 1),
    "window": (
        "SELECT k, e, n, rank() OVER (PARTITION BY e, k ORDER BY n) AS r FROM (SELECT t.k, t.e, u.n FROM t JOIN u ON t.k = u.k)",
        2,
    ),
    "union of what is grouped by one key": (
        "SELECT k, sum(n) AS n FROM (SELECT k, sum(n) AS n FROM u GROUP BY k UNION ALL SELECT k, max(n) FROM w GROUP BY k) GROUP BY k",
        2,
    ),
}
MOVED = {
    # The nulls of the side that is missing lie where the other side's key is, so they are not together.
    "the other side of an outer join": ("SELECT u.k, count(*) AS n FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.k", 2),
    "full join": ("SELECT t.k AS a, u.k AS b, count(*) AS n FROM t FULL JOIN u ON t.k = u.k GROUP BY t.k, u.k", 2),
    "fewer columns than those that placed it": (
        "SELECT k, max(n) AS top FROM (SELECT k, e, sum(n) AS n FROM w GROUP BY k, e) GROUP BY k",
        2,
    ),
    "all rows, which lie in one place": (
        "SELECT k, count(*) AS n FROM (SELECT max(k) AS k FROM t UNION ALL SELECT max(k) FROM u) GROUP BY k",
        2,
    ),
}


def built(sql: str, shards: int) -> Circuit:
    circuit = Circuit("view", shards=shards)
    plan = plan_of(sql)
    build(circuit, plan, {name: circuit.input(name, schema) for name, schema in SCHEMAS.items()}).output("view")
    return circuit


@pytest.mark.parametrize("name", sorted(PLANS))
def test_plans_are_one_part(name: str) -> None:
    sql, exchanges = PLANS[name]
    circuit = built(sql, SHARDS)
    assert sum(isinstance(v.node, Exchange) for v in circuit.vertices) == exchanges
    assert len(cut(circuit).parts) == 1
    assert circuit.outputs["view"].placed_by, "equal rows are together, so no job has to bring them together"


@pytest.mark.parametrize("name", sorted(MOVED))
def test_rows_move_where_equal_keys_are_apart(name: str) -> None:
    sql, parts = MOVED[name]
    assert len(cut(built(sql, SHARDS)).parts) == parts


@pytest.mark.parametrize("name", sorted({**PLANS, **MOVED}))
def test_state_has_one_name_on_any_number_of_shards(name: str) -> None:
    sql, _ = {**PLANS, **MOVED}[name]
    alone, several = built(sql, 1), built(sql, SHARDS)
    assert set(fingerprints(alone)) == set(fingerprints(several))
    assert [v.placed_by for v in alone.vertices] == [
        v.placed_by for v in several.vertices if not isinstance(v.node, Exchange)
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({**PLANS, **MOVED}))
def test_answers_are_the_same_on_any_number_of_shards(name: str) -> None:
    sql, _ = {**PLANS, **MOVED}[name]
    assert run_view(sql, seed=len(name), steps=10, shards=(1, 2, 5), restarts=0.4) == 10


def test_state_that_was_placed_by_other_rules_is_divided_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT t.k, t.e, count(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.e, t.k"
    ones = pa.table({"k": pa.array(range(40), pa.int32())})
    rows = {
        name: pa.table(
            [ones["k"] if f.name == "k" else pa.nulls(40, f.type) for f in SCHEMAS[name]], schema=SCHEMAS[name]
        )
        for name in ("t", "u")
    }
    with monkeypatch.context() as before:
        before.setattr(Dataflow, "placement", lambda _self, _vertex, keys: tuple(keys))
        before.setattr(Dataflow, "meeting", lambda _self, _left, mine, _right, theirs: (tuple(mine), tuple(theirs)))
        before.setattr(durable, "PLACEMENT", 1)
        with Store(tmp_path) as store:
            circuit = built(sql, 3)
            circuit.step(rows)
            circuit.checkpoint(store)
    with Store(tmp_path) as store:
        again = built(sql, 3)
        again.restore(store)
        found = again.step({"t": rows["t"]})["view"].to_arrow().to_pylist()
    assert sorted((r["k"], r["n"], r["_weight"]) for r in found) == sorted(
        one for k in range(40) for one in ((k, 1, -1), (k, 2, 1))
    )
