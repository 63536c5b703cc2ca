"""A column on its way through a plan: the name the user sees, and a key that no other column has.

Two tables may both have an ``id``, and a table may be joined with itself. Inside a plan each column therefore has a key
such as ``id#4``, given out once, and expressions name columns by their keys: no scope has to be searched twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.sql.nodes import Column, Node

__all__ = ["Attribute", "Named"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a plan's output."""

    name: str
    key: str
    dtype: pa.DataType
    nullable: bool = True

    @property
    def column(self) -> Column:
        """An expression that reads it."""
        return Column(None, (self.key,), self.dtype, self.nullable)

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.dtype, self.nullable)


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the column it becomes."""

    attribute: Attribute
    node: Node
