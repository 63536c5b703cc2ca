"""Queries, what they would do, and what columns they have."""

from __future__ import annotations

import pyarrow as pa

from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.placing import placing
from headwater.sql.statements import DescribeQuery, Explain, Query
from headwater.sql.types import name_of

__all__ = ["describe_query", "explain", "query"]


@run.register
@placing
def query(statement: Query, session: Session) -> Result:
    return session.query(statement.query, statement.verb)


@run.register
@placing
def explain(statement: Explain, session: Session) -> Result:
    return Result.of(pa.table({"plan": session.explain(statement.query, statement.mode).splitlines()}), statement.verb)


@run.register
@placing
def describe_query(statement: DescribeQuery, session: Session) -> Result:
    schema = session.schema(statement.query)
    columns = {
        "col_name": schema.names,
        "data_type": [name_of(t).replace("`", "") for t in schema.types],
        "comment": pa.nulls(len(schema), pa.string()),
    }
    return Result.of(pa.table(columns, schema=_SCHEMA), statement.verb)


_SCHEMA = pa.schema([("col_name", pa.string()), ("data_type", pa.string()), ("comment", pa.string())])
