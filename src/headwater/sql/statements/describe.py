"""DESCRIBE: a table's columns, its history, its details, or the columns of a query; and EXPLAIN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwater.sql.fragment import Fragment
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["DescribeDetail", "DescribeHistory", "DescribeQuery", "DescribeTable", "Explain"]

_QUERY = ("SELECT", "WITH", "VALUES")


@dataclass(frozen=True)
class DescribeTable(Statement):
    """The columns of ``table``, with its details when ``extended``; or one ``column``."""

    verb: ClassVar[str] = "DESCRIBE TABLE"

    table: str
    extended: bool = False
    column: str | None = None


@dataclass(frozen=True)
class DescribeHistory(Statement):
    """What was committed to ``table``, newest first, at most ``limit`` versions."""

    verb: ClassVar[str] = "DESCRIBE HISTORY"

    table: str
    limit: int | None = None


@dataclass(frozen=True)
class DescribeDetail(Statement):
    """Facts about ``table`` in one row."""

    verb: ClassVar[str] = "DESCRIBE DETAIL"

    table: str


@dataclass(frozen=True)
class DescribeQuery(Statement):
    """The columns of ``query``."""

    verb: ClassVar[str] = "DESCRIBE QUERY"

    query: Fragment


@dataclass(frozen=True)
class Explain(Statement):
    """The plan of ``query``: how it is read, and with ``mode`` also how the engine runs it."""

    verb: ClassVar[str] = "EXPLAIN"

    query: Fragment
    mode: str = "simple"


def _history(cursor: Cursor) -> DescribeHistory:
    table = cursor.table()
    return DescribeHistory(table, cursor.number("a number of versions") if cursor.take("LIMIT") else None)


def _table(cursor: Cursor) -> DescribeTable | DescribeQuery:
    if any(cursor.sees(w) for w in _QUERY) or cursor.sees("("):
        return DescribeQuery(cursor.rest("a query"))
    cursor.take("TABLE")
    extended = cursor.take("EXTENDED") or cursor.take("FORMATTED")
    table = cursor.table()
    column = cursor.identifier("the name of a column") if not cursor.done else None
    return DescribeTable(table, extended, column)


for _word in ("DESCRIBE", "DESC"):
    reader(_word, form="DESCRIBE [TABLE] [EXTENDED] table, or DESCRIBE HISTORY | DETAIL | QUERY …")(_table)
    reader(_word, "HISTORY", form="DESCRIBE HISTORY table [LIMIT n]")(_history)
    reader(_word, "DETAIL", form="DESCRIBE DETAIL table")(lambda cursor: DescribeDetail(cursor.table()))
    reader(_word, "QUERY", form="DESCRIBE QUERY query")(lambda cursor: DescribeQuery(cursor.rest("a query")))


@reader("EXPLAIN", form="EXPLAIN [EXTENDED | FORMATTED | ANALYZE] query")
def read_explain(cursor: Cursor) -> Explain:
    mode = "simple"
    for word in ("EXTENDED", "FORMATTED", "ANALYZE"):
        if cursor.take(word):
            mode = word.lower()
            break
    if not (any(cursor.sees(w) for w in _QUERY) or cursor.sees("(")):
        cursor.fail("a query is expected" + (" at the end" if cursor.done else " here"))
    return Explain(cursor.rest("a query"), mode)
