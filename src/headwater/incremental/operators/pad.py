"""Pad: rows with nulls for the columns they do not have, as an outer join gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.link import Link
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.zset import ZSet

__all__ = ["Pad"]


class Pad(Node):
    """Gives rows of ``schema``: ``columns`` says which of its columns come from which of the source's."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, schema: pa.Schema, columns: Mapping[str, str]) -> None:
        layout = Layout(schema)
        missing = [c for c in layout.columns if c.name not in columns]
        super().__init__([source], layout, label="pad", detail=", ".join(c.name for c in missing))
        pairs = [
            (source.layout.schema.get_field_index(theirs), schema.get_field_index(mine))
            for mine, theirs in columns.items()
        ]
        self._moving = Moving(source.layout, layout, pairs)
        self._nulls: dict[int, int] = {}
        for c in missing:
            assert c.nullable, "a column that is missing has to be nullable"
            self._nulls[c.null_word] = self._nulls.get(c.null_word, 0) | 1 << c.null_bit

        self._link = Link(
            columns=tuple(
                source.layout.schema.get_field_index(columns[name]) if name in columns else None
                for name in schema.names
            )
        )

    def link(self) -> Link:
        return self._link

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        out = self._moving.moved(delta.rows)
        for word, bits in self._nulls.items():
            out[:, word] |= np.int64(bits - (1 << 64) if bits >> 63 else bits)
        return ZSet(self.layout, out, delta.owners)
