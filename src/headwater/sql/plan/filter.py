"""Filter: the rows for which a condition is true; WHERE, HAVING and QUALIFY are all this."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Node, Plan
from headwater.sql.plan.text import expression_text

__all__ = ["Filter"]


@dataclass(frozen=True, slots=True)
class Filter(Plan):
    """Rows for which the condition is false or null are left out."""

    child: Plan
    condition: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return (self.condition,)

    def line(self) -> str:
        return f"filter {expression_text(self.condition)}"
