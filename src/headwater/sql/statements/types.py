"""Columns as DDL defines them: names, types with all that is inside them, NOT NULL, comments and expressions.

Types are read into Delta's own form, which keeps what Arrow cannot say: NOT NULL inside a struct, and comments.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.base.schema import TYPES, DeltaType, Field, arrow_type
from headwater.sql.statements.cursor import Cursor

__all__ = ["arrow_type_of", "column_definition", "data_type", "plain_text"]

_NAMES = {t.spark: t.delta for t in TYPES} | {t.delta: t.delta for t in TYPES}
_NAMES |= {"real": "float", "timestamp_ltz": "timestamp"}
_NAMES |= {"long": "long", "short": "short", "byte": "byte", "integer": "integer"}
_LATER = {
    "varchar": "use STRING, and a CHECK constraint for the length",
    "char": "use STRING, and a CHECK constraint for the length",
    "character": "use STRING, and a CHECK constraint for the length",
    "interval": "store a number of seconds, days or months",
    "variant": "store JSON as STRING",
    "void": "give the column a type",
    "time": "store a TIMESTAMP_NTZ, or text",
}


def data_type(cursor: Cursor) -> DeltaType:
    """A type, such as ``DECIMAL(10, 2)`` or ``STRUCT<a: INT NOT NULL, b: ARRAY<STRING>>``."""
    start = cursor.token()
    name = cursor.identifier("a type").lower()
    if name == "array":
        cursor.expect("<")
        element = data_type(cursor)
        cursor.expect(">")
        return {"type": "array", "elementType": element, "containsNull": True}
    if name == "map":
        cursor.expect("<")
        key = data_type(cursor)
        cursor.expect(",")
        value = data_type(cursor)
        cursor.expect(">")
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if name == "struct":
        cursor.expect("<")
        fields = [] if cursor.sees(">") else cursor.listed(lambda: _struct_field(cursor).to_json())
        cursor.expect(">")
        if not fields:
            cursor.fail("a struct without fields", "give it at least one field: STRUCT<a: INT>", at=start)
        return {"type": "struct", "fields": fields}
    if name in ("decimal", "dec", "numeric"):
        digits = cursor.in_parentheses(lambda: cursor.number("the digits")) if cursor.sees("(") else [10]
        precision, scale = (*digits, 0)[:2]
        if len(digits) > 2 or not 1 <= precision <= 38 or scale > precision:
            cursor.fail("this is no decimal", "a decimal has 1 to 38 digits: DECIMAL(10, 2)", at=start)
        return f"decimal({precision},{scale})"
    if name in _LATER:
        cursor.fail(f"{name.upper()} is no type that tables here have", _LATER[name], at=start)
    if name not in _NAMES:
        known = ", ".join(t.spark.upper() for t in TYPES)
        cursor.fail(f"there is no type `{name}`", f"types: {known}, DECIMAL, ARRAY, MAP, STRUCT", at=start)
    return _NAMES[name]


def arrow_type_of(text: str) -> pa.DataType:
    """The type that a text of Spark's names.

    >>> arrow_type_of("array<decimal(10, 2)>")
    ListType(list<element: decimal128(10, 2)>)
    """
    cursor = Cursor(text)
    cursor.form = "BIGINT, DECIMAL(10, 2), ARRAY<STRING>"
    found = data_type(cursor)
    if not cursor.done:
        cursor.fail("a type ends before this")
    return arrow_type(found)


def _struct_field(cursor: Cursor) -> Field:
    name = cursor.identifier("the name of a field")
    cursor.take(":")
    dtype = data_type(cursor)
    nullable = not cursor.take("NOT", "NULL")
    metadata = {"comment": cursor.text_value("a comment")} if cursor.take("COMMENT") else {}
    return Field(name, dtype, nullable, metadata)


def column_definition(cursor: Cursor) -> Field:
    """``name type [NOT NULL] [GENERATED ALWAYS AS (expression)] [COMMENT 'text']``."""
    name = cursor.identifier("the name of a column")
    dtype = data_type(cursor)
    nullable, metadata = True, dict[str, Any]()
    while True:
        if cursor.take("NOT", "NULL"):
            nullable = False
        elif cursor.take("COMMENT"):
            metadata["comment"] = cursor.text_value("a comment")
        elif cursor.sees("GENERATED"):
            cursor.expect("GENERATED")
            if cursor.sees("BY") or cursor.sees("ALWAYS", "AS", "IDENTITY"):
                cursor.fail("identity columns are not supported", "write the numbers yourself: row_number() OVER (…)")
            cursor.expect("ALWAYS", "AS")
            metadata["delta.generationExpression"] = plain_text(cursor, "an expression")
        elif cursor.sees("DEFAULT"):
            cursor.fail("DEFAULT is not supported", "give the value in each INSERT, or with coalesce()")
        elif cursor.sees("PRIMARY") or cursor.sees("REFERENCES") or cursor.sees("UNIQUE"):
            cursor.fail("keys are not supported: Delta does not enforce them", "use a MERGE that keeps the key unique")
        else:
            return Field(name, dtype, nullable, metadata)


def plain_text(cursor: Cursor, what: str) -> str:
    """The expression between parentheses, which a table keeps for ever: it may not depend on parameters."""
    opening = cursor.token()
    piece = cursor.inside(what)
    if piece.parameters:
        hint = "write the values out"
        cursor.fail(f"{what} that a table keeps cannot have parameters", hint, at=opening)
    return piece.text
