"""Join: pairs of rows for which a condition is true, and what becomes of rows without a partner."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.sql.nodes import Attribute, Node, Plan
from headwater.sql.plan.text import expression_text

__all__ = ["Join"]


@dataclass(frozen=True, slots=True)
class Join(Plan):
    """``kind`` is inner, left, right, full, semi, anti or cross; only cross has no condition.

    The right side of an inner, left or cross join may read columns of the left one (LATERAL): it is then computed for
    each row.
    """

    kind: str
    left: Plan
    right: Plan
    condition: Node | None

    @property
    def output(self) -> tuple[Attribute, ...]:
        left, right = self.left.output, self.right.output
        if self.kind in ("semi", "anti"):
            return left
        if self.kind in ("right", "full"):
            left = tuple(replace(a, nullable=True) for a in left)
        if self.kind in ("left", "full"):
            right = tuple(replace(a, nullable=True) for a in right)
        return left + right

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.left, self.right)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return () if self.condition is None else (self.condition,)

    def line(self) -> str:
        on = "" if self.condition is None else f" on {expression_text(self.condition)}"
        return f"{self.kind} join{on}"
