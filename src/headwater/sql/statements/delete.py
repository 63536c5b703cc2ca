"""DELETE FROM and TRUNCATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwater.sql.fragment import Fragment
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["Delete", "TruncateTable", "alias_of", "read_delete", "read_truncate"]


@dataclass(frozen=True)
class Delete(Statement):
    """Delete the rows of ``table`` that meet ``where``, or all; ``alias`` is what the condition calls the table."""

    verb: ClassVar[str] = "DELETE"

    table: str
    alias: str
    where: Fragment | None = None


@dataclass(frozen=True)
class TruncateTable(Statement):
    """Delete all rows."""

    verb: ClassVar[str] = "TRUNCATE TABLE"

    table: str


def alias_of(cursor: Cursor, table: str, *stops: str) -> str:
    """The alias behind a table, which may be left out: then it is the last part of its name."""
    if cursor.take("AS"):
        return cursor.identifier("an alias")
    token = cursor.token()
    if token is not None and token.kind in ("word", "name") and not any(cursor.sees(s) for s in stops):
        return cursor.identifier("an alias")
    return table.rsplit(".", 1)[-1]


@reader("DELETE", "FROM", form="DELETE FROM table [AS alias] [WHERE condition]")
def read_delete(cursor: Cursor) -> Delete:
    table = cursor.table()
    alias = alias_of(cursor, table, "WHERE")
    where = cursor.rest("a condition") if cursor.take("WHERE") else None
    return Delete(table, alias, where)


@reader("TRUNCATE", "TABLE", form="TRUNCATE TABLE table")
def read_truncate(cursor: Cursor) -> TruncateTable:
    return TruncateTable(cursor.table())
