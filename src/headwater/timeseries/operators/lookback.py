"""Lookback features: of each row, the features of the rows before it, for a model that takes them all at once.

The features of a row are a list of numbers, those of the last ``size`` rows a list of such lists, the oldest first,
without the row itself. All of it is one list of numbers and two of offsets: no row is handled alone. `exact` leaves out
rows with fewer rows before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.series import extended, extended_schema
from headwater.timeseries.plain_aggregates import schema_for
from headwater.timeseries.querying import RowsQuery, quoted
from headwater.timeseries.reaching import Neighbourhood, Reach, neighbourhoods, places
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Lookback"]


@dataclass(frozen=True)
class Lookback(Keyed):
    """The features of the last rows as a list of lists.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"t": [1, 2, 3], "a": [1, 2, 3], "b": [4, 5, 6]}))
    >>> run_here(Lookback(rows, Ordering("t"), ("a", "b"), 2, "features"))["features"].to_pylist()
    [[], [[1, 4]], [[1, 4], [2, 5]]]
    """

    input: Node
    ordering: Ordering
    columns: tuple[str, ...]
    size: int
    name: str
    exact: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        return extended_schema(self.input.schema, {self.name: pa.list_(pa.list_(self._kind))})

    @cached_property
    def _kind(self) -> pa.DataType:
        """What Spark makes of the columns' types in one array."""
        text = f"SELECT array({', '.join(map(quoted, self.columns))}) AS x FROM rows"
        near = schema_for(text, self.input.schema)
        return RowsQuery.read(text, {"rows": near}, self.line()).schema.field(0).type.value_type

    def line(self) -> str:
        return f"lookback {', '.join(self.columns)} over {self.size} row(s)"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        return (None if time == self.name else Extent(time, time, before=None),)

    def kernel(self) -> KeyedKernel:
        return _Lookback(self.ordering, self.columns, self.size, self.name, self.exact, self._kind)

    def frame(self, *frames: DataFrame) -> DataFrame:
        by = ", ".join(map(quoted, self.ordering.by))
        order = ", ".join(map(quoted, (self.ordering.time, *self.ordering.tiebreak)))
        window = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {order}"
        features = ", ".join(map(quoted, self.columns))
        text = f"collect_list(array({features})) OVER ({window} ROWS BETWEEN {self.size} PRECEDING AND 1 PRECEDING)"
        found = frames[0].selectExpr(
            *[f"{text} AS {quoted(n)}" if n == self.name else quoted(n) for n in self.schema.names]
        )
        return found.where(f"size({quoted(self.name)}) = {self.size}") if self.exact else found


@dataclass(frozen=True, slots=True)
class _Lookback:
    ordering: Ordering
    columns: tuple[str, ...]
    size: int
    name: str
    exact: bool
    kind: pa.DataType

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering)
        for near in neighbourhoods(chunks, self.ordering, Reach(self.size)):
            lists, full = self._lists(near)
            table = extended(near.rows, {self.name: lists})
            yield table.filter(pa.array(full)) if self.exact else table

    def _lists(self, near: Neighbourhood) -> tuple[pa.Array, np.ndarray]:
        rows, width = near.table.num_rows, len(self.columns)
        parts = [_whole(near.table.column(name).cast(self.kind)) for name in self.columns]
        counts = np.minimum(places(near.starts, rows)[near.begin : near.end], self.size)
        offsets = np.concatenate(([0], np.cumsum(counts)))
        # The row that each inner list is of: from the first of the rows looked back at to the last.
        last = np.arange(near.begin, near.end)
        first = np.repeat(last - counts - offsets[:-1], counts)
        which = first + np.arange(offsets[-1])
        # Features stand one column after the other; a row's are one of each.
        flat = pa.concat_arrays(parts).take(pa.array((which[:, None] + np.arange(width) * rows).ravel()))
        inner = pa.ListArray.from_arrays(pa.array(np.arange(len(which) + 1) * width, pa.int32()), flat)
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner)
        return lists.cast(pa.list_(pa.list_(self.kind))), counts == self.size


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
