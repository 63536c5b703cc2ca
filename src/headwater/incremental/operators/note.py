"""Note: the same rows, with a remark for whoever looks at the circuit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headwater.incremental.operators.link import Link
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet

__all__ = ["Note"]


class Note(Node):
    """Gives what it is given."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, *, label: str, detail: str = "", sql: str = "") -> None:
        super().__init__([source], source.layout, label=label, detail=detail, sql=sql)

    def link(self) -> Link:
        return Link()

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return deltas[0]
