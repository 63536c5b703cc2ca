"""Generate: a row for each element of an array or a map; LATERAL VIEW explode and explode() in a select list."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Node, Plan
from headwater.sql.plan.text import expression_text

__all__ = ["Generate"]


@dataclass(frozen=True, slots=True)
class Generate(Plan):
    """``position`` is the column of the element's number (posexplode); ``outer`` keeps rows without elements."""

    child: Plan
    source: Node
    outer: bool
    position: Attribute | None
    columns: tuple[Attribute, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        position = () if self.position is None else (self.position,)
        return (*self.child.output, *position, *self.columns)

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return (self.source,)

    def line(self) -> str:
        keys = [a.key for a in self.output[len(self.child.output) :]]
        return f"explode{' outer' if self.outer else ''} {expression_text(self.source)} as [{', '.join(keys)}]"
