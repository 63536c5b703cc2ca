"""Distinct: each row once."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Plan

__all__ = ["Distinct"]


@dataclass(frozen=True, slots=True)
class Distinct(Plan):
    """Nulls are equal to each other, so are NaNs, and -0.0 comes out as 0.0."""

    child: Plan

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    def line(self) -> str:
        return "distinct"
