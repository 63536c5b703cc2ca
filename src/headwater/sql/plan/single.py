"""Single: rows of which there may be one for each value of some columns; a second one is an error."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Plan

__all__ = ["Single"]


@dataclass(frozen=True, slots=True)
class Single(Plan):
    """What a scalar subquery may give: at most one row for each value of ``keys``, or at most one at all without keys.

    Two rows of one value stop the query with Spark's error for a subquery of more than one row. Nulls are one value.
    """

    child: Plan
    keys: tuple[Attribute, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    def line(self) -> str:
        return f"single by [{', '.join(a.key for a in self.keys)}]"
