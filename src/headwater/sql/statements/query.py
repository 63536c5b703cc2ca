"""A query: SELECT, VALUES, a set operation, or one in parentheses, with or without WITH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwater.sql.fragment import Fragment
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.insert import Insert, read_insert
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["Query", "read_query", "read_with"]


@dataclass(frozen=True)
class Query(Statement):
    """A query, which is read as a whole by `headwater.sql.query`."""

    verb: ClassVar[str] = "SELECT"

    query: Fragment


@reader("SELECT", form="SELECT columns FROM table WHERE condition")
@reader("FROM", form="FROM table SELECT columns")
@reader("TABLE", form="TABLE name")
@reader("VALUES", form="VALUES (1, 'a'), (2, 'b')")
def read_query(cursor: Cursor) -> Query:
    cursor.at = 0
    return Query(cursor.rest("a query"))


@reader("WITH", form="WITH name AS (query) SELECT …")
def read_with(cursor: Cursor) -> Query | Insert:
    first = cursor.at - 1
    cursor.take("RECURSIVE")
    cursor.listed(lambda: _definition(cursor))
    if not cursor.sees("INSERT"):
        cursor.at = first
        return Query(cursor.rest("a query"))
    definitions = cursor.fragment(first, cursor.at)
    cursor.expect("INSERT")
    return read_insert(cursor, definitions)


def _definition(cursor: Cursor) -> None:
    cursor.identifier("a name")
    if cursor.sees("("):
        cursor.inside("names of columns")
    cursor.expect("AS")
    cursor.inside("a query")
