"""Rows that are at hand: an Arrow table as the beginning of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.timeseries.node import Node

__all__ = ["Values"]


@dataclass(frozen=True, eq=False)
class Values(Node):
    """The rows of an Arrow table."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def line(self) -> str:
        return f"{self.table.num_rows:,} rows at hand"
