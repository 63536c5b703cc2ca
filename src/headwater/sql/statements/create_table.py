"""CREATE TABLE: by columns, from a query (CTAS), or as a name for a table that lies elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from headwater.base.schema import Field
from headwater.sql.fragment import Fragment
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement
from headwater.sql.statements.types import column_definition, plain_text
from headwater.sql.tokens import Token

__all__ = ["AttachTable", "CreateTable", "CreateTableAs", "DropTable", "properties", "read_create", "read_drop"]

Mode = Literal["error", "ignore", "replace"]
_FORM = "CREATE TABLE name (column type, …) [PARTITIONED BY (…)] [TBLPROPERTIES (…)] [AS query]"


@dataclass(frozen=True)
class CreateTable(Statement):
    """A table of these columns; ``mode`` says what happens where one is there already."""

    verb: ClassVar[str] = "CREATE TABLE"

    table: str
    fields: tuple[Field, ...]
    mode: Mode = "error"
    constraints: dict[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None


@dataclass(frozen=True)
class CreateTableAs(Statement):
    """A table of the rows of ``query``."""

    verb: ClassVar[str] = "CREATE TABLE AS SELECT"

    table: str
    query: Fragment
    mode: Mode = "error"
    partitioned_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None


@dataclass(frozen=True)
class AttachTable(Statement):
    """A name for the Delta table at ``location``."""

    verb: ClassVar[str] = "CREATE TABLE"

    table: str
    location: str
    mode: Mode = "error"


@dataclass(frozen=True)
class DropTable(Statement):
    """Delete a table with its files, or forget an attached one."""

    verb: ClassVar[str] = "DROP TABLE"

    table: str
    if_exists: bool = False
    cascade: bool = False


@reader("CREATE", "TABLE", form=_FORM)
def read_create(cursor: Cursor) -> CreateTable | CreateTableAs | AttachTable:
    return _read(cursor, "ignore" if cursor.take("IF", "NOT", "EXISTS") else "error")


@reader("CREATE", "OR", "REPLACE", "TABLE", form=_FORM.replace("CREATE", "CREATE OR REPLACE"))
@reader("REPLACE", "TABLE", form=_FORM.replace("CREATE", "CREATE OR REPLACE"))
def read_replace(cursor: Cursor) -> CreateTable | CreateTableAs | AttachTable:
    return _read(cursor, "replace")


@reader("DROP", "TABLE", form="DROP TABLE [IF EXISTS] name [CASCADE]")
def read_drop(cursor: Cursor) -> DropTable:
    if_exists = cursor.take("IF", "EXISTS")
    return DropTable(cursor.table(), if_exists, drops_readers(cursor))


def drops_readers(cursor: Cursor) -> bool:
    """Whether what reads it is to be dropped too: CASCADE; RESTRICT says that it is not, as nothing does."""
    return cursor.take("CASCADE") or (cursor.take("RESTRICT") and False)


def _read(cursor: Cursor, mode: Mode) -> CreateTable | CreateTableAs | AttachTable:
    table = cursor.table()
    if cursor.sees("LIKE"):
        cursor.fail("CREATE TABLE … LIKE is not supported", "write CREATE TABLE new AS SELECT * FROM old LIMIT 0")
    clauses = _Clauses(cursor)
    if cursor.sees("("):
        cursor.in_parentheses(clauses.column_or_constraint)
    while not cursor.done and not cursor.sees("AS"):
        clauses.one()
    fields, given = tuple(clauses.fields), clauses
    if cursor.take("AS"):
        if fields:
            cursor.fail("a query gives the columns itself", "leave the list of columns out, and name them with AS")
        query = cursor.rest("a query")
        if given.location is not None:
            hint = "leave LOCATION out: the table is made in the lake, in a folder of its name"
            cursor.fail("a new table has no location of its own", hint, at=given.location_at)
        return CreateTableAs(table, query, mode, given.partitioned_by, given.properties, given.comment)
    if given.location is not None:
        if fields or given.partitioned_by or given.properties or given.comment or mode == "replace":
            why = "LOCATION names a Delta table that is there already, with columns and properties of its own"
            hint = (
                "write only CREATE TABLE name USING DELTA LOCATION '…'; a new table is made without "
                "LOCATION, in the lake"
            )
            cursor.fail(why, hint, at=given.location_at)
        return AttachTable(table, given.location, mode)
    if not fields:
        cursor.fail("the columns are missing" + (" at the end" if cursor.done else ""))
    return CreateTable(table, fields, mode, given.constraints, given.partitioned_by, given.properties, given.comment)


class _Clauses:
    """What has been said of the table so far."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.seen: set[str] = set()
        self.fields: list[Field] = []
        self.constraints: dict[str, str] = {}
        self.partitioned_by: tuple[str, ...] = ()
        self.properties: dict[str, str] = {}
        self.comment: str | None = None
        self.location: str | None = None
        self.location_at: Token | None = None

    def column_or_constraint(self) -> None:
        cursor = self.cursor
        if not cursor.sees("CONSTRAINT"):
            self.fields.append(column_definition(cursor))
            return
        cursor.expect("CONSTRAINT")
        name = cursor.identifier("the name of a constraint")
        if not cursor.sees("CHECK"):
            cursor.fail("CHECK is expected here", "keys are not supported: write CONSTRAINT name CHECK (condition)")
        cursor.expect("CHECK")
        self.constraints[name] = plain_text(cursor, "a condition")

    def one(self) -> None:
        cursor, start = self.cursor, self.cursor.token()
        if cursor.sees("CLUSTER"):
            cursor.fail("CLUSTER BY is not supported", "use PARTITIONED BY, or OPTIMIZE table ZORDER BY (columns)")
        word = cursor.one_of("USING", "PARTITIONED", "TBLPROPERTIES", "COMMENT", "LOCATION", "AS")
        if word in self.seen:
            cursor.fail(f"{word} is said twice", "say it once", at=start)
        self.seen.add(word)
        if word == "USING":
            kind = cursor.token()
            if cursor.identifier("DELTA").lower() != "delta":
                cursor.fail("tables here are Delta tables", "write USING DELTA, or leave it out", at=kind)
        elif word == "PARTITIONED":
            cursor.expect("BY")
            self.partitioned_by = tuple(cursor.in_parentheses(self._partition_column))
        elif word == "TBLPROPERTIES":
            self.properties = properties(cursor)
        elif word == "COMMENT":
            self.comment = cursor.text_value("a comment")
        elif word == "LOCATION":
            self.location, self.location_at = cursor.text_value("a location"), start

    def _partition_column(self) -> str:
        cursor, start = self.cursor, self.cursor.token()
        name = cursor.identifier("the name of a column")
        if cursor.sees("("):
            hint = "add a generated column and partition by it"
            cursor.fail("partitions are made by columns, not by expressions", hint, at=start)
        if not (cursor.sees(",") or cursor.sees(")")):
            hint = "define it in the list of columns, and only name it here"
            cursor.fail("a partition column has no type of its own", hint)
        return name


def properties(cursor: Cursor) -> dict[str, str]:
    """``('key' = 'value', key.part = 'value', …)``."""
    found: dict[str, str] = {}

    def one() -> None:
        start = cursor.token()
        key = property_key(cursor)
        if key in found:
            cursor.fail(f"`{key}` is set twice", "set each property once", at=start)
        cursor.take("=")
        value = cursor.constant("a value")
        if value is None or isinstance(value, bytes):
            cursor.fail("a property is text", "write it in quotes", at=cursor.tokens[cursor.at - 1])
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)

    cursor.in_parentheses(one)
    return found


def property_key(cursor: Cursor) -> str:
    """A key in quotes, or as words with dots."""
    token = cursor.token()
    if token is not None and token.kind == "text":
        return cursor.text_value("a key")
    return ".".join(cursor.path("the key of a property"))
