"""Project: other columns for each row. Linear, as a filter is; rows that become equal add their weights up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.operators.link import Link
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.vectors import put_vector, vector_at
from headwater.incremental.zset import ZSet
from headwater.sql.vectorised import Program

__all__ = ["Computed", "Project"]

Computed = str | Program
"""A column of the input by its name, or an expression."""


class Project(Node):
    """Gives each row the columns (name, how it is made)."""

    kind: ClassVar[Kind] = "lift"

    def __init__(
        self,
        source: Node,
        columns: Sequence[tuple[str, Computed]],
        *,
        label: str = "project",
        detail: str = "",
        sql: str = "",
    ) -> None:
        schema = source.layout.schema
        fields = [
            schema.field(how).with_name(name) if isinstance(how, str) else pa.field(name, how.dtype)
            for name, how in columns
        ]
        layout = Layout(pa.schema(fields))
        super().__init__([source], layout, label=label, detail=detail or ", ".join(n for n, _ in columns), sql=sql)
        pairs = [(schema.get_field_index(how), i) for i, (_, how) in enumerate(columns) if isinstance(how, str)]
        self._moving = Moving(source.layout, layout, pairs)
        self._programs = [(layout.columns[i], how) for i, (_, how) in enumerate(columns) if not isinstance(how, str)]
        self._source = source.layout
        self._link = Link(
            columns=tuple(schema.get_field_index(how) if isinstance(how, str) else how for _, how in columns)
        )

    def link(self) -> Link:
        return self._link

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        out = self._moving.moved(delta.rows)
        owners: list[object] = list(delta.owners)
        columns = self._source.columns
        for placed, program in self._programs:
            found = program.run(lambda i: vector_at(delta.rows, columns[i]), len(delta))
            put_vector(out, placed, found, owners)
        return ZSet(self.layout, out, tuple(owners))
