"""Sliding windows: beside each row the aggregates of the rows of its series within a length of time around it.

The frame is Spark's RANGE: all rows whose times are within it, also those of the row's own time, in whatever order.
In sorted rows it is a stretch, and both of its ends are found by a search. A chunk is answered with what its rows
reach on both sides, so a series may be larger than memory.

Spark's own form is the same text over a RANGE frame, except where an aggregate goes by the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.aggregate_calls import over
from headwater.timeseries.aggregates import GROUP, TIME, Aggregates
from headwater.timeseries.moments import check_room, moment_type
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.querying import quoted
from headwater.timeseries.reaching import Reach, neighbourhoods
from headwater.timeseries.reading import new_names
from headwater.timeseries.rows import Rows
from headwater.timeseries.searching import first_from, series_of
from headwater.timeseries.times import time_numbers
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SlidingWindows"]


@dataclass(frozen=True)
class SlidingWindows(Keyed):
    """Aggregates of the rows whose times are between ``low`` and ``high`` from a row's own, both included.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"t": [1, 4, 12], "v": [1, 2, 3]})
    >>> node = SlidingWindows(Values(rows), Ordering("t"), -3, 0, {"total": "sum(v)"})
    >>> run_here(node)["total"].to_pylist()
    [1, 3, 3]
    """

    input: Node
    ordering: Ordering
    low: int
    high: int
    texts: Mapping[str, str]
    shown: str = ""

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise InputError.bad_argument("window", self.line(), "a window that a row can be in")

    @cached_property
    def aggregates(self) -> Aggregates:
        frame = f"RANGE BETWEEN {_bound(self.low)} AND {_bound(self.high)}"
        window = f"PARTITION BY {GROUP} ORDER BY {TIME} {frame}"
        return Aggregates.read(self.texts, self.input.schema, window=window)

    @cached_property
    def schema(self) -> pa.Schema:
        moment_type(self.input.schema.field(self.ordering.time))
        new_names(self.texts, self.input.schema.names, "agg()")
        return pa.schema([*self.input.schema, *self.aggregates.schema])

    def line(self) -> str:
        return self.shown or f"sliding from {self.low} to {self.high}: {', '.join(self.texts)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        return (Extent(time, time, max(0, -self.low), max(0, self.high)),)

    def kernel(self) -> KeyedKernel:
        return _Sliding(self.ordering, self.low, self.high, self.aggregates, self.schema)

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        if self.aggregates.ordered:
            return None
        kind = self.input.schema.field(self.ordering.time).type
        by = ", ".join(map(quoted, self.ordering.by))
        bounds = f"RANGE BETWEEN {_spark_bound(self.low, kind)} AND {_spark_bound(self.high, kind)}"
        window = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {quoted(self.ordering.time)} {bounds}"
        made = [f"({over(text, window)}) AS {quoted(name)}" for name, text in self.texts.items()]
        return frames[0].selectExpr(*map(quoted, self.input.schema.names), *made)


def _bound(distance: int) -> str:
    if not distance:
        return "CURRENT ROW"
    return f"{abs(distance)} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"


def _spark_bound(distance: int, kind: pa.DataType) -> str:
    if not distance or not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return _bound(distance)
    length = abs(distance)
    text = f"'{length}' DAY" if pa.types.is_date(kind) else f"'{length // 1_000_000}.{length % 1_000_000:06d}' SECOND"
    return f"INTERVAL {text} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"


@dataclass(frozen=True, slots=True)
class _Sliding:
    ordering: Ordering
    low: int
    high: int
    aggregates: Aggregates
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = rows.sorted(self.ordering.columns)
        if self.aggregates.ordered:
            chunks = checked(chunks, self.ordering, self.aggregates.ordered)
        for near in neighbourhoods(chunks, self.ordering, Reach(max(0, -self.low), max(0, self.high), in_time=True)):
            table = near.table
            times, _ = time_numbers(table.column(self.ordering.time))
            check_room(times, abs(self.low) + abs(self.high), self.ordering.time)
            starts = near.starts
            series = series_of(starts, len(times))
            mine, asked = series[near.begin : near.end], times[near.begin : near.end]
            lo = first_from(times, starts, mine, asked + self.low)
            hi = first_from(times, starts, mine, asked + self.high + 1)
            made = self.aggregates.of_rows(table, near.begin, near.end, lo, hi, series, pa.array(times))
            yield pa.Table.from_arrays([*near.rows.columns, *made], schema=self.schema)
