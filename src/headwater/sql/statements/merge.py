"""MERGE INTO: a source, a condition, and clauses that are tried in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from headwater.sql.fragment import Fragment, joined
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.delete import alias_of
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement
from headwater.sql.statements.update import assignments, target_column

__all__ = ["Merge", "MergeClause", "read_merge"]

When = Literal["matched", "not matched", "not matched by source"]
_FORM = "MERGE INTO target USING source ON condition WHEN [NOT] MATCHED [AND condition] THEN …"


@dataclass(frozen=True)
class MergeClause:
    """One WHEN … THEN …; ``assignments`` is None for DELETE, and ``all_columns`` stands for ``*``."""

    when: When
    condition: Fragment | None = None
    assignments: dict[str, Fragment] | None = None
    all_columns: bool = False


@dataclass(frozen=True)
class Merge(Statement):
    """Bring the rows of ``source``, a query, into ``table``."""

    verb: ClassVar[str] = "MERGE"

    table: str
    alias: str
    source: Fragment
    source_alias: str
    on: Fragment
    clauses: tuple[MergeClause, ...]
    evolve: bool = False


@reader("MERGE", form=_FORM)
def read_merge(cursor: Cursor) -> Merge:
    evolve = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    table = cursor.table()
    alias = alias_of(cursor, table, "USING")
    cursor.expect("USING")
    source, source_alias = _source(cursor)
    cursor.expect("ON")
    on = cursor.until("WHEN", what="a condition")
    clauses = []
    while not cursor.done:
        clauses.append(_clause(cursor, alias))
    if not clauses:
        cursor.fail("WHEN is expected at the end")
    return Merge(table, alias, source, source_alias, on, tuple(clauses), evolve)


def _source(cursor: Cursor) -> tuple[Fragment, str]:
    """What follows USING as a query, and what the clauses call it."""
    first, name = cursor.at, "source"
    if cursor.sees("("):
        cursor.inside("a query")
    else:
        name = cursor.table("the name of a table, or a query in parentheses,")
        if cursor.sees("("):
            cursor.inside("arguments")
        if cursor.sees("VERSION", "AS", "OF") or cursor.sees("TIMESTAMP", "AS", "OF"):
            cursor.at += 3
            cursor.constant("a version or a timestamp")
    alias = alias_of(cursor, name, "ON")
    if cursor.sees("("):
        cursor.inside("names of columns")
    return joined("SELECT * FROM ", cursor.fragment(first, cursor.at)), alias


def _clause(cursor: Cursor, alias: str) -> MergeClause:
    when: When = "matched"
    cursor.expect("WHEN")
    if cursor.take("NOT"):
        when = "not matched"
        cursor.expect("MATCHED")
        if cursor.take("BY"):
            when = "not matched by source" if cursor.one_of("SOURCE", "TARGET") == "SOURCE" else "not matched"
    else:
        cursor.expect("MATCHED")
    condition = cursor.until("THEN", what="a condition") if cursor.take("AND") else None
    cursor.expect("THEN")
    if when == "not matched":
        cursor.expect("INSERT")
        return _insert(cursor, condition, alias)
    if cursor.one_of("UPDATE", "DELETE") == "DELETE":
        return MergeClause(when, condition)
    cursor.expect("SET")
    if cursor.sees("*"):
        if when == "not matched by source":
            cursor.fail("`*` needs a row of the source, and there is none here", "set columns one by one")
        cursor.expect("*")
        return MergeClause(when, condition, all_columns=True)
    return MergeClause(when, condition, assignments(cursor, alias, "WHEN"))


def _insert(cursor: Cursor, condition: Fragment | None, alias: str) -> MergeClause:
    if cursor.take("*"):
        return MergeClause("not matched", condition, all_columns=True)
    start = cursor.token()
    columns = cursor.in_parentheses(lambda: target_column(cursor, alias))
    cursor.expect("VALUES")
    values = cursor.in_parentheses(lambda: cursor.until(",", ")", what="a value"))
    if len(columns) != len(values):
        cursor.fail(f"{len(columns)} columns and {len(values)} values", "give each column one value", at=start)
    if len({c.lower() for c in columns}) != len(columns):
        cursor.fail("a column is named twice", "name each column once", at=start)
    return MergeClause("not matched", condition, dict(zip(columns, values, strict=True)))
