"""Nexmark's 23 queries, from Spark's plans, as circuits: under new and withdrawn events each round equals DuckDB's answer.

Those with windows of time once more, from our own reader's plans.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.sql.analyzed.spoken import queries, stored

from headwater.base.change import WEIGHT
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build, check, determined
from headwater.sql.analyzed import plan_of
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.plan import Plan
from headwater.sql.query import parse_query
from headwater.sql.udfs import install
from headwater.testing.circuits import Integral
from headwater.testing.nexmark import SCHEMAS, batches

_NAMES = [n for n in queries() if n.startswith("nexmark")]
_FIRST, _MORE, _ROUNDS = 1_500, 200, 3
Tables = dict[str, pa.Table]


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column(WEIGHT, pa.array([weight] * rows.num_rows, pa.int64()))


def _answer(sql: str, tables: Tables) -> Counter[tuple[Any, ...]]:
    found = Integral()
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            con.register(name, table)
        install(con, sql)
        found.add(_weighted(con.sql(sql).to_arrow_table(), 1))
    return found.rows


def _events(first: int, count: int) -> Tables:
    return {n: pa.Table.from_batches([b]) for n, b in next(batches(3, batch_events=count, first_event=first)).items()}


@pytest.mark.long
@pytest.mark.parametrize("name", _NAMES)
def test_a_view_of_a_query_follows_the_stream(name: str) -> None:
    _follows(name, plan_of(stored(name)))


@pytest.mark.long
@pytest.mark.parametrize("name", [f"nexmark_q{n}" for n in (5, 7, 8, 11, 12)])
def test_a_view_with_windows_of_time_needs_no_spark(name: str) -> None:
    _follows(name, parse_query(queries()[name][0], lambda table, *_: SCHEMAS[table]))


def _follows(name: str, plan: Plan) -> None:
    check(plan, queries()[name][0])
    circuit = Circuit(name, shards=1 + len(name) % 2)
    build(circuit, plan, {n: circuit.input(n, s) for n, s in SCHEMAS.items()}).output("view")
    sql = to_duckdb(determined(plan))
    rng = random.Random(name)
    there, integral = _events(0, _FIRST), Integral()
    integral.add(circuit.step({n: _weighted(t, 1) for n, t in there.items()})["view"].to_arrow())
    assert integral.rows == _answer(sql, there)
    for number in range(_ROUNDS):
        new, change = _events(_FIRST + number * _MORE, _MORE), {}
        for table, rows in there.items():
            gone = set(rng.sample(range(rows.num_rows), rows.num_rows // 50))
            old = rows.take(pa.array(sorted(gone), pa.int64()))
            change[table] = pa.concat_tables([_weighted(new[table], 1), _weighted(old, -1)])
            kept = pa.array([i for i in range(rows.num_rows) if i not in gone], pa.int64())
            there[table] = pa.concat_tables([rows.take(kept), new[table]])
        integral.add(circuit.step(change)["view"].to_arrow())
        assert integral.rows == _answer(sql, there)
