"""Running windows: beside each row the aggregates of its window so far, for tumbling windows and sessions.

So far means the rows of the window up to this one in the order of the series, so rows that nothing puts in order are
refused unless they are equal. A session's end is what it is as far as is known: a gap after the row.
What is held is the last window. Spark has no form of its own that means the same: it would take rows of one time in any
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from headwater.timeseries.aggregates import GROUP, PLACE, Aggregates
from headwater.timeseries.moments import check_room, moment_type, moments_from
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.window_laid import laid
from headwater.timeseries.operators.window_session import session_starts
from headwater.timeseries.reading import new_names
from headwater.timeseries.rows import Rows, key_starts
from headwater.timeseries.searching import series_of
from headwater.timeseries.steps import Step, ends_of, most_of, room_of
from headwater.timeseries.times import time_numbers
from headwater.timeseries.total_order import checked
from headwater.timeseries.windowing import START_AND_END, Bounds, followed

__all__ = ["RunningWindows"]


@dataclass(frozen=True)
class RunningWindows(Keyed):
    """Aggregates of a row's window up to the row; windows of a ``size``, or sessions with a ``gap``.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"t": [1, 4, 12], "v": [1, 2, 3]})
    >>> node = RunningWindows(Values(rows), Ordering("t"), {"total": "sum(v)"}, size=10)
    >>> run_here(node).select(["window_start", "total"]).to_pydict()
    {'window_start': [0, 0, 10], 'total': [1, 3, 3]}
    """

    input: Node
    ordering: Ordering
    texts: Mapping[str, str]
    size: Step | None = None
    offset: int = 0
    gap: int | None = None
    bounds: Bounds = START_AND_END
    shown: str = ""

    @cached_property
    def aggregates(self) -> Aggregates:
        window = f"PARTITION BY {GROUP} ORDER BY {PLACE} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        return Aggregates.read(self.texts, self.input.schema, window=window)

    @cached_property
    def schema(self) -> pa.Schema:
        kind = moment_type(self.input.schema.field(self.ordering.time))
        new_names([*self.bounds.names(), *self.texts], self.input.schema.names, "agg()")
        bounds = [pa.field(name, kind) for name in self.bounds.names()]
        return pa.schema([*self.input.schema, *bounds, *self.aggregates.schema])

    def line(self) -> str:
        what = f"windows of {self.size}" if self.gap is None else f"sessions with a gap of {self.gap}"
        return self.shown or f"{what} so far: {', '.join(self.texts)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        return (Extent(time, time, None if self.size is None else most_of(self.size)),)

    def kernel(self) -> KeyedKernel:
        return _Running(self.ordering, self.size, self.offset, self.gap, self.aggregates, self.schema)


@dataclass(frozen=True, slots=True)
class _Running:
    ordering: Ordering
    size: Step | None
    offset: int
    gap: int | None
    aggregates: Aggregates
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        time = self.ordering.time
        kind = moment_type(rows.schema.field(time))
        held: pa.Table | None = None
        begin = 0
        for chunk, more in followed(checked(rows.sorted(self.ordering.columns), self.ordering)):
            table = chunk if held is None else pa.concat_tables([held, chunk]).combine_chunks()
            times, _ = time_numbers(table.column(time))
            room = 0 if self.size is None else 2 * room_of(self.size)
            check_room(times, room + abs(self.offset) + (self.gap or 0), time)
            starts = key_starts(table, self.ordering.by)
            if self.gap is None:
                assert self.size is not None
                first, start = laid(times, starts, self.size, self.size, self.offset)
            else:
                first = session_starts(times, starts, self.gap)
                start = times[first]
            windows = series_of(first, len(times))
            mine = windows[begin:]
            lo, hi = first[mine], np.arange(begin, len(times)) + 1
            if self.gap is not None:
                end = times[begin:] + self.gap
            else:
                assert self.size is not None
                end = ends_of(start[mine], self.size)
            nothing = pa.nulls(len(times), pa.int64())
            made = self.aggregates.of_rows(table, begin, len(times), lo, hi, windows, nothing)
            bounds = [moments_from(start[mine], kind), moments_from(end, kind)]
            yield pa.Table.from_arrays([*table.slice(begin).columns, *bounds, *made], schema=self.schema)
            if more:
                held = table.slice(int(first[-1]))
                begin = held.num_rows
