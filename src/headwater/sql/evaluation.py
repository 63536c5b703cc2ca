"""Typed expressions, computed by DuckDB with Spark's rows.

The tree is written in DuckDB's SQL (`duckdb_form`) and evaluated over Arrow. This is below the reading of texts:
constants are folded by it while a text is read.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.sql.casts import ERROR_MARK
from headwater.sql.conjuncts import Conjunct, conjuncts_of, equalities_of
from headwater.sql.duckdb_form import render
from headwater.sql.nodes import Column, Node, Refused, walk
from headwater.sql.quoting import quote_identifier
from headwater.sql.udfs import install

if TYPE_CHECKING:
    import duckdb

__all__ = ["Expression", "evaluate", "failure", "map_failure", "run_sql"]


@dataclass(frozen=True)
class Expression:
    """A parsed, typed expression. Build it with `headwater.sql.expressions.parse`."""

    text: str
    node: Node

    @property
    def dtype(self) -> pa.DataType:
        """Spark's type of the result, as an Arrow type."""
        return self.node.dtype

    @cached_property
    def columns(self) -> frozenset[tuple[str | None, str]]:
        """The (alias, column) pairs it reads; the alias is None when `parse` was given one schema."""
        return frozenset((n.alias, n.path[0]) for n in walk(self.node) if isinstance(n, Column))

    @property
    def fallible(self) -> bool:
        """May a row stop the evaluation: overflow, division by zero, a bad cast?"""
        return self.node.fallible

    @cached_property
    def duckdb(self) -> str:
        """DuckDB's SQL, with columns called by the aliases of `parse`.

        When `fallible`, rows that must not be looked at (deleted ones) have to be gone before it is evaluated: DuckDB
        tries the conditions of one WHERE in any order, so write ``CASE WHEN <guard> THEN <this> END``.
        """
        return self.duckdb_for({})

    def duckdb_for(self, relations: Mapping[str | None, str]) -> str:
        """DuckDB's SQL where each alias (None for a single schema) is the relation of that name.

        >>> from headwater.sql.expressions import parse
        >>> parse("id > 3", schema=pa.schema([("id", pa.int32())])).duckdb_for({None: "target"})
        '("target"."id" > 3)'
        """
        try:
            return render(self.node, relations)
        except Refused as refused:
            raise ExpressionError.not_known(self.text, refused.what, refused.hint) from None
        except RecursionError:
            raise ExpressionError.not_known(
                self.text, "an expression nested this deep", "split it in several"
            ) from None

    def conjuncts(self) -> list[Conjunct]:
        """What it demands of single columns, for skipping files: see `headwater.sql.conjuncts`."""
        return conjuncts_of(self.node)

    def equalities(self, left_alias: str, right_alias: str) -> list[tuple[str, str]]:
        """The column pairs it sets equal at the top of its AND: the keys of a merge.

        >>> from headwater.sql.expressions import parse
        >>> one = pa.schema([("id", pa.int64())])
        >>> parse("t.id = s.id", schema={"t": one, "s": one}).equalities("t", "s")
        [('id', 'id')]
        """
        return equalities_of(self.node, left_alias, right_alias)


_numbers = itertools.count()
_lock = threading.Lock()


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})


def evaluate(
    expression: Expression, table: pa.Table | pa.RecordBatch, con: duckdb.DuckDBPyConnection | None = None
) -> pa.ChunkedArray:
    """One value a row, in the table's order; for CHECK rules, generated columns and small tables.

    >>> from headwater.sql.expressions import parse
    >>> data = pa.table({"a": pa.array([1, None, 3], pa.int32())})
    >>> evaluate(parse("a + 1", schema=data.schema), data).to_pylist()
    [2, None, 4]
    """
    import duckdb

    aliases = {alias for alias, _ in expression.columns}
    if len(aliases) > 1:
        hint = "evaluate it in a query that joins them, through duckdb_for()"
        raise ExpressionError.not_known(expression.text, "evaluating over several tables", hint)
    whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    names = sorted(name for _, name in expression.columns)
    # A table without columns has no rows for DuckDB, so there is always one.
    read = whole.select(names) if names else pa.table({"row": pa.nulls(whole.num_rows, pa.int8())})
    relation = f"headwater_rows_{next(_numbers)}"
    sql = expression.duckdb_for(dict.fromkeys(aliases, relation))
    with _lock:
        database = con if con is not None else _database()
        install(database, sql)
        cursor = database.cursor()
    try:
        cursor.register(relation, read)
        column = cursor.sql(f"SELECT {sql} AS value FROM {quote_identifier(relation)}").to_arrow_table().column(0)
    except duckdb.Error as error:
        raise failure(expression.text, error) from None
    finally:
        cursor.close()
    return column if column.type == expression.dtype else column.cast(expression.dtype)


def run_sql(sql: str, tables: Mapping[str, pa.Table], text: str) -> pa.Table:
    """The rows of a query of our own making over Arrow tables; ``text`` stands for it in errors."""
    import duckdb

    with _lock:
        database = _database()
        install(database, sql)
        cursor = database.cursor()
    try:
        for name, table in tables.items():
            cursor.register(name, table)
        return cursor.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise failure(text, error) from None
    finally:
        cursor.close()


def map_failure(message: str) -> str | None:
    """What DuckDB has against the keys of a map, in plain words.

    >>> map_failure("Invalid Input Error: Map keys must be unique.")
    'a map has one key twice'
    """
    if "Map keys must be unique" in message:
        return "a map has one key twice"
    return "a key of a map is null" if "Map keys can not be NULL" in message else None


def failure(text: str, error: Exception) -> ExpressionError:
    """A DuckDB error met while evaluating ``text``, in plain words.

    >>> failure("1 / a", Exception("Invalid Input Error: headwater!division by zero")).message
    'the evaluation failed: division by zero'
    """
    message, kind = str(error).split("\n")[0], type(error).__name__
    if ERROR_MARK in message:
        return ExpressionError.failed(text, message.split(ERROR_MARK, 1)[1].strip())
    if (why := map_failure(message)) is not None:
        return ExpressionError.failed(text, why)
    if kind == "OutOfRangeException" or "out of range" in message.lower() or "overflow" in message.lower():
        return ExpressionError.failed(text, "a number does not fit its type (overflow)")
    if kind == "ConversionException":
        return ExpressionError.failed(text, "a value cannot be cast to the type asked for")
    if kind in ("OutOfMemoryException", "InterruptException"):
        return ExpressionError.failed(
            text, "the engine ran out of memory" if "Memory" in kind else "it was interrupted"
        )
    return ExpressionError.failed(text, f"the engine refused it ({kind.removesuffix('Exception').lower()})")
