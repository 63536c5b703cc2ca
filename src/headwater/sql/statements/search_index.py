"""CREATE SEARCH INDEX.

As in PostgreSQL, the columns stand in parentheses behind the table, each with how it is indexed; a column without a
kind gets the one that fits its type. Options that hold for the whole index stand in OPTIONS, as in Databricks. A list
of columns inside an option is one string, in which names may stand in backticks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.derived import CreateArtefact, CreateMode
from headwater.sql.statements.names import listed_names
from headwater.sql.statements.registry import reader

__all__ = ["CreateSearchIndex", "IndexedColumn", "read_create_index", "read_replace_index"]

_FORM = (
    "CREATE SEARCH INDEX name ON table [(column [TEXT | KEYWORD | NUMERIC | BINARY | IP | JSON] "
    "[WITH (analyzer = 'en_stem', positions = false, frequencies = false, substring = true)], …)] "
    "[OPTIONS (analyzer = 'default', substring = 'column, …', hot = 'column, …', target_rows = 1000000)]"
)
_KINDS = ("TEXT", "KEYWORD", "NUMERIC", "BINARY", "IP", "JSON")


@dataclass(frozen=True)
class IndexedColumn:
    """A column, how it is indexed (None: as its type asks for), and what WITH says; None is what is not said."""

    name: str
    kind: str | None = None
    analyzer: str | None = None
    positions: bool | None = None
    frequencies: bool | None = None
    substring: bool | None = None


@dataclass(frozen=True)
class CreateSearchIndex(CreateArtefact):
    """An index on columns of a table, or on all that can be indexed."""

    verb: ClassVar[str] = "CREATE SEARCH INDEX"
    kind: ClassVar[str] = "index"

    source: str = field(kw_only=True)
    columns: tuple[IndexedColumn, ...] | None = None
    analyzer: str | None = None
    substring: tuple[str, ...] = ()
    hot: tuple[str, ...] = ()
    target_rows: int | None = None


@reader("CREATE", "SEARCH", "INDEX", form=_FORM)
def read_create_index(cursor: Cursor) -> CreateSearchIndex:
    return _read(cursor, "ignore" if cursor.take("IF", "NOT", "EXISTS") else "error")


@reader("CREATE", "OR", "REPLACE", "SEARCH", "INDEX", form=_FORM.replace("CREATE", "CREATE OR REPLACE"))
def read_replace_index(cursor: Cursor) -> CreateSearchIndex:
    return _read(cursor, "replace")


def _read(cursor: Cursor, mode: CreateMode) -> CreateSearchIndex:
    table = cursor.table("the name of a search index")
    cursor.expect("ON")
    source = cursor.table("the name of a table or view")
    columns = None
    if cursor.sees("("):
        columns = tuple(cursor.in_parentheses(lambda: _column(cursor)))
    analyzer, target_rows = None, None
    lists: dict[str, tuple[str, ...]] = {}
    if not cursor.done:
        cursor.expect("OPTIONS")
        for name in _options(cursor, "ANALYZER", "SUBSTRING", "HOT", "TARGET_ROWS"):
            if name == "ANALYZER":
                analyzer = cursor.text_value("the name of an analyzer")
            elif name == "TARGET_ROWS":
                target_rows = cursor.number("a number of rows")
            else:
                lists[name] = listed_names(cursor.text_value("the names of columns"))
    return CreateSearchIndex(
        table,
        mode,
        source=source,
        columns=columns,
        analyzer=analyzer,
        substring=lists.get("SUBSTRING", ()),
        hot=lists.get("HOT", ()),
        target_rows=target_rows,
    )


def _column(cursor: Cursor) -> IndexedColumn:
    name = cursor.identifier("a column")
    kind = next((word.lower() for word in _KINDS if cursor.take(word)), None)
    analyzer, flags = None, dict[str, bool]()
    if not (cursor.sees(",") or cursor.sees(")") or cursor.sees("WITH")):
        cursor.fail(f"{', '.join(_KINDS)} or WITH is expected here")
    if cursor.take("WITH"):
        for option in _options(cursor, "ANALYZER", "POSITIONS", "FREQUENCIES", "SUBSTRING"):
            if option == "ANALYZER":
                analyzer = cursor.text_value("the name of an analyzer")
            else:
                flags[option.lower()] = _flag(cursor)
    return IndexedColumn(name, kind, analyzer, **flags)


def _options(cursor: Cursor, *known: str) -> Iterator[str]:
    """The options in parentheses by their names, each once; whoever is given a name reads the value behind it."""
    seen: set[str] = set()
    cursor.expect("(")
    while True:
        at = cursor.token()
        name = cursor.one_of(*known)
        if name in seen:
            cursor.fail(f"{name} is given twice", at=at)
        seen.add(name)
        cursor.expect("=")
        yield name
        if not cursor.take(","):
            break
    cursor.expect(")")


def _flag(cursor: Cursor) -> bool:
    value = cursor.constant("true or false")
    if not isinstance(value, bool):
        cursor.fail("true or false is expected", at=cursor.tokens[cursor.at - 1])
    return value
