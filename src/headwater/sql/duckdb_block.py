"""One SELECT of DuckDB's SQL, to which clauses are added as long as SQL's own order of clauses allows it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from headwater.sql.plan import Attribute, Plan
from headwater.sql.quoting import quote_identifier

__all__ = ["Block", "named", "unique"]


def unique(names: list[str]) -> list[str]:
    """The names, with a number behind those that DuckDB would take for the same."""
    seen: set[str] = set()
    out = []
    for name in names:
        shown, number = name or "_", itertools.count(1)
        while shown.lower() in seen:
            shown = f"{name}:{next(number)}"
        seen.add(shown.lower())
        out.append(shown)
    return out


@dataclass(frozen=True, slots=True)
class Block:
    """One SELECT: ``select`` is None as long as the columns of ``source`` pass through."""

    source: str
    select: tuple[tuple[str, str], ...] | None = None
    where: tuple[str, ...] = ()
    group: str = ""
    distinct: bool = False
    order: str = ""
    limit: str = ""
    with_: str = ""

    @property
    def is_source(self) -> bool:
        """Nothing but FROM."""
        return self == Block(self.source)

    @property
    def filters(self) -> bool:
        """Nothing but FROM and WHERE."""
        return self == Block(self.source, where=self.where)

    def renamed(self, output: tuple[Attribute, ...], names: list[str]) -> Block:
        """The block with its columns under other names, in this order."""
        by_key = {key: sql for sql, key in self.select or ()}
        chosen = tuple(
            (by_key.get(a.key, quote_identifier(a.key)), name) for a, name in zip(output, names, strict=True)
        )
        return replace(self, select=chosen)

    def sql(self, plan: Plan) -> str:
        columns = self.select
        if columns is None:
            columns = tuple((quote_identifier(a.key), a.key) for a in plan.output)
        listed = ", ".join(named(sql, key) for sql, key in columns) or '1 AS "row"'
        parts = [f"{self.with_}SELECT {'DISTINCT ' if self.distinct else ''}{listed}"]
        if self.source:
            parts.append(f"FROM {self.source}")
        if self.where:
            parts.append("WHERE " + " AND ".join(self.where))
        return " ".join(p for p in (*parts, self.group, self.order, self.limit) if p)


def named(sql: str, key: str) -> str:
    """A column under a key, without AS where that is its name already."""
    name = quote_identifier(key)
    return sql if sql == name else f"{sql} AS {name}"
