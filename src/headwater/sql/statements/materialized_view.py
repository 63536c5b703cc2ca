"""CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from headwater.sql.fragment import Fragment
from headwater.sql.statements.create_table import properties
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.derived import CreateArtefact, CreateMode
from headwater.sql.statements.registry import reader

__all__ = ["CreateView", "read_create_view", "read_replace_view"]

_FORM = "CREATE MATERIALIZED VIEW name [COMMENT 'text'] [TBLPROPERTIES ('headwater.policy' = 'auto')] AS query"


@dataclass(frozen=True)
class CreateView(CreateArtefact):
    """A view of ``query``."""

    verb: ClassVar[str] = "CREATE MATERIALIZED VIEW"
    kind: ClassVar[str] = "view"

    query: Fragment = field(kw_only=True)
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None


@reader("CREATE", "MATERIALIZED", "VIEW", form=_FORM)
def read_create_view(cursor: Cursor) -> CreateView:
    return _read(cursor, "ignore" if cursor.take("IF", "NOT", "EXISTS") else "error")


@reader("CREATE", "OR", "REPLACE", "MATERIALIZED", "VIEW", form=_FORM.replace("CREATE", "CREATE OR REPLACE"))
def read_replace_view(cursor: Cursor) -> CreateView:
    return _read(cursor, "replace")


def _read(cursor: Cursor, mode: CreateMode) -> CreateView:
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
    return CreateView(table, mode, query=query, properties=given, comment=comment)
