"""CREATE TABLE, CREATE TABLE AS, and DROP TABLE."""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.schema import Schema
from headwater.lake.conform import is_spark_frame
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.answers import counts, dropped, nothing, version_only
from headwater.query.statements.insert import mentions
from headwater.query.statements.placing import placing
from headwater.sql.select_items import check_names
from headwater.sql.statements import AttachTable, CreateTable, CreateTableAs, DropTable

__all__ = ["attach", "create", "create_as", "drop"]


@run.register
@placing
def create(statement: CreateTable, session: Session) -> Result:
    table = session.table(statement.table)
    table.create(
        Schema(statement.fields),
        partition_by=statement.partitioned_by,
        properties=statement.properties,
        constraints=statement.constraints,
        description=statement.comment,
        mode=statement.mode,
    )
    return version_only(statement.verb, table.version)


@run.register
@placing
def create_as(statement: CreateTableAs, session: Session) -> Result:
    table = session.table(statement.table)
    there = table.exists()
    if there and statement.mode == "ignore":
        return counts(statement.verb, {"num_affected_rows": 0, "num_inserted_rows": 0}, table.version)
    if there and statement.mode == "error":
        raise InputError.already_exists(statement.table, table.location)
    base = table.snapshot if there else None
    own = base is not None and mentions(statement.query, statement.table)
    pins = {statement.table: base} if base is not None else {}
    data = session.data(statement.query, pins) if not there and statement.comment is None else None
    rows = data if data is not None else session.rows(statement.query, pins)
    with statement.query.placed():
        check_names(rows.columns if is_spark_frame(rows) else rows.schema.names, statement.query.text)
    if is_spark_frame(data):
        table.write(data, mode="error", partition_by=statement.partitioned_by, properties=statement.properties)
    else:
        table.create(
            pa.schema([f.with_nullable(True) for f in rows.schema]),
            partition_by=statement.partitioned_by,
            properties=statement.properties,
            description=statement.comment,
            # A table that another writer made meanwhile is not replaced unless the statement says so.
            mode="replace" if statement.mode == "replace" else "error",
            data=rows,
            if_version=base.version if base is not None and own else None,
        )
    made = table.history(1)[0].metrics.get("numOutputRows", 0)
    return counts(statement.verb, {"num_affected_rows": made, "num_inserted_rows": made}, table.version)


@run.register
@placing
def attach(statement: AttachTable, session: Session) -> Result:
    table = session.table(statement.table)
    if not (statement.mode == "ignore" and table.exists()):
        table = session.lake.attach(statement.table, statement.location)
    return version_only(statement.verb, table.version)


@run.register
@placing
def drop(statement: DropTable, session: Session) -> Result:
    if not (statement.if_exists and statement.table not in session.lake):
        return dropped(statement.verb, session.lake.drop(statement.table, cascade=statement.cascade))
    return nothing(statement.verb)
