"""The rows of several streams: union.

Columns are matched by name, and come in the first stream's order; a row that is in both is there twice. Types may
differ where the wider one holds both: whole numbers, floats, decimals within 38 digits. Anything else is refused: a
number that turns into a text silently is how columns get lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.node import Node, RowKernel, Stacked
from headwater.timeseries.wider_type import wider

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Union"]


@dataclass(frozen=True)
class Union(Stacked):
    """All rows of two inputs or more.

    >>> from headwater.timeseries.operators.values import Values
    >>> a, b = pa.table({"v": [1], "w": ["x"]}), pa.table({"w": ["y"], "v": pa.array([2], pa.int8())})
    >>> from headwater.timeseries.running.here import run_here
    >>> run_here(Union((Values(a), Values(b)))).to_pylist()
    [{'v': 1, 'w': 'x'}, {'v': 2, 'w': 'y'}]
    """

    streams: tuple[Node, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        first, *others = [node.schema for node in self.streams]
        fields = {f.name: f for f in first}
        for other in others:
            if set(other.names) != set(fields) or len(other) != len(fields):
                have, want = ", ".join(other.names), ", ".join(fields)
                raise InputError.bad_argument("other", f"a stream of {have}", f"one with the same columns: {want}")
            for f in other:
                kind = wider(fields[f.name].type, f.type)
                if kind is None:
                    what = f"a stream whose `{f.name}` is {f.type}"
                    raise InputError.bad_argument("other", what, f"{fields[f.name].type}, or one cast to it")
                fields[f.name] = pa.field(f.name, kind)
        return pa.schema(fields.values())

    @property
    def frame_first(self) -> bool:
        return True

    def line(self) -> str:
        return "union"

    def kernels(self) -> tuple[RowKernel, ...]:
        return tuple(_Fit(self.schema) for _ in self.streams)

    def frame(self, *frames: DataFrame) -> DataFrame:
        first, *others = frames
        for other in others:
            first = first.unionByName(other)
        return first


@dataclass(frozen=True, slots=True)
class _Fit:
    schema: pa.Schema

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.select(self.schema.names).cast(self.schema)
