"""Limit: some rows, after leaving some out."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Plan

__all__ = ["Limit"]


@dataclass(frozen=True, slots=True)
class Limit(Plan):
    """``count`` is None where only an OFFSET was given."""

    child: Plan
    count: int | None
    offset: int = 0

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    def line(self) -> str:
        parts = [] if self.count is None else [f"limit {self.count}"]
        return " ".join([*parts, *([f"offset {self.offset}"] if self.offset else [])])
