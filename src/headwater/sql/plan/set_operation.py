"""Set operations: UNION, INTERSECT and EXCEPT, of sets or (ALL) of multisets."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Plan

__all__ = ["SetOperation"]


@dataclass(frozen=True, slots=True)
class SetOperation(Plan):
    """Both sides have the types of ``columns`` already, column by column."""

    kind: str
    every: bool
    left: Plan
    right: Plan
    columns: tuple[Attribute, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.left, self.right)

    def line(self) -> str:
        return f"{self.kind}{' all' if self.every else ''} as [{', '.join(a.key for a in self.columns)}]"
