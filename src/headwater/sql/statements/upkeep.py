"""OPTIMIZE, VACUUM and RESTORE: what keeps a table small, and what brings it back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from headwater.sql.fragment import Fragment
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["Optimize", "Restore", "Vacuum", "read_optimize", "read_restore", "read_vacuum", "time_travel"]


@dataclass(frozen=True)
class Optimize(Statement):
    """Pack small files of ``table``, or of the partitions that meet ``where``, along a curve through ``zorder_by``."""

    verb: ClassVar[str] = "OPTIMIZE"

    table: str
    where: Fragment | None = None
    zorder_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vacuum(Statement):
    """Delete files that no version within the retention needs."""

    verb: ClassVar[str] = "VACUUM"

    table: str
    retain_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Restore(Statement):
    """Make an older version the newest: ``version``, or the one of ``timestamp``."""

    verb: ClassVar[str] = "RESTORE"

    table: str
    version: int | None = None
    timestamp: str | datetime | None = None


@reader("OPTIMIZE", form="OPTIMIZE table [WHERE condition] [ZORDER BY (columns)]")
def read_optimize(cursor: Cursor) -> Optimize:
    table = cursor.table()
    where = cursor.until("ZORDER", what="a condition") if cursor.take("WHERE") else None
    columns: list[str] = []
    if cursor.take("ZORDER"):
        cursor.expect("BY")

        def one() -> str:
            return cursor.identifier("the name of a column")

        columns = cursor.in_parentheses(one) if cursor.sees("(") else cursor.listed(one)
    return Optimize(table, where, tuple(columns))


@reader("VACUUM", form="VACUUM table [RETAIN n HOURS] [DRY RUN]")
def read_vacuum(cursor: Cursor) -> Vacuum:
    table = cursor.table()
    hours: float | None = None
    if cursor.take("RETAIN"):
        token = cursor.token()
        if token is not None and token.kind == "number" and not token.text.isdecimal():
            try:
                hours = float(token.text)
            except ValueError:
                cursor.fail("a number of hours is expected here")
            cursor.at += 1
        else:
            hours = cursor.number("a number of hours")
        cursor.one_of("HOURS", "HOUR")
    return Vacuum(table, hours, cursor.take("DRY", "RUN"))


@reader("RESTORE", form="RESTORE TABLE table TO VERSION AS OF 3, or TO TIMESTAMP AS OF '2024-01-31 12:00:00'")
def read_restore(cursor: Cursor) -> Restore:
    cursor.take("TABLE")
    table = cursor.table()
    cursor.expect("TO")
    return Restore(table, *time_travel(cursor))


def time_travel(cursor: Cursor) -> tuple[int | None, str | datetime | None]:
    """``VERSION AS OF 3`` or ``TIMESTAMP AS OF '2024-01-31'``."""
    word = cursor.one_of("VERSION", "TIMESTAMP")
    cursor.expect("AS", "OF")
    if word == "VERSION":
        return cursor.number("a version"), None
    value = cursor.constant("a timestamp")
    if not isinstance(value, str | datetime):
        cursor.fail("a timestamp is expected, in quotes", at=cursor.tokens[cursor.at - 1])
    return None, value
