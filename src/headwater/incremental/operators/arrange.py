"""Arrange: remember a stream by a key.

The one place where inputs of joins and cogroups are kept. All consumers that need the same stream by the same key share
one node, and so one trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from headwater.incremental.arrangement import Arrangement
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

__all__ = ["Arrange"]


class Arrange(Node):
    """Gives its input in another layout, and keeps its sum in a trace."""

    kind: ClassVar[Kind] = "arrange"

    def __init__(self, source: Node, arrangement: Arrangement) -> None:
        target = arrangement.target
        detail = "by " + (", ".join(target.names[: target.keys]) or "nothing")
        if target.order:
            detail += " order " + ", ".join(o.column for o in target.order)
        super().__init__([source], target, label="arrange", detail=detail)
        self.arrangement = arrangement
        self.trace = Trace(target)
        self.is_loose = False
        """Are all readers content with rows in any order,
        listed more than once? Then small changes are sorted when it is needed.
        """

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        if not len(deltas[0].rows):
            return self.empty
        return self.staged(self.arrangement.apply(deltas[0]))

    def staged(self, arranged: ZSet) -> ZSet:
        """Take rows that are in the layout already."""
        if self.is_loose:
            self.trace.stage_loose(arranged)
            return arranged
        run = self.trace.stage(arranged)
        return self.empty if run is None else run.zset()

    def commit(self) -> None:
        self.trace.commit()

    def rollback(self) -> None:
        self.trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"trace": self.trace}
