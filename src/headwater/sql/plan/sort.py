"""Sort: the same rows in an order."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Node, Ordering, Plan
from headwater.sql.plan.text import ordering_text

__all__ = ["Sort"]


@dataclass(frozen=True, slots=True)
class Sort(Plan):
    """Rows that are equal by all keys stand in any order."""

    child: Plan
    order: tuple[Ordering, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return tuple(o.node for o in self.order)

    def line(self) -> str:
        return "sort " + ", ".join(map(ordering_text, self.order))
