"""Window: every row below, with columns that are functions of the row's neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Named, Node, Plan
from headwater.sql.plan.text import named_text

__all__ = ["Window"]


@dataclass(frozen=True, slots=True)
class Window(Plan):
    """Each item's expression is a `WindowCall`."""

    child: Plan
    items: tuple[Named, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return (*self.child.output, *(i.attribute for i in self.items))

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return tuple(i.node for i in self.items)

    def line(self) -> str:
        return "window " + ", ".join(map(named_text, self.items))
