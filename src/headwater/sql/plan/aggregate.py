"""Aggregate: one row for each group, with GROUPING SETS, ROLLUP and CUBE as a list of sets of keys."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Named, Node, Plan
from headwater.sql.plan.text import named_text

__all__ = ["Aggregate"]


@dataclass(frozen=True, slots=True)
class Aggregate(Plan):
    """``keys`` are expressions of the child's rows; ``aggregates`` hold an `AggregateCall` or a ``grouping`` call.

    ``sets`` names, for each grouping set, the keys it groups by, by their position; a key outside the set is null. None
    is the plain GROUP BY of all keys. Without keys and sets there is one group, even of no rows.
    """

    child: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]
    sets: tuple[tuple[int, ...], ...] | None = None

    @property
    def output(self) -> tuple[Attribute, ...]:
        return tuple(n.attribute for n in (*self.keys, *self.aggregates))

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return tuple(n.node for n in (*self.keys, *self.aggregates))

    def line(self) -> str:
        keys = ", ".join(map(named_text, self.keys))
        sets = ""
        if self.sets is not None:
            names = [a.attribute.key for a in self.keys]
            sets = " sets " + ", ".join("(" + ", ".join(names[i] for i in s) + ")" for s in self.sets)
        return f"aggregate by [{keys}]{sets} give [{', '.join(map(named_text, self.aggregates))}]"
