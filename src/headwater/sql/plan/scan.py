"""Scan: the rows of a table, of its newest version or of an earlier one, or of a table function."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headwater.sql.nodes import Attribute, Plan

__all__ = ["Scan"]


@dataclass(frozen=True, slots=True)
class Scan(Plan):
    """``name`` is written with dots between its parts, as the user wrote it; a table function has ``arguments``."""

    name: str
    version: int | None
    timestamp: datetime | None
    columns: tuple[Attribute, ...]
    arguments: tuple[tuple[str | None, object], ...] | None = None

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns

    @property
    def children(self) -> tuple[Plan, ...]:
        return ()

    @property
    def relation(self) -> str:
        """The name by which an executor registers these rows: one for each table and version.

        >>> Scan("orders", 3, None, ()).relation
        'orders@3'
        >>> Scan("table_changes", None, None, (), ((None, "orders"), (None, 2))).relation
        "table_changes('orders', 2)"
        """
        if self.arguments is not None:
            given = (f"{name} => {value!r}" if name else repr(value) for name, value in self.arguments)
            return f"{self.name}({', '.join(given)})"
        if self.version is not None:
            return f"{self.name}@{self.version}"
        return f"{self.name}@{self.timestamp.isoformat()}" if self.timestamp is not None else self.name

    def line(self) -> str:
        return f"scan {self.relation} [{', '.join(a.key for a in self.columns)}]"
