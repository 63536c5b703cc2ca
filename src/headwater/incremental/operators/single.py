"""Single: rows of which each key may have one; a second one stops the step,
as a scalar subquery does that gives two rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headwater.base.errors import ExpressionError
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet

__all__ = ["Single"]


class Single(Node):
    """Gives the rows of its first input, if the second has no count above one: one column of counts, the last."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, rows: Node, counts: Node, *, sql: str = "") -> None:
        super().__init__([rows, counts], rows.layout, label="single", detail="at most one row", sql=sql)
        self._count = counts.layout.columns[-1]

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        rows, counts = deltas
        counts = counts.consolidate()
        words = counts.rows[:, self._count.word]
        if np.any((words > 1) & (counts.weights > 0)):
            raise ExpressionError.failed("(SELECT …)", "more than one row returned by a subquery used as an expression")
        return rows
