"""SHOW: tables, columns, properties, definitions and functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwater.sql.statements.create_table import property_key
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["ShowColumns", "ShowCreateTable", "ShowFunctions", "ShowProperties", "ShowTables"]


@dataclass(frozen=True)
class ShowTables(Statement):
    """The tables, of the schema ``within``, whose names fit ``pattern``: ``*`` is any text, ``|`` an alternative."""

    verb: ClassVar[str] = "SHOW TABLES"

    pattern: str | None = None
    within: str | None = None


@dataclass(frozen=True)
class ShowColumns(Statement):
    """The names of a table's columns."""

    verb: ClassVar[str] = "SHOW COLUMNS"

    table: str


@dataclass(frozen=True)
class ShowProperties(Statement):
    """A table's properties, or the one of ``key``."""

    verb: ClassVar[str] = "SHOW TBLPROPERTIES"

    table: str
    key: str | None = None


@dataclass(frozen=True)
class ShowCreateTable(Statement):
    """The statement that would make the table."""

    verb: ClassVar[str] = "SHOW CREATE TABLE"

    table: str


@dataclass(frozen=True)
class ShowFunctions(Statement):
    """The functions that are known, or those whose names fit ``pattern``."""

    verb: ClassVar[str] = "SHOW FUNCTIONS"

    pattern: str | None = None


def _pattern(cursor: Cursor) -> str | None:
    cursor.take("LIKE")
    return None if cursor.done else cursor.text_value("a pattern")


@reader("SHOW", "TABLES", form="SHOW TABLES [IN schema] [LIKE 'pattern']")
def read_tables(cursor: Cursor) -> ShowTables:
    within = cursor.table("the name of a schema") if cursor.take("IN") or cursor.take("FROM") else None
    return ShowTables(_pattern(cursor), within)


@reader("SHOW", "COLUMNS", form="SHOW COLUMNS IN table")
def read_columns(cursor: Cursor) -> ShowColumns:
    cursor.one_of("IN", "FROM")
    return ShowColumns(cursor.table())


@reader("SHOW", "TBLPROPERTIES", form="SHOW TBLPROPERTIES table [('key')]")
def read_properties(cursor: Cursor) -> ShowProperties:
    table = cursor.table()
    if not cursor.sees("("):
        return ShowProperties(table)
    cursor.expect("(")
    key = property_key(cursor)
    cursor.expect(")")
    return ShowProperties(table, key)


@reader("SHOW", "CREATE", "TABLE", form="SHOW CREATE TABLE table")
def read_create_table(cursor: Cursor) -> ShowCreateTable:
    return ShowCreateTable(cursor.table())


@reader("SHOW", "FUNCTIONS", form="SHOW FUNCTIONS [LIKE 'pattern']")
def read_functions(cursor: Cursor) -> ShowFunctions:
    return ShowFunctions(_pattern(cursor))
