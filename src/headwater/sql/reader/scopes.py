"""What does a name mean inside a query? Spark's rules, without case.

A name is looked for among the columns of FROM, by qualifier (``t.a``, ``db.t.a``) and then as a column with fields of
structs behind it; then among the aliases to its left in the select list; then in the query around a subquery. A name
that fits two columns of one step is refused, as in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.sql.functions.struct import field_of as inner_field
from headwater.sql.nodes import Column, Literal, Node, Refused, Wrong, call
from headwater.sql.plan import Attribute
from headwater.sql.types import STRING, column_type
from headwater.sql.types import name_of as type_name

__all__ = ["Entry", "RowScope", "field_of"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A column that can be named; a hidden one (the other side of USING) only with its qualifier, and not by ``*``.

    One that is not ``starred`` can be named, and ``*`` leaves it out.
    """

    qualifier: tuple[str, ...]
    attribute: Attribute
    hidden: bool = False
    starred: bool = True


@dataclass(frozen=True, slots=True)
class RowScope:
    """The columns of FROM, the ``aliases`` of the select list so far, and the scope ``around`` a subquery."""

    entries: tuple[Entry, ...]
    aliases: Mapping[str, Node] = field(default_factory=dict)
    around: RowScope | None = None
    aliases_first: bool = False
    # Columns that come before aliases all the same: in HAVING, those that the rows are grouped by.
    grouped: frozenset[Node] = frozenset()

    def has(self, name: str) -> bool:
        """Is there a column of this name?"""
        return bool(self._matches((), name)) or (self.around is not None and self.around.has(name))

    def is_alias(self, name: str) -> bool:
        """Does the name mean an alias to its left, and no column?"""
        return name.lower() in self.aliases and not self._matches((), name)

    def _matches(self, qualifier: tuple[str, ...], name: str) -> list[Attribute]:
        wanted = tuple(part.lower() for part in qualifier)
        return [
            e.attribute
            for e in self.entries
            if e.attribute.name.lower() == name.lower() and (not e.hidden if not wanted else _ends(e.qualifier, wanted))
        ]

    def qualified(self, qualifier: tuple[str, ...]) -> list[Attribute]:
        """The columns of ``t.*``."""
        wanted = tuple(part.lower() for part in qualifier)
        return [e.attribute for e in self.entries if _ends(e.qualifier, wanted)]

    def visible(self) -> list[Attribute]:
        """The columns of ``*``."""
        return [e.attribute for e in self.entries if e.starred and not e.hidden]

    def known(self) -> list[str]:
        """All names that could have been meant, for hints."""
        several = len({e.qualifier for e in self.entries}) > 1
        names = [
            f"{e.qualifier[-1]}.{e.attribute.name}" if several and e.qualifier else e.attribute.name
            for e in self.entries
        ]
        return list(dict.fromkeys([*names, *self.aliases]))

    def column(self, parts: tuple[str, ...]) -> Node:
        """The column, alias or field that ``parts`` name."""
        found = self._find(parts)
        if found is None:
            error = NotFoundError.column(".".join(parts), self.known())
            if not self.entries and self.around is None:
                error.hint = "there is no FROM: name the table that has it"
            raise error
        return found

    def _find(self, parts: tuple[str, ...]) -> Node | None:
        alias = self.aliases.get(parts[0].lower())
        if alias is not None and self.aliases_first:
            own = self._grouped(parts)
            return own if own is not None else _descend(alias, parts[1:], parts)
        for attributes, fields in self._readings(parts):
            if len(attributes) > 1:
                keys = {a.key for a in attributes}
                names = [".".join((*e.qualifier, e.attribute.name)) for e in self.entries if e.attribute.key in keys]
                raise NotFoundError.ambiguous(".".join(parts), names)
            if attributes:
                return _descend(attributes[0].column, fields, parts)
        if alias is not None:
            return _descend(alias, parts[1:], parts)
        return None if self.around is None else self.around._find(parts)

    def _grouped(self, parts: tuple[str, ...]) -> Node | None:
        if self.grouped:
            for attributes, fields in self._readings(parts):
                if len(attributes) == 1:
                    found = _descend(attributes[0].column, fields, parts)
                    return found if found in self.grouped else None
        return None

    def _readings(self, parts: tuple[str, ...]) -> Iterator[tuple[list[Attribute], tuple[str, ...]]]:
        for cut in range(min(3, len(parts) - 1), 0, -1):
            yield self._matches(parts[:cut], parts[cut]), parts[cut + 1 :]
        yield self._matches((), parts[0]), parts[1:]


def _ends(qualifier: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return len(wanted) <= len(qualifier) and tuple(q.lower() for q in qualifier[-len(wanted) :]) == wanted


def _descend(node: Node, fields: tuple[str, ...], parts: tuple[str, ...]) -> Node:
    for name in fields:
        node = field_of(node, name, ".".join(parts))
    if isinstance(node, Column) and column_type(node.dtype) is None:
        raise Refused(f"column `{'.'.join(parts)}` of type {node.dtype}", "cast the data to a type that Delta stores")
    return node


def field_of(node: Node, name: str, written: str) -> Node:
    """A field of a struct, or of each struct of an array, or a value of a map."""
    stored = node.dtype
    if pa.types.is_list(stored) or pa.types.is_map(stored):
        return inner_field(node, name)
    if not pa.types.is_struct(stored):
        hint = "structs have fields, and maps have keys"
        raise Wrong(f"`{written}` asks for a field of a value of type {type_name(stored)}", hint)
    inner = [f for f in stored if f.name.lower() == name.lower()]
    if len(inner) != 1:
        raise NotFoundError.column(written, [f.name for f in stored])
    if isinstance(node, Column):
        return Column(None, (*node.path, inner[0].name), inner[0].type, True)
    return call("field", (node, Literal(inner[0].name, STRING)), inner[0].type)
