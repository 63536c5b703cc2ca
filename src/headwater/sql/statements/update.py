"""UPDATE … SET, and the assignments that MERGE shares with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwater.sql.fragment import Fragment
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.delete import alias_of
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["Update", "assignments", "read_update", "target_column"]


@dataclass(frozen=True)
class Update(Statement):
    """Set columns of ``table`` in the rows that meet ``where``, or in all."""

    verb: ClassVar[str] = "UPDATE"

    table: str
    alias: str
    assignments: dict[str, Fragment]
    where: Fragment | None = None


@reader("UPDATE", form="UPDATE table [AS alias] SET column = value, … [WHERE condition]")
def read_update(cursor: Cursor) -> Update:
    table = cursor.table()
    alias = alias_of(cursor, table, "SET")
    cursor.expect("SET")
    values = assignments(cursor, alias, "WHERE")
    where = cursor.rest("a condition") if cursor.take("WHERE") else None
    return Update(table, alias, values, where)


def assignments(cursor: Cursor, alias: str, *stops: str) -> dict[str, Fragment]:
    """``column = value, …`` up to one of the words ``stops``."""
    found: dict[str, Fragment] = {}

    def one() -> None:
        start = cursor.token()
        name = target_column(cursor, alias)
        if name.lower() in (n.lower() for n in found):
            cursor.fail(f"`{name}` is set twice", "set each column once", at=start)
        cursor.expect("=")
        found[name] = cursor.until(",", *stops, what="a value")

    cursor.listed(one)
    return found


def target_column(cursor: Cursor, alias: str) -> str:
    """The name of a column that is set; the table's alias may stand before it."""
    start = cursor.token()
    path = cursor.path("the name of a column")
    if len(path) > 1 and path[0].lower() == alias.lower():
        path = path[1:]
    if len(path) > 1:
        hint = "set the whole column with named_struct(…), or name a column of the table that is changed"
        cursor.fail(f"`{'.'.join(path)}` is no column of `{alias}`", hint, at=start)
    return path[0]
