"""TPC-H's 22 queries as circuits, under streams of new and old orders: each round equals DuckDB's answer."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.sql.oracle import plan_of, sections
from tests.sql.tpch import tables

from headwater.base.change import WEIGHT
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build, check, determined
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.udfs import install
from headwater.testing.circuits import Integral

QUERIES = sections("tpch.sql")
REFRESHED = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column(WEIGHT, pa.array([weight] * rows.num_rows, pa.int64()))


def _of_orders(keys: set[int]) -> dict[str, pa.Table]:
    wanted = pa.array(sorted(keys), pa.int64())
    return {name: tables()[name].filter(pc.is_in(tables()[name][key], wanted)) for name, key in REFRESHED.items()}


def _answer(sql: str, orders: set[int]) -> Counter[tuple[Any, ...]]:
    found = Integral()
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        for name, table in {**tables(), **_of_orders(orders)}.items():
            con.register(name, table)
        install(con, sql)
        found.add(_weighted(con.sql(sql).to_arrow_table(), 1))
    return found.rows


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_a_view_of_a_query_follows_the_refresh_streams(name: str) -> None:
    plan = plan_of(QUERIES[name], tables())
    check(plan, QUERIES[name])
    circuit = Circuit(name, shards=1 + len(name) % 2)
    build(circuit, plan, {n: circuit.input(n, t.schema) for n, t in tables().items()}).output("view")
    sql = to_duckdb(determined(plan))
    rng = random.Random(name)
    every = set(tables()["orders"]["o_orderkey"].to_pylist())
    there = set(rng.sample(sorted(every), 150))
    integral = Integral()
    first = {n: t for n, t in tables().items() if n not in REFRESHED} | _of_orders(there)
    integral.add(circuit.step({n: _weighted(t, 1) for n, t in first.items()})["view"].to_arrow())
    assert integral.rows == _answer(sql, there)
    for _ in range(4):
        new = set(rng.sample(sorted(every - there), 8))
        old = set(rng.sample(sorted(there), 12))
        inserted, deleted = _of_orders(new), _of_orders(old)
        change = {n: pa.concat_tables([_weighted(inserted[n], 1), _weighted(deleted[n], -1)]) for n in REFRESHED}
        integral.add(circuit.step(change)["view"].to_arrow())
        there = (there | new) - old
        assert integral.rows == _answer(sql, there)
