"""CREATE, REFRESH and DROP MATERIALIZED VIEW, and SHOW VIEWS."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from headwater.sql.fragment import Fragment
from headwater.sql.statements.create_table import drops_readers, properties
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = [
    "CreateView",
    "DropView",
    "RefreshView",
    "ShowViews",
    "read_create_view",
    "read_drop_view",
    "read_refresh_view",
    "read_show_views",
]

Mode = Literal["error", "ignore", "replace"]
_FORM = "CREATE MATERIALIZED VIEW name [COMMENT 'text'] [TBLPROPERTIES ('headwater.policy' = 'auto')] AS query"


@dataclass(frozen=True)
class CreateView(Statement):
    """A view of ``query``; ``mode`` says what happens where one is there already."""

    verb: ClassVar[str] = "CREATE MATERIALIZED VIEW"

    table: str
    query: Fragment
    mode: Mode = "error"
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None


@dataclass(frozen=True)
class RefreshView(Statement):
    """Bring a view forward, after the views that it reads unless ``cascade`` is off; ``full`` computes it from
    scratch.
    """

    verb: ClassVar[str] = "REFRESH MATERIALIZED VIEW"

    table: str
    full: bool = False
    cascade: bool = True


@dataclass(frozen=True)
class DropView(Statement):
    """Delete a view with its table and its state."""

    verb: ClassVar[str] = "DROP MATERIALIZED VIEW"

    table: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ShowViews(Statement):
    """The materialized views, of the schema ``within``, whose names fit ``pattern``."""

    verb: ClassVar[str] = "SHOW VIEWS"

    pattern: str | None = None
    within: str | None = None


@reader("CREATE", "MATERIALIZED", "VIEW", form=_FORM)
def read_create_view(cursor: Cursor) -> CreateView:
    return _read(cursor, "ignore" if cursor.take("IF", "NOT", "EXISTS") else "error")


@reader("CREATE", "OR", "REPLACE", "MATERIALIZED", "VIEW", form=_FORM.replace("CREATE", "CREATE OR REPLACE"))
def read_replace_view(cursor: Cursor) -> CreateView:
    return _read(cursor, "replace")


@reader("REFRESH", "MATERIALIZED", "VIEW", form="REFRESH MATERIALIZED VIEW name [FULL] [RESTRICT]")
def read_refresh_view(cursor: Cursor) -> RefreshView:
    table, full = cursor.table("the name of a view"), cursor.take("FULL")
    return RefreshView(table, full, cursor.take("CASCADE") or not cursor.take("RESTRICT"))


@reader("DROP", "MATERIALIZED", "VIEW", form="DROP MATERIALIZED VIEW [IF EXISTS] name [CASCADE]")
def read_drop_view(cursor: Cursor) -> DropView:
    if_exists = cursor.take("IF", "EXISTS")
    return DropView(cursor.table("the name of a view"), if_exists, drops_readers(cursor))


@reader("SHOW", "VIEWS", form="SHOW VIEWS [IN schema] [LIKE 'pattern']")
@reader("SHOW", "MATERIALIZED", "VIEWS", form="SHOW VIEWS [IN schema] [LIKE 'pattern']")
def read_show_views(cursor: Cursor) -> ShowViews:
    within = cursor.table("the name of a schema") if cursor.take("IN") or cursor.take("FROM") else None
    cursor.take("LIKE")
    return ShowViews(None if cursor.done else cursor.text_value("a pattern"), within)


def _read(cursor: Cursor, mode: Mode) -> CreateView:
    table = cursor.table("the name of a view")
    given: dict[str, str] = {}
    comment: str | None = None
    if cursor.sees("("):
        cursor.fail("a query gives the columns itself", "leave the list of columns out, and name them with AS")
    while not cursor.sees("AS"):
        if cursor.sees("PARTITIONED"):
            hint = "leave PARTITIONED BY out; files are packed and their statistics let queries skip them"
            cursor.fail("the table of a view is not partitioned", hint)
        word = cursor.one_of("COMMENT", "TBLPROPERTIES", "AS")
        if word == "COMMENT":
            comment = cursor.text_value("a comment")
        else:
            given = properties(cursor)
    cursor.expect("AS")
    query = cursor.rest("a query")
    if query.parameters:
        cursor.fail("a view keeps its query, and a parameter has a value only now", "write the value into the query")
    return CreateView(table, query, mode, given, comment)
