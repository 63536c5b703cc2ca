"""Filter: the rows for which a condition is true. Linear: the filter of a change is the change of the filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from headwater.incremental.limits import limits_of
from headwater.incremental.operators.link import Link
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.vectors import vector_at
from headwater.incremental.zset import ZSet
from headwater.kernels.limits import within
from headwater.sql.vectorised import Program

__all__ = ["Filter"]


class Filter(Node):
    """Keeps the rows whose condition is true; null and false are not."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, program: Program, *, detail: str = "", sql: str = "") -> None:
        super().__init__([source], source.layout, label="filter", detail=detail, sql=sql or detail)
        self._program = program
        self._limits = limits_of(program.node, source.layout)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        if self._limits is not None:
            return self._within(delta, self._limits)
        columns = self.layout.columns
        kept = self._program.filter(lambda i: vector_at(delta.rows, columns[i]), len(delta))
        return delta if kept is None else delta.filtered(kept)

    def link(self) -> Link:
        return Link(condition=self._program, limits=self._limits)

    def _within(self, delta: ZSet, limits: npt.NDArray[np.int64]) -> ZSet:
        n = len(delta.rows)
        out = np.empty((n, self.layout.width), dtype=np.int64)
        count = within(delta.rows, limits, out)
        if count == n:
            return delta
        return ZSet(self.layout, out[:count], delta.owners, consolidated=delta.consolidated, net=delta.net)
