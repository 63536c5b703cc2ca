"""TPC-H's queries after all rules: the same rows, no subquery, and no cross join but with a single row."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from tests.sql.oracle import sections
from tests.sql.tpch import tables

from headwater.sql.plan import Aggregate, Filter, Join, Plan, Project
from headwater.sql.rewriting import decorrelated, prepared

from .oracle import connected, read, rows, subqueries

_QUERIES = sections("tpch.sql")


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with connected(tables()) as found:
        yield found


@pytest.mark.parametrize("name", _QUERIES)
def test_the_rows_stay_the_same(name: str, con: duckdb.DuckDBPyConnection) -> None:
    plan = read(_QUERIES[name], tables())
    expected = rows(plan, con)
    for rule in (decorrelated, prepared):
        changed = rule(plan)
        assert not subqueries(changed)
        assert changed.output == plan.output or changed.schema.names == plan.schema.names
        assert rows(changed, con) == expected


def _is_one_row(plan: Plan) -> bool:
    while isinstance(plan, Project | Filter):
        plan = plan.child
    return isinstance(plan, Aggregate) and not plan.keys


@pytest.mark.parametrize("name", _QUERIES)
def test_relations_are_joined_along_equalities(name: str) -> None:
    for node in prepared(read(_QUERIES[name], tables())).walk():
        if not isinstance(node, Join) or _is_one_row(node.right) or _is_one_row(node.left):
            continue
        assert node.kind != "cross"
        assert node.condition is not None and " = " in node.line()
