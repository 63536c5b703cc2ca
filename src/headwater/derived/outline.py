"""Outlines: what a declared artefact would be, known before anything of it is made.

A project declares artefacts that read each other, and all of it is checked before the first of them is made. So each
kind says of a declaration what it would read and which columns it would have, given only the columns of what it reads
(`Kind.outline`). What is read may be no table yet: its columns are those of its own outline (`Shape`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.base.schema import Schema

__all__ = ["Outline", "Shape", "ShapeOf"]


@dataclass(frozen=True, slots=True)
class Shape:
    """A table by its name and columns, whether it is there or not."""

    name: str
    schema: Schema
    where: str

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns, as Arrow has them."""
        return self.schema.arrow


ShapeOf = Callable[[str], Shape]
"""The shape of a name; raises `NotFoundError` for one that stands for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What an artefact would be.

    Parameters
    ----------
    reads : tuple of str
        the names that it would read
    schema : Schema, optional
        the columns that others can read by its name; None where it has no table
    lineage : mapping of str to tuple of str
        for each of its columns, the columns (``table.column``) whose values flow into it
    conditions : tuple of str
        columns that only decide which rows there are
    full : str, optional
        why it would always be computed from scratch, if so
    """

    reads: tuple[str, ...]
    schema: Schema | None = None
    lineage: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    full: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "reads": list(self.reads),
            "schema": None if self.schema is None else self.schema.to_json(),
            "lineage": {name: list(of) for name, of in self.lineage.items()},
            "conditions": list(self.conditions),
            "full": self.full,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Outline:
        """The inverse of `to_json`."""
        return cls(
            reads=tuple(found["reads"]),
            schema=None if found["schema"] is None else Schema.from_json(found["schema"]),
            lineage={name: tuple(of) for name, of in found["lineage"].items()},
            conditions=tuple(found["conditions"]),
            full=found["full"],
        )
