"""A plan's rows in DuckDB, before and after a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb
import pyarrow as pa

from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.plan import Plan
from headwater.sql.query import parse_query
from headwater.sql.udfs import install

Rule = Callable[[Plan], Plan]
Row = tuple[object, ...]


def read(text: str, tables: Mapping[str, pa.Table]) -> Plan:
    return parse_query(text, lambda name, *_: tables[name].schema)


def rows(plan: Plan, con: duckdb.DuckDBPyConnection) -> list[Row]:
    sql = to_duckdb(plan)
    install(con, sql)
    return sorted((tuple(r) for r in con.sql(sql).fetchall()), key=repr)


def connected(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute("SET TimeZone = 'UTC'")
    for name, table in tables.items():
        con.register(name, table)
    return con


def subqueries(plan: Plan) -> int:
    return sum(len(list(node.subqueries())) for node in plan.walk())


def differences(
    text: str,
    tables: Mapping[str, pa.Table],
    rules: Mapping[str, Rule],
    con: duckdb.DuckDBPyConnection | None = None,
) -> list[str]:
    """What the rules change in a query's rows or columns: nothing, one hopes."""
    if con is None:
        with connected(tables) as mine:
            return differences(text, tables, rules, mine)
    plan = read(text, tables)
    out = []
    expected = rows(plan, con)
    for name, rule in rules.items():
        changed = rule(plan)
        if subqueries(changed):
            out.append(f"{name}: {text}\n  a subquery is left:\n{changed.dump()}")
        elif (changed.schema.names, changed.schema.types) != (plan.schema.names, plan.schema.types):
            out.append(f"{name}: {text}\n  {plan.schema}\n  {changed.schema}")
        elif (found := rows(changed, con)) != expected:
            out.append(f"{name}: {text}\n  wanted {expected}\n  got    {found}\n{changed.dump()}")
    return out
