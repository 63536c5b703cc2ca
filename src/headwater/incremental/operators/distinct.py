"""Distinct: each row once, as long as its weight is positive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from headwater.incremental.arrangement import Arrangement
from headwater.incremental.circuit.node import Kind, Node
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

__all__ = ["Distinct"]


class Distinct(Node):
    """The rows of positive weight, with weight 1."""

    kind: ClassVar[Kind] = "cogroup"

    def __init__(self, source: Node) -> None:
        super().__init__([source], source.layout, label="distinct")
        names = source.layout.names
        self._arrangement = Arrangement(source.layout, names, keys=len(names))
        self.trace = Trace(self._arrangement.target)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = self._arrangement.apply(deltas[0]).consolidate()
        before = self.trace.weights(delta)[:, 0]
        after = before + delta.weights
        self.trace.stage(delta)
        change = (after > 0).astype(np.int64) - (before > 0)
        at = np.flatnonzero(change)
        rows = delta.rows[at]
        rows[:, -1] = change[at]
        return ZSet(self.layout, rows, delta.owners)

    def commit(self) -> None:
        self.trace.commit()

    def rollback(self) -> None:
        self.trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"trace": self.trace}
