"""sum and avg of floats, exact until they are read.

The result is the true sum rounded once to the nearest double (half to even): `math.fsum` of the rows that are there. It
does not depend on their order, on batches or shards, nor on rows that came and went, where a running sum would. Spark
adds doubles in the order in which it meets them, and so gives one of several sums near this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Accumulator, Array, Linear, Values
from headwater.incremental.aggregates.linear import counted
from headwater.kernels.accumulate import FLOAT

__all__ = ["AverageDouble", "SumDouble"]


@dataclass(frozen=True)
class SumDouble(Linear):
    """sum(column) of floats: a double."""

    column: str

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.float64())

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def text(self) -> str:
        return f"sum({'DISTINCT ' * self.distinct}{self.column})"

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        return (Accumulator(FLOAT, (self.column,), present=(self.column,)), counted(self.column))

    def finish(self, sums: Sequence[Array]) -> Values:
        return Values(sums[0], sums[1][:, 0] == 0)


@dataclass(frozen=True)
class AverageDouble(SumDouble):
    """avg(column) of floats: the rounded sum over the count."""

    @property
    def text(self) -> str:
        return f"avg({'DISTINCT ' * self.distinct}{self.column})"

    def finish(self, sums: Sequence[Array]) -> Values:
        count = sums[1][:, 0]
        nulls = count == 0
        values = np.ascontiguousarray(sums[0][:, 0]).view(np.float64) / np.where(nulls, 1, count)
        values[values != values] = np.nan  # the one NaN
        return Values(values.view(np.int64)[:, None], nulls)
