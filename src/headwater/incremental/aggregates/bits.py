"""bit_and, bit_or and bit_xor, by counting bits.

None of them can be undone row by row, but how many rows have a bit can: it is all of them, any of them, or an odd
number of them. So a key has a count for each bit of the column's type, and a deletion costs what an insertion does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Accumulator, Array, Linear, Values
from headwater.incremental.aggregates.linear import counted
from headwater.kernels.accumulate import BITS

__all__ = ["Bits"]


@dataclass(frozen=True)
class Bits(Linear):
    """bit_and(column), bit_or(column) or bit_xor(column) of whole numbers."""

    column: str
    dtype: pa.DataType
    how: Literal["and", "or", "xor"]

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.dtype)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def text(self) -> str:
        return f"bit_{self.how}({self.column})"

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        bits = self.dtype.bit_width
        return (Accumulator(BITS, (self.column,), present=(self.column,), words=bits), counted(self.column))

    def finish(self, sums: Sequence[Array]) -> Values:
        bits, count = sums[0], sums[1]
        found = bits == count if self.how == "and" else bits > 0 if self.how == "or" else (bits & 1) != 0
        out = np.zeros(len(bits), dtype=np.int64)
        for k in range(bits.shape[1]):
            out |= found[:, k].astype(np.int64) << k
        unused = 64 - bits.shape[1]
        return Values(((out << unused) >> unused)[:, None], count[:, 0] == 0)
