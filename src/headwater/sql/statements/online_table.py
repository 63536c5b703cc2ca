"""CREATE ONLINE TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.derived import CreateArtefact, CreateMode
from headwater.sql.statements.registry import reader

__all__ = ["CreateOnlineTable", "read_create_online", "read_replace_online"]

_FORM = (
    "CREATE ONLINE TABLE name [(columns)] FROM source KEY (columns) [ORDER BY column] [EVENT TIME "
    "column] [TTL '1 day'] [PARTS 8]"
)


@dataclass(frozen=True)
class CreateOnlineTable(CreateArtefact):
    """Rows of a table by a key."""

    verb: ClassVar[str] = "CREATE ONLINE TABLE"
    kind: ClassVar[str] = "online"

    source: str = field(kw_only=True)
    key: tuple[str, ...] = field(kw_only=True)
    columns: tuple[str, ...] | None = None
    order_by: str | None = None
    event_time: str | None = None
    ttl: str | None = None
    parts: int = 0


@reader("CREATE", "ONLINE", "TABLE", form=_FORM)
def read_create_online(cursor: Cursor) -> CreateOnlineTable:
    return _read(cursor, "ignore" if cursor.take("IF", "NOT", "EXISTS") else "error")


@reader("CREATE", "OR", "REPLACE", "ONLINE", "TABLE", form=_FORM.replace("CREATE", "CREATE OR REPLACE"))
def read_replace_online(cursor: Cursor) -> CreateOnlineTable:
    return _read(cursor, "replace")


def _read(cursor: Cursor, mode: CreateMode) -> CreateOnlineTable:
    table = cursor.table("the name of an online table")
    columns = None
    if cursor.sees("("):
        columns = tuple(cursor.in_parentheses(lambda: cursor.identifier("a column")))
    cursor.expect("FROM")
    source = cursor.table("the name of a table or view")
    cursor.expect("KEY")
    key = tuple(cursor.in_parentheses(lambda: cursor.identifier("a column of the key")))
    order_by = event_time = ttl = None
    parts = 0
    while not cursor.done:
        word = cursor.one_of("ORDER", "EVENT", "TTL", "PARTS")
        if word == "ORDER":
            cursor.expect("BY")
            order_by = cursor.identifier("a column")
        elif word == "EVENT":
            cursor.expect("TIME")
            event_time = cursor.identifier("a column")
        elif word == "TTL":
            ttl = cursor.text_value("a length of time, such as '1 day'")
        else:
            parts = cursor.number("a number of files")
    return CreateOnlineTable(
        table,
        mode,
        source=source,
        key=key,
        columns=columns,
        order_by=order_by,
        event_time=event_time,
        ttl=ttl,
        parts=parts,
    )
