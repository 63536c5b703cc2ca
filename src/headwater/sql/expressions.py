"""Spark SQL expressions, answered by DuckDB with Spark's rows.

The problem: users write predicates and values in Spark SQL (``t.delete("amount > 5 AND country IN ('DE','FR')")``), and
DuckDB evaluates them over Arrow and Parquet. Passed through as they are, one text in eight means something else there.
The idea: a text is parsed, resolved and typed as ANSI Spark would (`reader.resolve`), every coercion is made explicit,
and only what is on an allow list is written out again in DuckDB's SQL (`duckdb_form`), rewritten where the engines
differ.

Invariants:
1. An expression that parses gives the rows Spark gives, or stops with an `ExpressionError` that says why: where Spark
   raises (overflow, division by zero, a bad cast), so does DuckDB.
2. Nothing is guessed: an unknown function, type pair or grouping is refused with a hint.
3. An expression is one row's business, and deterministic: no subqueries, aggregates, windows, clocks or dice.

>>> import pyarrow as pa
>>> schema = pa.schema([("amount", pa.int32()), ("country", pa.string())])
>>> e = parse("amount * 2 > 10 AND country = 'DE'", schema=schema)
>>> e.dtype, sorted(e.columns)
(DataType(bool), [(None, 'amount'), (None, 'country')])
>>> e.conjuncts()
[Conjunct(column='country', op='=', values=('DE',), alias=None)]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.sql.casts import cast
from headwater.sql.conjuncts import Conjunct
from headwater.sql.evaluation import Expression, evaluate, failure, map_failure
from headwater.sql.fragment import Fragment
from headwater.sql.quoting import literal_sql, quote_identifier
from headwater.sql.reader.names import Scope
from headwater.sql.reader.resolve import resolve
from headwater.sql.types import BOOLEAN, NULL, name_of

__all__ = [
    "Conjunct",
    "Expression",
    "evaluate",
    "failure",
    "literal_sql",
    "map_failure",
    "parse",
    "parse_condition",
    "quote_identifier",
]

Schemas: TypeAlias = "pa.Schema | Mapping[str, pa.Schema]"


def parse(text: str | Fragment, *, schema: Schemas) -> Expression:
    """Read one Spark SQL expression over a schema, or over several by alias.

    A `Fragment` brings the values of its parameters, and errors then point into the statement it stands in.

    >>> parse("cast(price as int)", schema=pa.schema([("price", pa.float64())])).dtype
    DataType(int32)
    """
    schemas: dict[str | None, pa.Schema] = {}
    if isinstance(schema, pa.Schema):
        schemas[None] = schema
    else:
        schemas.update(schema)
    piece = Fragment.of(text)
    with piece.placed():
        expression = Expression(piece.text, resolve(piece.text, Scope(piece.text, schemas), piece.parameters))
        assert expression.duckdb, "what cannot be written for DuckDB is refused here, not at the first use"
    return expression


def parse_condition(text: str | Fragment, *, schema: Schemas) -> Expression:
    """Read an expression that has to be a boolean: WHERE, ON, CHECK.

    >>> parse_condition("price > 1", schema=pa.schema([("price", pa.float64())])).dtype
    DataType(bool)
    """
    expression = parse(text, schema=schema)
    if expression.dtype == NULL:
        return Expression(expression.text, cast(expression.node, BOOLEAN))
    if expression.dtype != BOOLEAN:
        with Fragment.of(text).placed():
            raise ExpressionError.not_boolean(expression.text, name_of(expression.dtype))
    return expression
