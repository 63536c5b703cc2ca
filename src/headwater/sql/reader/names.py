"""Which column does a name mean? Spark's rules, without case.

``a.b.c`` is read from the left: an alias first (``t.id``), then a column, and what is left are fields of structs. Names
that match more than one column are refused, even when the case of one of them matches, because Spark refuses them too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.base.errors import ExpressionError, NotFoundError
from headwater.sql.functions.struct import field_of
from headwater.sql.nodes import Column, Node, Wrong
from headwater.sql.types import column_type
from headwater.sql.types import name_of as type_name

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The schemas an expression may speak of, by alias (None: one table, no alias), and its text for messages."""

    text: str
    schemas: Mapping[str | None, pa.Schema]

    def has(self, name: str) -> bool:
        """Is there a column of this name, in any schema?"""
        return bool(self._matches(None, name))

    def _matches(self, alias: str | None, name: str) -> list[tuple[str | None, pa.Field]]:
        wanted = name.lower()
        return [
            (known, field)
            for known, schema in self.schemas.items()
            if alias is None or (known is not None and known.lower() == alias.lower())
            for field in schema
            if field.name.lower() == wanted
        ]

    def known(self, alias: str | None = None) -> list[str]:
        """All names that could have been meant, for hints."""
        several = len(self.schemas) > 1
        return [
            f"{known}.{name}" if several and known else name
            for known, schema in self.schemas.items()
            if alias is None or (known is not None and known.lower() == alias.lower())
            for name in schema.names
        ]

    def column(self, parts: tuple[str, ...]) -> Node:
        """The column, or the field of a struct column, that ``parts`` name."""
        name = ".".join(parts)
        found: list[tuple[str | None, pa.Field]] = []
        fields: tuple[str, ...] = ()
        is_alias = any(a is not None and a.lower() == parts[0].lower() for a in self.schemas)
        if len(parts) > 1 and is_alias:
            found, fields = self._matches(parts[0], parts[1]), parts[2:]
        if not found:
            found, fields = self._matches(None, parts[0]), parts[1:]
        if not found:
            known = self.known(parts[0]) if len(parts) > 1 and is_alias else self.known()
            raise NotFoundError.column(name, known, where=self.text)
        if len(found) > 1:
            choices = [f"{a}.{f.name}" if a else f.name for a, f in found]
            raise NotFoundError.ambiguous(name, choices, where=self.text)
        alias, field = found[0]
        return self._descend(alias, field, fields, name)

    def _descend(self, alias: str | None, field: pa.Field, fields: tuple[str, ...], name: str) -> Node:
        path, stored = [field.name], field.type
        for at, step in enumerate(fields):
            if pa.types.is_list(stored) or pa.types.is_map(stored):
                whole = self._descend(alias, field, fields[:at], name)
                return functools.reduce(field_of, fields[at:], whole)
            if not pa.types.is_struct(stored):
                hint = "structs have fields, and maps have keys"
                raise Wrong(f"`{name}` asks for a field of a value of type {type_name(stored)}", hint)
            inner = [f for f in stored if f.name.lower() == step.lower()]
            if len(inner) != 1:
                known = [".".join([*path, f.name]) for f in stored]
                raise NotFoundError.column(name, known, where=self.text)
            path.append(inner[0].name)
            stored = inner[0].type
        dtype = column_type(stored)
        if dtype is None:
            what, hint = f"column `{name}` of type {stored}", "cast the data to a type that Delta stores"
            raise ExpressionError.not_known(self.text, what, hint)
        return Column(alias, tuple(path), dtype)
