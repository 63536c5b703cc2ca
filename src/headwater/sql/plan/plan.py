"""What every node of a plan can say: its columns, its children, and itself in one line.

A plan is a tree of frozen dataclasses without any engine in it. `dump` prints it, children indented below their parent;
subqueries inside expressions are printed below the node that holds them, and called by number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.sql.nodes import Node, SubqueryCall, walk

if TYPE_CHECKING:
    from headwater.sql.plan.attribute import Attribute

__all__ = ["Plan"]


class Plan:
    """The base of all plan nodes."""

    __slots__ = ()

    @property
    def output(self) -> tuple[Attribute, ...]:
        """The columns it gives, in order."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans it reads."""
        raise NotImplementedError

    @property
    def expressions(self) -> tuple[Node, ...]:
        """The expressions it evaluates."""
        return ()

    def line(self) -> str:
        """The node without its children."""
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        """Names, types and nullability of the rows."""
        return pa.schema([a.field for a in self.output])

    def subqueries(self) -> Iterator[SubqueryCall]:
        """The subqueries in this node's own expressions."""
        for expression in self.expressions:
            for node in walk(expression):
                if isinstance(node, SubqueryCall):
                    yield node

    def walk(self) -> Iterator[Plan]:
        """Every plan node, those of subqueries too, the root first."""
        yield self
        for child in self.children:
            yield from child.walk()
        for subquery in self.subqueries():
            yield from subquery.plan.walk()

    def dump(self) -> str:
        """The plan as readable text."""
        return "\n".join(self._lines(0)) + "\n"

    def _lines(self, depth: int) -> Iterator[str]:
        yield "  " * depth + self.line()
        for child in self.children:
            yield from child._lines(depth + 1)
        for subquery in self.subqueries():
            yield "  " * (depth + 1) + f"subquery ({subquery.kind})"
            yield from subquery.plan._lines(depth + 2)
