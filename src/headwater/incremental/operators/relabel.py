"""Relabel: the same rows under other names, or with columns that may be null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.operators.link import Link
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet

__all__ = ["Relabel"]


class Relabel(Node):
    """Rows whose words stay as they are; only what they are called changes."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, schema: pa.Schema) -> None:
        layout = Layout(schema)
        assert [c.word for c in layout.columns] == [c.word for c in source.layout.columns], "other words"
        super().__init__([source], layout, label="relabel", detail=", ".join(schema.names))

    def link(self) -> Link:
        return Link()

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        assert delta.rows.shape[1] == self.layout.width
        return ZSet(self.layout, delta.rows, delta.owners)
