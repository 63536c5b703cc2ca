"""Sessions: stretches of a series without a gap longer than a given one, one row for each.

In sorted rows a session begins where the series does, or a row is more than the gap after the one before it; it ends a
gap after its last row. All sessions but the last of a chunk are complete.

Spark's own form is session_window() on timestamps. It has none for dates and whole numbers, and where an aggregate goes
by the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.timeseries.aggregates import Aggregates
from headwater.timeseries.moments import check_room, moment_type
from headwater.timeseries.node import Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.querying import quoted
from headwater.timeseries.rows import Rows, key_starts
from headwater.timeseries.times import time_numbers
from headwater.timeseries.windowing import START_AND_END, Bounds, followed, timed_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SessionWindows", "session_starts"]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SessionWindows(Keyed):
    """Aggregates of sessions.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"t": [1, 4, 12], "v": [1, 2, 3]})
    >>> node = SessionWindows(Values(rows), Ordering("t"), 3, {"total": "sum(v)"})
    >>> [tuple(row.values()) for row in run_here(node).to_pylist()]
    [(1, 7, 3), (12, 15, 3)]
    """

    input: Node
    ordering: Ordering
    gap: int
    texts: Mapping[str, str]
    bounds: Bounds = START_AND_END
    shown: str = ""

    @cached_property
    def aggregates(self) -> Aggregates:
        return Aggregates.read(self.texts, self.input.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.bounds.schema(self.input.schema, self.ordering, self.aggregates.schema)

    def line(self) -> str:
        return self.shown or f"sessions with a gap of {self.gap}: {', '.join(self.texts)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def kernel(self) -> KeyedKernel:
        return _Sessions(self.ordering, self.gap, self.aggregates, self.bounds, self.schema)

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        if self.aggregates.ordered or not pa.types.is_timestamp(self.input.schema.field(self.ordering.time).type):
            return None
        from pyspark.sql import functions as f

        keys = [f.col(quoted(name)) for name in self.ordering.by]
        window = f.session_window(f.col(quoted(self.ordering.time)), f"{self.gap} microseconds")
        made = [f.expr(text).alias(name) for name, text in self.texts.items()]
        found = frames[0].groupBy(*keys, window.alias("__hw_window")).agg(*made)
        start, end = f.col("__hw_window.start"), f.col("__hw_window.end")
        bounds = [c.alias(n) for n, c in ((self.bounds.start, start), (self.bounds.end, end)) if n is not None]
        if self.bounds.delay is not None:
            late = f.expr(f"INTERVAL '{self.bounds.delay / 1_000_000:.6f}' SECOND")
            bounds.append((end + late).alias(self.bounds.complete))
        return found.select(*keys, *bounds, *map(f.col, map(quoted, self.texts)))


@dataclass(frozen=True, slots=True)
class _Sessions:
    ordering: Ordering
    gap: int
    aggregates: Aggregates
    bounds: Bounds
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        held: pa.Table | None = None
        kind = moment_type(rows.schema.field(self.ordering.time))
        for chunk, more in followed(timed_rows(rows, self.ordering, self.aggregates)):
            table = chunk if held is None else pa.concat_tables([held, chunk]).combine_chunks()
            times, _ = time_numbers(table.column(self.ordering.time))
            check_room(times, self.gap, self.ordering.time)
            first = session_starts(times, key_starts(table, self.ordering.by), self.gap)
            after = np.append(first[1:], len(times))
            if more:
                held = table.slice(int(first[-1]))
                first, after = first[:-1], after[:-1]
            if len(first):
                start, end = times[first], times[after - 1] + self.gap
                columns = self.bounds.columns(table, self.ordering, first, start, end, kind)
                columns += self.aggregates.of_windows(table, first, after, joined=True)
                yield pa.Table.from_arrays(columns, schema=self.schema)


def session_starts(times: Places, starts: Places, gap: int) -> Places:
    """The first row of each session of sorted series.

    >>> session_starts(np.array([1, 4, 12, 12]), np.array([0, 3]), 3).tolist()
    [0, 2, 3]
    """
    new = np.ones(len(times), np.bool_)
    # Unsigned, since the ends of time may be further apart than a signed number holds.
    new[1:] = times[1:].view(np.uint64) - times[:-1].view(np.uint64) > np.uint64(gap)
    new[starts] = True
    return np.flatnonzero(new)
