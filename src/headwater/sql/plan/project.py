"""Project: a row for a row, each column an expression of the row below."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Named, Node, Plan
from headwater.sql.plan.text import named_text

__all__ = ["Project"]


@dataclass(frozen=True, slots=True)
class Project(Plan):
    """The select list."""

    child: Plan
    items: tuple[Named, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return tuple(i.attribute for i in self.items)

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return tuple(i.node for i in self.items)

    def line(self) -> str:
        return "project " + ", ".join(map(named_text, self.items))
