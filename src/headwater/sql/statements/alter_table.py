"""ALTER TABLE: one change of columns, properties or constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwater.base.schema import DeltaType, Field
from headwater.sql.statements.create_table import properties, property_key
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement
from headwater.sql.statements.types import column_definition, data_type, plain_text

__all__ = [
    "AddColumns",
    "AddConstraint",
    "AlterTable",
    "Change",
    "CommentColumn",
    "DropColumns",
    "DropConstraint",
    "DropNotNull",
    "RenameColumn",
    "SetProperties",
    "UnsetProperties",
    "WidenColumn",
    "read_alter",
]


@dataclass(frozen=True)
class AddColumns:
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class WidenColumn:
    column: str
    type: DeltaType


@dataclass(frozen=True)
class CommentColumn:
    column: str
    comment: str


@dataclass(frozen=True)
class DropNotNull:
    column: str


@dataclass(frozen=True)
class RenameColumn:
    column: str
    new_name: str


@dataclass(frozen=True)
class DropColumns:
    columns: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class SetProperties:
    properties: dict[str, str]


@dataclass(frozen=True)
class UnsetProperties:
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class AddConstraint:
    name: str
    condition: str


@dataclass(frozen=True)
class DropConstraint:
    name: str
    if_exists: bool = False


Change = (
    AddColumns
    | WidenColumn
    | CommentColumn
    | DropNotNull
    | RenameColumn
    | DropColumns
    | SetProperties
    | UnsetProperties
    | AddConstraint
    | DropConstraint
)


@dataclass(frozen=True)
class AlterTable(Statement):
    """One ``change`` of ``table``."""

    verb: ClassVar[str] = "ALTER TABLE"

    table: str
    change: Change


@reader(
    "ALTER", "TABLE", form="ALTER TABLE name ADD COLUMN | ALTER COLUMN | RENAME COLUMN | DROP … | SET TBLPROPERTIES …"
)
def read_alter(cursor: Cursor) -> AlterTable:
    table = cursor.table()
    word = cursor.one_of("ADD", "ALTER", "CHANGE", "RENAME", "DROP", "SET", "UNSET")
    readers = {"ADD": _add, "ALTER": _alter, "CHANGE": _alter, "RENAME": _rename, "DROP": _drop}
    if word in readers:
        return AlterTable(table, readers[word](cursor))
    if word == "SET" and cursor.sees("LOCATION"):
        cursor.fail("a table cannot be moved", "attach the other table under a name of its own")
    cursor.expect("TBLPROPERTIES")
    if word == "SET":
        return AlterTable(table, SetProperties(properties(cursor)))
    if_exists = cursor.take("IF", "EXISTS")
    return AlterTable(table, UnsetProperties(tuple(cursor.in_parentheses(lambda: property_key(cursor))), if_exists))


def _add(cursor: Cursor) -> Change:
    cursor.form = "ALTER TABLE name ADD COLUMNS (column type, …), or ADD CONSTRAINT name CHECK (condition)"
    word = cursor.one_of("COLUMN", "COLUMNS", "CONSTRAINT")
    if word == "CONSTRAINT":
        name = cursor.identifier("the name of a constraint")
        cursor.expect("CHECK")
        return AddConstraint(name, plain_text(cursor, "a condition"))

    def one() -> Field:
        start = cursor.token()
        found = column_definition(cursor)
        if cursor.sees("FIRST") or cursor.sees("AFTER"):
            cursor.fail("columns are added at the end", "leave the place out; a SELECT may order them as it likes")
        if not found.nullable:
            hint = "rows that are there have no value: add it without NOT NULL"
            cursor.fail(f"`{found.name}` cannot be NOT NULL", hint, at=start)
        if found.generation:
            cursor.fail("a generated column cannot be added", "create the table with it", at=start)
        return found

    fields = cursor.in_parentheses(one) if cursor.sees("(") else cursor.listed(one)
    return AddColumns(tuple(fields))


def _alter(cursor: Cursor) -> Change:
    cursor.form = "ALTER TABLE name ALTER COLUMN column TYPE type | DROP NOT NULL | COMMENT 'text'"
    cursor.take("COLUMN")
    name = _column(cursor)
    if cursor.take("TYPE"):
        return WidenColumn(name, data_type(cursor))
    if cursor.sees("SET", "NOT", "NULL"):
        hint = f"add a constraint: ALTER TABLE … ADD CONSTRAINT {name}_given CHECK ({name} IS NOT NULL)"
        cursor.fail("NOT NULL cannot be added to a column", hint)
    if cursor.take("COMMENT"):
        return CommentColumn(name, cursor.text_value("a comment"))
    if cursor.sees("FIRST") or cursor.sees("AFTER") or cursor.sees("SET", "DEFAULT"):
        cursor.fail("only a column's type, its NOT NULL and its comment can be changed")
    cursor.expect("DROP", "NOT", "NULL")
    return DropNotNull(name)


def _rename(cursor: Cursor) -> Change:
    cursor.form = "ALTER TABLE name RENAME COLUMN old TO new"
    if cursor.sees("TO"):
        hint = "a table's name is its folder: CREATE TABLE new AS SELECT * FROM old, and drop the old one"
        cursor.fail("a table cannot be renamed", hint)
    cursor.expect("COLUMN")
    name = _column(cursor)
    cursor.expect("TO")
    return RenameColumn(name, cursor.identifier("a new name"))


def _drop(cursor: Cursor) -> Change:
    cursor.form = "ALTER TABLE name DROP COLUMN [IF EXISTS] column, or DROP CONSTRAINT [IF EXISTS] name"
    word = cursor.one_of("COLUMN", "COLUMNS", "CONSTRAINT")
    if_exists = cursor.take("IF", "EXISTS")
    if word == "CONSTRAINT":
        return DropConstraint(cursor.identifier("the name of a constraint"), if_exists)

    def one() -> str:
        return _column(cursor)

    return DropColumns(tuple(cursor.in_parentheses(one) if cursor.sees("(") else cursor.listed(one)), if_exists)


def _column(cursor: Cursor) -> str:
    start = cursor.token()
    path = cursor.path("the name of a column")
    if len(path) > 1:
        cursor.fail("a field inside a struct cannot be changed alone", "add a new column", at=start)
    return path[0]
