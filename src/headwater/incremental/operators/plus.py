"""Plus, minus and negate: the group of Z-sets, on streams. UNION ALL is plus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headwater.incremental.layout import Layout
from headwater.incremental.operators.link import Link
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["Negate", "Plus"]


class Plus(Node):
    """The sum of streams of one layout."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, inputs: Sequence[Node], *, sql: str = "") -> None:
        super().__init__(inputs, Layout(inputs[0].layout.schema), label="plus", sql=sql)
        assert all(i.layout.schema.equals(self.layout.schema) for i in inputs), "plus of different rows"

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return concatenate([ZSet(self.layout, d.rows, d.owners) for d in deltas if len(d)], self.layout)


class Negate(Node):
    """The same rows with opposite weights."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node) -> None:
        super().__init__([source], source.layout, label="negate")

    def link(self) -> Link:
        return Link(negated=True)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return -deltas[0]
