"""Constant: rows that are there from the first step on, as VALUES gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

__all__ = ["Constant"]


class Constant(Node):
    """Gives the rows of a table in the first step, on the first shard; its state is that it did."""

    kind: ClassVar[Kind] = "source"

    def __init__(self, rows: pa.Table, *, sql: str = "", first_shard: bool = True) -> None:
        super().__init__([], Layout(rows.schema), label="values", detail=f"{rows.num_rows} rows", sql=sql)
        self._rows = ZSet.packed(self.layout, rows).consolidate()
        self._first_shard = first_shard
        self._given = Trace(self.layout)

    @property
    def restless(self) -> bool:  # type: ignore[override]
        """Are there rows still to be given?"""
        return self._first_shard and not len(self._given) and len(self._rows) > 0

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        if not self.restless:
            return self.empty
        self._given.stage(self._rows)
        return self._rows

    def commit(self) -> None:
        self._given.commit()

    def rollback(self) -> None:
        self._given.rollback()

    def traces(self) -> Mapping[str, Trace]:
        return {"given": self._given}
