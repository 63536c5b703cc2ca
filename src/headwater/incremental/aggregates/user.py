"""Linear aggregates of one's own: a map of rows to numbers, and a function of the sums.

``map`` is given an Arrow table of the columns of the rows that changed, and gives an array of whole numbers or floats
for each sum that it wants; a row counts as often as its weight says. ``finish`` is given the sums of many keys, as
numpy arrays of int64 or float64, and how many rows each has, and gives an Arrow array. Both are called once a step,
whatever the number of keys; the state is a few words a key. Sums of floats are exact until they are given to
``finish``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Accumulator, Array, Linear, Values, failed, from_arrow
from headwater.incremental.aggregates.linear import carried
from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.packing import pack_column, unpack_column
from headwater.incremental.zset import ZSet
from headwater.kernels.accumulate import COUNT, FLOAT, SUM_WORD

__all__ = ["Derivation", "UserLinear"]


@dataclass(frozen=True)
class UserLinear(Linear):
    """A linear aggregate of one's own.

    Parameters
    ----------
    columns : tuple of str
        that ``map`` reads
    sums : tuple of pa.DataType
        int64 or float64, for each array that ``map`` gives
    dtype : pa.DataType
        of the result
    map : callable
        from the columns of some rows to the arrays that are added up
    finishing : callable
        from the sums and the number of rows to the result
    """

    columns: tuple[str, ...]
    sums: tuple[pa.DataType, ...]
    dtype: pa.DataType
    map: Callable[[pa.Table], Sequence[pa.Array]] = field(compare=False)
    finishing: Callable[[Sequence[Array], Array], pa.Array] = field(compare=False)

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.dtype)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.columns

    @property
    def derived(self) -> list[pa.Field]:
        """The columns that are added up."""
        return [pa.field(f"{self.name}: sum {k}", t, nullable=False) for k, t in enumerate(self.sums)]

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        made = [
            Accumulator(FLOAT, (f.name,)) if pa.types.is_floating(f.type) else Accumulator(SUM_WORD, (f.name,), words=2)
            for f in self.derived
        ]
        return (*made, Accumulator(COUNT))

    def finish(self, sums: Sequence[Array]) -> Values:
        given: list[Array] = []
        for one, dtype in zip(sums[:-1], self.sums, strict=True):
            if pa.types.is_floating(dtype):
                given.append(np.ascontiguousarray(one[:, 0]).view(np.float64))
                continue
            high, low = carried(one)
            if ((high >> 31) != (high >> 63)).any():
                raise failed(self, "a sum does not fit a bigint")
            given.append((high << 32) | low)
        try:
            found = self.finishing(given, sums[-1][:, 0].copy())
        except Exception as error:
            raise failed(self, f"{type(error).__name__}: {error}") from error
        if not isinstance(found, pa.Array) or found.type != self.dtype or len(found) != len(sums[-1]):
            raise failed(self, f"it has to give an array of {len(sums[-1])} values of {self.dtype}")
        return from_arrow(found, self.dtype)


class Derivation:
    """Rows with the columns that linear aggregates of one's own want to have added up."""

    def __init__(self, source: Layout, wanted: Sequence[UserLinear]) -> None:
        self._source = source
        self._wanted = tuple(wanted)
        extra = [f for a in wanted for f in a.derived]
        self.target = Layout(pa.schema([*source.schema, *extra]), keys=source.keys)
        pairs = [(i, i) for i in range(len(source.columns))]
        self._moving = Moving(source, self.target, pairs)

    def apply(self, delta: ZSet) -> ZSet:
        """The same rows with these columns."""
        out = self._moving.moved(delta.rows)
        owners: list[object] = []
        for a in self._wanted:
            placed = [self._source.column(c) for c in a.columns]
            arrays = [unpack_column(p, delta.rows) for p in placed]
            table = pa.Table.from_arrays(arrays, schema=pa.schema([pa.field(p.name, p.dtype) for p in placed]))
            try:
                found = list(a.map(table))
            except Exception as error:
                raise failed(a, f"{type(error).__name__}: {error}") from error
            if [getattr(x, "type", None) for x in found] != list(a.sums) or any(len(x) != len(delta) for x in found):
                raise failed(a, f"its map has to give {len(a.sums)} arrays of {len(delta)} values")
            if any(x.null_count for x in found):
                raise failed(a, "its map gives nulls: give 0 for what does not count")
            for f, array in zip(a.derived, found, strict=True):
                pack_column(out, self.target.column(f.name), array, owners)
        return ZSet(self.target, out, delta.owners)
