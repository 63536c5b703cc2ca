"""A witness: a query that should find a row, made of words and values that the row has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.search.definition import Definition

__all__ = ["query_of"]

_WORDS = 6


def query_of(meant: Definition, row: Mapping[str, Any]) -> str | None:
    """Words of the first text field that has some, else the value of a keyword; None where a row has neither.

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> _ = lake.write("notes", [{"id": 1, "body": "The card was lost"}])
    >>> query_of(lake.index("ix", "notes", text="body").meant, {"body": "Card lost!"})
    'body:"card" body:"lost"'
    """
    for field in meant.fields:
        value = row.get(field.column)
        if not isinstance(value, str):
            continue
        terms = sorted(field.analysis.terms(value)) if field.is_text else []
        if field.kind == "keyword":
            terms = [value]
        plain = [term for term in terms if '"' not in term and "\\" not in term][:_WORDS]
        if plain:
            return " ".join(f'{_name(field.column)}:"{term}"' for term in plain)
    return None


def _name(column: str) -> str:
    return column if column.isidentifier() else f'"{column}"'
