"""Shift: the value of a column so many rows before (or after) in the series.

The rows are sorted, so a shifted column is the column itself, moved: its buffers are cut and put together, and only
where the row looked for lies in another series there is the fill value. A chunk needs just the ``n`` rows before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.series import extended, extended_schema
from headwater.timeseries.querying import quoted
from headwater.timeseries.reaching import Neighbourhood, Reach, neighbourhoods, places
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Shift", "shifted"]


@dataclass(frozen=True)
class Shift(Keyed):
    """Columns as they were ``n`` rows before; after, where ``n`` is negative.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = pa.table({"s": ["a", "b", "a"], "t": [2, 1, 1], "p": [7, 9, 5]})
    >>> shifted = run_here(Shift(Values(trades), Ordering("t", ("s",)), {"before": "p"}, 1, {"p": 0}))
    >>> [tuple(row.values()) for row in shifted.to_pylist()]
    [('a', 1, 5, 0), ('a', 2, 7, 5), ('b', 1, 9, 0)]
    """

    input: Node
    ordering: Ordering
    columns: Mapping[str, str]
    """By the new name, the column that is shifted."""
    n: int
    fills: Mapping[str, Any]
    """By column, what stands where there is no such row; null for the others."""

    @property
    def schema(self) -> pa.Schema:
        below = self.input.schema
        return extended_schema(below, {new: below.field(old).type for new, old in self.columns.items()})

    def line(self) -> str:
        return f"shift {', '.join(dict.fromkeys(self.columns.values()))} by {self.n} row(s)"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        if time in self.columns:
            return (None,)
        return (Extent(time, time, None if self.n > 0 else 0, None if self.n < 0 else 0),)

    def kernel(self) -> KeyedKernel:
        fills = {c: pa.scalar(self.fills.get(c), self.input.schema.field(c).type) for c in self.columns.values()}
        return _Shift(self.ordering, dict(self.columns), self.n, fills)

    def frame(self, *frames: DataFrame) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        ordering = self.ordering
        window = Window.partitionBy(*map(quoted, ordering.by)).orderBy(
            *map(quoted, (ordering.time, *ordering.tiebreak))
        )
        new = {}
        for name, column in self.columns.items():
            # A struct around the value tells a null from no row.
            found = f.lag(f.struct(f.col(quoted(column)).alias("value")), self.n).over(window)
            fill = f.lit(self.fills.get(column)).cast(frames[0].schema[column].dataType)
            new[name] = f.when(found.isNull(), fill).otherwise(found["value"])
        return frames[0].select(
            *[new[n].alias(n) if n in new else f.col(quoted(n)) for n in self.schema.names],
        )


@dataclass(frozen=True, slots=True)
class _Shift:
    ordering: Ordering
    columns: Mapping[str, str]
    n: int
    fills: Mapping[str, pa.Scalar]

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering)
        reach = Reach(max(self.n, 0), max(-self.n, 0))
        for near in neighbourhoods(chunks, self.ordering, reach):
            found: dict[str, pa.ChunkedArray] = {}
            hidden = _missing(near, self.n)
            for new, old in self.columns.items():
                found[new] = _moved(near, near.table.column(old), self.n, self.fills[old], hidden)
            yield extended(near.rows, found)


def shifted(near: Neighbourhood, column: pa.ChunkedArray, n: int, fill: pa.Scalar) -> pa.ChunkedArray:
    """For the rows to be answered, a column's values ``n`` rows before, or the fill."""
    return _moved(near, column, n, fill, _missing(near, n))


def _missing(near: Neighbourhood, n: int) -> pa.Array:
    """For which of the rows to be answered there is no such row."""
    rows = near.table.num_rows
    if n == 1:
        gone = np.zeros(rows, np.bool_)
        gone[near.starts] = True
    elif n >= 0:
        gone = places(near.starts, rows) < n
    else:
        lengths = np.diff(near.starts, append=rows)
        gone = places(near.starts, rows) >= np.repeat(lengths, lengths) + n
    return pa.array(gone[near.begin : near.end])


def _moved(near: Neighbourhood, column: pa.ChunkedArray, n: int, fill: pa.Scalar, missing: pa.Array) -> pa.ChunkedArray:
    begin, count = near.begin - n, near.end - near.begin
    before = min(max(-begin, 0), count)
    taken = column.slice(max(begin, 0), max(count - before, 0))
    parts = [pa.nulls(before, column.type), *taken.chunks]
    after = count - before - len(taken)
    moved = pa.chunked_array([*parts, pa.nulls(after, column.type)], column.type)
    try:
        return pc.if_else(missing, fill, moved)
    except pa.ArrowNotImplementedError:
        places_of = pa.array(np.where(np.asarray(missing), len(moved), np.arange(count)))
        return pa.chunked_array([*moved.chunks, pa.array([fill.as_py()], column.type)], column.type).take(places_of)
