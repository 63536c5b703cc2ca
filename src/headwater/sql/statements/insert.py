"""INSERT INTO, INSERT OVERWRITE, and INSERT INTO … REPLACE WHERE: rows of a query into a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from headwater.sql.fragment import Fragment, joined
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["Insert", "read_insert", "read_insert_statement"]

_FORM = "INSERT INTO table [(columns) | BY NAME] SELECT … | VALUES (…)"
_QUERY = ("SELECT", "VALUES", "WITH", "TABLE")


@dataclass(frozen=True)
class Insert(Statement):
    """Rows of ``query`` into ``table``: beside those that are there, or in the place of all or of those that meet
    ``where``.

    ``columns`` names the target columns in the order of the query's; without it they are taken in order, or with
    ``by_name`` by their names. ``partition`` sets columns to constants, or to None where the query gives the value.
    """

    verb: ClassVar[str] = "INSERT"

    table: str
    query: Fragment
    mode: Literal["append", "overwrite", "replace where"] = "append"
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    where: Fragment | None = None
    partition: dict[str, Fragment | None] = field(default_factory=dict)
    evolve: bool = False


@reader("INSERT", form=_FORM)
def read_insert_statement(cursor: Cursor) -> Insert:
    return read_insert(cursor, None)


def read_insert(cursor: Cursor, definitions: Fragment | None) -> Insert:
    """The rest of an INSERT; ``definitions`` are those of a WITH before it."""
    cursor.form = _FORM
    evolve = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    overwrite = cursor.one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if overwrite:
        cursor.take("INTO")
    cursor.take("TABLE")
    table = cursor.table()
    partition = _partition(cursor) if cursor.take("PARTITION") else {}
    columns, by_name, where = None, False, None
    if cursor.take("BY", "NAME"):
        by_name = True
    elif cursor.sees("(") and not _is_query(cursor):
        columns = tuple(cursor.in_parentheses(lambda: cursor.identifier("the name of a column")))
    if not overwrite and cursor.sees("REPLACE", "WHERE"):
        if partition or columns is not None:
            cursor.fail("REPLACE WHERE comes directly behind the table")
        cursor.expect("REPLACE", "WHERE")
        where = cursor.until(*_QUERY, what="a condition")
    mode: Literal["append", "overwrite", "replace where"] = "overwrite" if overwrite else "append"
    query = _query(cursor, definitions)
    return Insert(
        table, query, "replace where" if where is not None else mode, columns, by_name, where, partition, evolve
    )


def _is_query(cursor: Cursor) -> bool:
    ahead = 0
    while (token := cursor.token(ahead)) is not None and token.text == "(":
        ahead += 1
    return token is not None and token.kind == "word" and token.word in _QUERY


def _query(cursor: Cursor, definitions: Fragment | None) -> Fragment:
    if not (cursor.sees("(") or any(cursor.sees(w) for w in _QUERY)):
        cursor.fail("a query or VALUES is expected" + (" at the end" if cursor.done else " here"))
    if cursor.take("TABLE"):
        query = joined("SELECT * FROM ", cursor.rest("the name of a table"))
    else:
        query = cursor.rest("a query")
    return query if definitions is None else joined(definitions, " ", query)


def _partition(cursor: Cursor) -> dict[str, Fragment | None]:
    found: dict[str, Fragment | None] = {}

    def one() -> None:
        start = cursor.token()
        name = cursor.identifier("the name of a partition column")
        if name.lower() in (n.lower() for n in found):
            cursor.fail(f"`{name}` is set twice", "set each column once", at=start)
        found[name] = cursor.until(",", ")", what="a value") if cursor.take("=") else None

    cursor.in_parentheses(one)
    return found
