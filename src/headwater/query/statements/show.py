"""SHOW TABLES, COLUMNS, TBLPROPERTIES, CREATE TABLE and FUNCTIONS."""

from __future__ import annotations

import re

import pyarrow as pa

from headwater.derived import kinds
from headwater.lake.published import kind_of
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.ddl import create_statement
from headwater.query.statements.placing import placing
from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS
from headwater.sql.statements import (
    ShowColumns,
    ShowCreateTable,
    ShowFunctions,
    ShowProperties,
    ShowTables,
)

__all__ = ["columns", "create_table", "fits", "functions", "properties", "tables"]

_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def fits(name: str, pattern: str | None) -> bool:
    """Whether a name fits a pattern of Spark: ``*`` is any text, ``|`` an alternative, case does not count.

    >>> fits("Orders", "ord*|cards"), fits("orders", "ord")
    (True, False)
    """
    if pattern is None:
        return True
    parts = (".*".join(map(re.escape, part.strip().split("*"))) for part in pattern.split("|"))
    return any(re.fullmatch(part, name, re.IGNORECASE | re.DOTALL) for part in parts)


@run.register
@placing
def tables(statement: ShowTables, session: Session) -> Result:
    # In the columns of Spark, which lists views here too; with these columns nobody could tell them apart: SHOW VIEWS
    # lists them.
    rows = [name.rpartition(".") for name in session.lake.tables()]
    if statement.within is not None:
        rows = [row for row in rows if row[0].lower() == statement.within.lower()]
    rows = [row for row in rows if fits(row[2], statement.pattern)]
    found = {
        "namespace": pa.array([namespace for namespace, _, _ in rows], pa.string()),
        "tableName": pa.array([name for _, _, name in rows], pa.string()),
        "isTemporary": pa.array([False] * len(rows), pa.bool_()),
    }
    return Result.of(pa.table(found), statement.verb)


@run.register
@placing
def columns(statement: ShowColumns, session: Session) -> Result:
    names = session.table(statement.table).snapshot.schema.names
    return Result.of(pa.table({"col_name": names}), statement.verb)


@run.register
@placing
def properties(statement: ShowProperties, session: Session) -> Result:
    table = session.table(statement.table)
    found = dict(sorted(table.snapshot.configuration.items()))
    if statement.key is not None:
        missing = f"Table {statement.table} does not have property: {statement.key}"
        found = {statement.key: found.get(statement.key, missing)}
    rows = {"key": pa.array(list(found), pa.string()), "value": pa.array(list(found.values()), pa.string())}
    return Result.of(pa.table(rows), statement.verb)


@run.register
@placing
def create_table(statement: ShowCreateTable, session: Session) -> Result:
    environment, table = session.lake.environment(), session.table(statement.table)
    recorded = None if table.exists() else environment.recorded().get(table.name)
    if recorded is not None:
        text = kinds.kind(recorded).open(table.name, environment).create_statement()
        return Result.of(pa.table({"createtab_stmt": [text]}), statement.verb)
    now = table.snapshot
    kind = kind_of(now)
    if kind is None:
        text = create_statement(statement.table, now)
    else:
        text = kinds.kind(kind).open(statement.table, environment, now).create_statement()
    return Result.of(pa.table({"createtab_stmt": [text]}), statement.verb)


@run.register
@placing
def functions(statement: ShowFunctions, session: Session) -> Result:  # noqa: ARG001
    names = sorted({n for n in (*FUNCTIONS, *AGGREGATES) if _NAME.fullmatch(n) and fits(n, statement.pattern)})
    return Result.of(pa.table({"function": pa.array(names, pa.string())}), statement.verb)
