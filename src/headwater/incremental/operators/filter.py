"""Filter: the rows for which a condition is true. Linear: the filter of a change is the change of the filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headwater.incremental.circuit.node import Kind, Node
from headwater.incremental.vectors import vector_at
from headwater.incremental.zset import ZSet
from headwater.sql.vectorised import Program

__all__ = ["Filter"]


class Filter(Node):
    """Keeps the rows whose condition is true; null and false are not."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, program: Program, *, detail: str = "", sql: str = "") -> None:
        super().__init__([source], source.layout, label="filter", detail=detail, sql=sql or detail)
        self._program = program

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        columns = self.layout.columns
        kept = self._program.filter(lambda i: vector_at(delta.rows, columns[i]), len(delta))
        return delta if kept is None else delta.filtered(kept)
