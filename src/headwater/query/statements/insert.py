"""INSERT: the rows of a query, streamed into files and then committed.

Columns are matched by position, or by name where the statement says so; types by Spark's store assignment (see
`assigning`). A query that reads the table it writes sees the version before: data files never change, and the commit
comes last. Where such an INSERT replaces rows, another writer's commit in between is a conflict, because the new rows
do not know of it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.base.errors import SchemaError
from headwater.base.schema import spark_type
from headwater.lake.snapshot import Snapshot
from headwater.lake.transaction import Committed
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.answers import counts
from headwater.query.statements.assigning import cast_for, quoted
from headwater.query.statements.placing import placing
from headwater.sql.fragment import Fragment, joined
from headwater.sql.statements import Insert
from headwater.sql.tokens import tokenize

__all__ = ["insert", "mentions", "renamed"]


@run.register
@placing
def insert(statement: Insert, session: Session) -> Result:
    table = session.table(statement.table)
    base = table.snapshot
    data = _rows(statement, session, base)
    done = _write(statement, table, data, base)
    rows = done.metrics.get("numOutputRows", 0)
    return counts(statement.verb, {"num_affected_rows": rows, "num_inserted_rows": rows}, done.version)


def _write(statement: Insert, table: Any, data: Any, base: Snapshot) -> Committed:
    mode = "merge" if statement.evolve else "strict"
    if statement.mode == "append":
        done: Committed = table.append(data, schema_mode=mode)
        return done
    where = statement.where if statement.mode == "replace where" else _partition_condition(statement, base)
    if_version = base.version if mentions(statement.query, statement.table) else None
    replaced: Committed = table.overwrite(data, where=where, schema_mode=mode, if_version=if_version)
    return replaced


def _rows(statement: Insert, session: Session, base: Snapshot) -> Any:
    """The rows under the names of the table's columns."""
    fixed = {base.schema.field(c, base.where).name: v for c, v in statement.partition.items() if v is not None}
    pieces: list[str | Fragment] = []
    for name, value in fixed.items():
        pieces += [", ", _cast(value, base, name), f" AS {quoted(name)}"]
    query = (
        joined("SELECT `values`.*", *pieces, " FROM (", statement.query, ") AS `values`") if fixed else statement.query
    )
    relations = {statement.table: base}
    frame = session.data(query, relations) if session.engine.name == "spark" else None
    given = session.schema(query, relations) if frame is None else _frame_schema(frame)
    own = given.names[: len(given) - len(fixed)]
    wanted = own if statement.by_name else _targets(statement, base, fixed)
    if len(own) != len(wanted):
        wrong = SchemaError.column_count(len(own), wanted)
        raise wrong.placed_at(statement.text, statement.query.place(0))
    names = [*wanted, *fixed]
    casts = _casts(statement, base, names, given, inside=frame is not None)
    if frame is not None:
        return _cast_frame(frame.toDF(*names), casts)
    return renamed(session.data(_cast_query(query, casts), relations), names)


def _casts(statement: Insert, base: Snapshot, names: list[str], given: pa.Schema, *, inside: bool) -> list[str | None]:
    """The types that the columns have to be cast to, None for those that go as they are."""
    try:
        return [
            cast_for(name, dtype, base, by_name=statement.by_name, evolve=statement.evolve, inside=inside)
            for name, dtype in zip(names, given.types, strict=True)
        ]
    except SchemaError as error:
        raise error.placed_at(statement.text, statement.query.place(0)) from None


def _cast_query(query: Fragment, casts: list[str | None]) -> Fragment:
    if not any(casts):
        return query
    columns = [f"`c{i}`" for i in range(len(casts))]
    cast = [c if kind is None else f"CAST({c} AS {kind}) AS {c}" for c, kind in zip(columns, casts, strict=True)]
    return joined(f"SELECT {', '.join(cast)} FROM (", query, f") AS `values`({', '.join(columns)})")


def _frame_schema(frame: Any) -> pa.Schema:
    from headwater.lake.spark.types import arrow_schema

    return arrow_schema(frame.schema)


def _cast_frame(frame: Any, casts: list[str | None]) -> Any:
    if not any(casts):
        return frame
    columns = [frame[quoted(name)] for name in frame.columns]
    return frame.select(
        *[
            c if kind is None else c.cast(kind).alias(name)
            for c, kind, name in zip(columns, casts, frame.columns, strict=True)
        ]
    )


def _targets(statement: Insert, base: Snapshot, fixed: dict[str, Fragment]) -> list[str]:
    """The columns that the query gives, in its order."""
    if statement.columns is not None:
        return [base.schema.field(c, base.where).name for c in statement.columns]
    # Partition columns whose value the query gives come last, in the order in which PARTITION names them.
    dynamic = [base.schema.field(c, base.where).name for c, v in statement.partition.items() if v is None]
    return [n for n in base.schema.names if n not in fixed and n not in dynamic] + dynamic


def _cast(value: Fragment, base: Snapshot, name: str) -> Fragment:
    return joined("CAST((", value, f") AS {spark_type(base.schema.field(name).arrow.type)})")


def _partition_condition(statement: Insert, base: Snapshot) -> Fragment | None:
    """The rows that INSERT OVERWRITE … PARTITION (day = '…') replaces."""
    parts: list[str | Fragment] = []
    for column, value in statement.partition.items():
        name = base.schema.field(column, base.where).name
        if name not in base.partition_columns:
            raise SchemaError.bad_partition(name, "the table is not partitioned by it")
        if value is not None:
            parts += [" AND " if parts else "", f"({quoted(name)} <=> ", _cast(value, base, name), ")"]
    return joined(*parts) if parts else None


def renamed(data: pa.RecordBatchReader, names: list[str]) -> pa.RecordBatchReader:
    """The same rows under other names, by position."""
    schema = pa.schema([f.with_name(n) for f, n in zip(data.schema, names, strict=True)])
    batches = (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in data)
    return pa.RecordBatchReader.from_batches(schema, batches)


def mentions(query: Fragment, table: str) -> bool:
    """Whether a query may read a table: its name stands there, in one case or another.

    >>> mentions(Fragment("SELECT * FROM Sales.`orders`"), "sales.orders"), mentions(Fragment("SELECT 't'"), "t")
    (True, False)
    """
    path = ""
    for token in (*tokenize(query.text), None):
        part = str(token.value) if token is not None and token.kind in ("word", "name") else ""
        if part and (not path or path.endswith(".")):
            path += part.lower()
        elif token is not None and token.text == "." and path:
            path += "."
        else:
            if path == table.lower():
                return True
            path = part.lower()
    return path == table.lower()
