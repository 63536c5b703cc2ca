"""Values: rows written in the query itself. A SELECT without FROM reads one row without columns."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Node, Plan
from headwater.sql.plan.text import expression_text

__all__ = ["Values"]


@dataclass(frozen=True, slots=True)
class Values(Plan):
    """Each row has one expression a column, of the column's type."""

    rows: tuple[tuple[Node, ...], ...]
    columns: tuple[Attribute, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns

    @property
    def children(self) -> tuple[Plan, ...]:
        return ()

    @property
    def expressions(self) -> tuple[Node, ...]:
        return tuple(node for row in self.rows for node in row)

    def line(self) -> str:
        if not self.columns:
            return "one row"
        rows = ", ".join("(" + ", ".join(map(expression_text, row)) + ")" for row in self.rows)
        return f"values {rows} as [{', '.join(a.key for a in self.columns)}]"
