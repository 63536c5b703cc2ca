"""Cycles: a view may read views, but not itself by way of them. No order of refreshes would bring such views to rest."""

from __future__ import annotations

from collections.abc import Callable

from headwater.base.errors import InputError
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.output_columns import place_of
from headwater.lake.table import Table

__all__ = ["check_cycle"]


def check_cycle(view: str, sql: str, source: str, table: Callable[[str], Table]) -> None:
    """Raise if a source of a view reads that view, through however many others."""
    path = _path(source, view, table, set())
    if path is not None:
        raise InputError.view_cycle([view, *path]).placed_at(sql, place_of(sql, source))


def _path(name: str, to: str, table: Callable[[str], Table], seen: set[str]) -> list[str] | None:
    """The views from one to another, each of which reads the next."""
    if name == to:
        return [to]
    if name in seen:
        return None
    seen.add(name)
    found = table(name)
    definition = Definition.of(found.snapshot) if found.exists() else None
    if definition is None:
        return None
    for source in sorted({source for source, _ in definition.tables.values()}):
        path = _path(source, to, table, seen)
        if path is not None:
            return [name, *path]
    return None
