"""Windows by rows: beside each row the aggregates of so many rows of its series before and after it.

Which rows those are depends on the order of all of them, so rows that nothing puts in order are refused unless they are
equal. Spark's ROWS frames would take such rows in any order, so there is no form of Spark's own that means the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from headwater.timeseries.aggregates import GROUP, PLACE, Aggregates
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.reaching import Reach, neighbourhoods
from headwater.timeseries.reading import new_names
from headwater.timeseries.rows import Rows
from headwater.timeseries.searching import series_of
from headwater.timeseries.total_order import checked

__all__ = ["RowWindows"]


@dataclass(frozen=True)
class RowWindows(Keyed):
    """Aggregates of the ``size`` rows that end with a row, and of ``after`` rows that follow it.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> node = RowWindows(Values(pa.table({"t": [1, 4, 12], "v": [1, 2, 3]})), Ordering("t"), 2, 0, {"total": "sum(v)"})
    >>> run_here(node)["total"].to_pylist()
    [1, 3, 5]
    """

    input: Node
    ordering: Ordering
    size: int
    after: int
    texts: Mapping[str, str]
    shown: str = ""

    @cached_property
    def aggregates(self) -> Aggregates:
        low = f"{self.size - 1} PRECEDING" if self.size > 1 else "CURRENT ROW"
        high = f"{self.after} FOLLOWING" if self.after else "CURRENT ROW"
        window = f"PARTITION BY {GROUP} ORDER BY {PLACE} ROWS BETWEEN {low} AND {high}"
        return Aggregates.read(self.texts, self.input.schema, window=window)

    @cached_property
    def schema(self) -> pa.Schema:
        new_names(self.texts, self.input.schema.names, "agg()")
        return pa.schema([*self.input.schema, *self.aggregates.schema])

    def line(self) -> str:
        return self.shown or f"the last {self.size} rows: {', '.join(self.texts)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        return (Extent(time, time, None if self.size > 1 else 0, None if self.after else 0),)

    def kernel(self) -> KeyedKernel:
        return _RowWindows(self.ordering, self.size, self.after, self.aggregates, self.schema)


@dataclass(frozen=True, slots=True)
class _RowWindows:
    ordering: Ordering
    size: int
    after: int
    aggregates: Aggregates
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering)
        for near in neighbourhoods(chunks, self.ordering, Reach(self.size - 1, self.after)):
            table, starts = near.table, near.starts
            series = series_of(starts, table.num_rows)
            places = np.arange(near.begin, near.end)
            mine = series[near.begin : near.end]
            ends = np.append(starts[1:], table.num_rows)
            lo = np.maximum(places - (self.size - 1), starts[mine])
            hi = np.minimum(places + self.after + 1, ends[mine])
            nothing = pa.nulls(table.num_rows, pa.int64())
            made = self.aggregates.of_rows(table, near.begin, near.end, lo, hi, series, nothing)
            yield pa.Table.from_arrays([*near.rows.columns, *made], schema=self.schema)
