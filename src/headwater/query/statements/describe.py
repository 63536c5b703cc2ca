"""DESCRIBE TABLE, DESCRIBE HISTORY and DESCRIBE DETAIL, in the columns that Spark and Delta give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from headwater.derived.lookup import Lookup
from headwater.lake.table import Table
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.ddl import type_name
from headwater.query.statements.placing import placing
from headwater.sql.statements import DescribeDetail, DescribeHistory, DescribeTable

__all__ = ["describe", "detail", "history"]

_TEXTS = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("us", tz="UTC")
_COLUMNS = pa.schema([("col_name", pa.string()), ("data_type", pa.string()), ("comment", pa.string())])
_ONE_COLUMN = pa.schema([("info_name", pa.string()), ("info_value", pa.string())])
_HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _TIME),
        ("operation", pa.string()),
        ("operationParameters", _TEXTS),
        ("operationMetrics", _TEXTS),
        ("engineInfo", pa.string()),
        ("userMetadata", pa.string()),
    ]
)
_DETAIL = pa.schema(
    [
        ("format", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("location", pa.string()),
        ("createdAt", _TIME),
        ("lastModified", _TIME),
        ("partitionColumns", pa.list_(pa.string())),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", _TEXTS),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", pa.list_(pa.string())),
        ("version", pa.int64()),
        ("numRows", pa.int64()),
        ("numDeletedRows", pa.int64()),
    ]
)


@run.register
@placing
def describe(statement: DescribeTable, session: Session) -> Result:
    table = session.table(statement.table)
    if statement.column is None and not table.exists() and (found := _recorded(session, table.name)) is not None:
        return Result.of(_table(found, _COLUMNS), statement.verb)
    now = table.snapshot
    if statement.column is not None:
        f = now.schema.field(statement.column, now.where)
        facts = [
            ("col_name", statement.column),
            ("data_type", type_name(f.type)),
            ("comment", f.metadata.get("comment")),
        ]
        return Result.of(_table(facts, _ONE_COLUMN), statement.verb)
    rows = [_column(table, name) for name in now.schema.names]
    if now.partition_columns:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [_column(table, name) for name in now.partition_columns]
    if statement.extended:
        detail = table.detail()
        rows += [("", "", ""), ("# Detailed Table Information", "", ""), ("Name", table.name, "")]
        lookup = Lookup(session.lake.environment())
        artefact = lookup.artefact(table.name)
        if artefact is not None:
            rows += [(name, value, "") for name, value in artefact.status().facts()]
        rows += [("Comment", detail["description"], "")] if detail["description"] else []
        rows += [("Location", table.location, ""), ("Provider", "delta", ""), ("Version", str(now.version), "")]
        rows += [(f"Constraint {name}", text, "") for name, text in now.constraints.items()]
        properties = ",".join(f"{k}={v}" for k, v in sorted(now.configuration.items()))
        rows.append(("Table Properties", f"[{properties}]", ""))
    return Result.of(_table(rows, _COLUMNS), statement.verb)


def _recorded(session: Session, name: str) -> list[tuple[str, str, str]] | None:
    """The facts of an artefact that has no table; None if there is none."""
    lookup = Lookup(session.lake.environment())
    artefact = lookup.artefact(name)
    return None if artefact is None else [(what, value, "") for what, value in artefact.status().facts()]


def _column(table: Table, name: str) -> tuple[str, str, str | None]:
    f = table.snapshot.schema.field(name)
    return f.name, type_name(f.type), f.metadata.get("comment")


def _table(rows: list[Any], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


@run.register
@placing
def history(statement: DescribeHistory, session: Session) -> Result:
    entries = session.table(statement.table).history(statement.limit)
    rows = [
        (
            e.version,
            e.timestamp,
            e.operation,
            _texts(e.parameters),
            _texts(e.metrics),
            e.engine,
            e.user_metadata,
        )
        for e in entries
    ]
    return Result.of(_table(rows, _HISTORY), statement.verb)


def _texts(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(k, v if isinstance(v, str) else json.dumps(v)) for k, v in values.items()]


@run.register
@placing
def detail(statement: DescribeDetail, session: Session) -> Result:
    table = session.table(statement.table)
    facts = table.detail()
    created = table.snapshot.state.metadata.created_time
    row = (
        "delta",
        facts["id"],
        facts["name"],
        facts["description"],
        facts["location"],
        None if created is None else datetime.fromtimestamp(created / 1000, UTC),
        facts["last_modified"],
        facts["partition_columns"],
        facts["num_files"],
        facts["size_bytes"],
        _texts(facts["properties"]),
        facts["min_reader_version"],
        facts["min_writer_version"],
        facts["features"],
        facts["version"],
        facts["num_rows"],
        facts["num_deleted_rows"],
    )
    return Result.of(_table([row], _DETAIL), statement.verb)
