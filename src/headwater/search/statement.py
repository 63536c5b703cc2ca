"""Search indexes in SQL: the definition that a CREATE SEARCH INDEX asks for,
and the statement that a definition answers to.
"""

from __future__ import annotations

from typing import Any, cast

from headwater.base.spark_text import plain_name, text_literal
from headwater.search.analyzers import parse_analyzer
from headwater.search.definition import TARGET_ROWS, AskedField, AskedKind, Definition
from headwater.search.fields import Field
from headwater.sql.statements import CreateSearchIndex, IndexedColumn

__all__ = ["create_statement", "options_of"]


def options_of(statement: CreateSearchIndex) -> dict[str, Any]:
    """What a statement asks for, as arguments of `define`."""
    columns = statement.columns or ()
    flagged = [one.name for one in columns if one.substring]
    found: dict[str, Any] = {
        "fields": None if statement.columns is None else tuple(map(_asked, columns)),
        "substring": tuple(dict.fromkeys((*flagged, *statement.substring))),
        "hot": statement.hot,
    }
    given = {"analyzer": statement.analyzer, "target_rows": statement.target_rows}
    return {**found, **{name: value for name, value in given.items() if value is not None}}


def _asked(column: IndexedColumn) -> AskedField:
    given = {name: getattr(column, name) for name in ("analyzer", "positions", "frequencies")}
    return (
        column.name,
        cast("AskedKind | None", column.kind),
        {name: value for name, value in given.items() if value is not None},
    )


def create_statement(name: str, definition: Definition) -> str:
    """The statement that would make an index of this definition."""
    lines = ",\n".join(f"  {_column(f)}" for f in definition.fields)
    parts = [f"CREATE SEARCH INDEX {_dotted(name)} ON {_dotted(definition.source)} (\n{lines})"]
    options = []
    if definition.hot:
        options.append(f"hot = {text_literal(', '.join(map(plain_name, definition.hot)))}")
    if definition.target_rows != TARGET_ROWS:
        options.append(f"target_rows = {definition.target_rows}")
    if options:
        parts.append(f"OPTIONS ({', '.join(options)})")
    return "\n".join(parts)


def _dotted(name: str) -> str:
    return ".".join(map(plain_name, name.split(".")))


def _column(f: Field) -> str:
    kind = "NUMERIC" if f.is_numeric else f.kind.upper()
    options = []
    if f.analyzer and f.analyzer != str(parse_analyzer("default")):
        options.append(f"analyzer = {text_literal(f.analyzer)}")
    if f.record != "position":
        options.append("positions = false" if f.record == "freq" else "frequencies = false")
    if f.substring:
        options.append("substring = true")
    return f"{plain_name(f.column)} {kind}" + (f" WITH ({', '.join(options)})" if options else "")
