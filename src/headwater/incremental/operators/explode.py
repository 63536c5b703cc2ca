"""Explode: a row for each element of an array. Linear: the elements of a row come and go with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.packing import pack_column
from headwater.incremental.vectors import vector_at
from headwater.incremental.zset import ZSet
from headwater.sql.vectorised import Program

__all__ = ["Explode"]


class Explode(Node):
    """The columns (column, name) of a row with the elements of an array.

    Parameters
    ----------
    program
        gives the array
    element, position
        the names of the columns for the element and for its number, which is from 0 on; None if they are not wanted
    outer
        does a row without elements give one row, with nulls?
    """

    kind: ClassVar[Kind] = "lift"

    def __init__(
        self,
        source: Node,
        program: Program,
        columns: Sequence[tuple[str, str]],
        *,
        element: str | None,
        position: str | None = None,
        outer: bool = False,
        sql: str = "",
    ) -> None:
        schema = source.layout.schema
        fields = [schema.field(a).with_name(b) for a, b in columns]
        if position is not None:
            fields.append(pa.field(position, pa.int32()))
        if element is not None:
            fields.append(pa.field(element, program.dtype.value_type))
        layout = Layout(pa.schema(fields))
        detail = f"{'outer ' if outer else ''}{program.text}"
        super().__init__([source], layout, label="explode", detail=detail, sql=sql)
        self._program, self._outer = program, outer
        self._element = None if element is None else layout.column(element)
        self._position = None if position is None else layout.column(position)
        pairs = [(schema.get_field_index(a), i) for i, (a, _) in enumerate(columns)]
        self._moving = Moving(source.layout, layout, pairs)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        if not len(delta):
            return self.empty
        columns = delta.layout.columns
        lists = self._program.run(lambda i: vector_at(delta.rows, columns[i]), len(delta)).to_arrow()
        sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        counts = np.maximum(sizes, 1) if self._outer else sizes
        parents = np.repeat(np.arange(len(delta)), counts)
        starts = np.cumsum(counts) - counts
        places = np.arange(len(parents)) - starts[parents]
        there = places < sizes[parents]
        out = self._moving.moved(delta.rows[parents])
        owners: list[object] = list(delta.owners)
        if self._position is not None:
            numbers = pa.array(places.astype(np.int32), mask=~there)
            pack_column(out, self._position, numbers, owners)
        if self._element is not None:
            items = pc.list_flatten(lists)
            if not there.all():
                at = np.cumsum(there) - 1
                items = items.take(pa.array(at, mask=~there))
            if items.type != self._element.dtype:
                items = items.cast(self._element.dtype)
            pack_column(out, self._element, items, owners)
        return ZSet(self.layout, out, tuple(owners))
