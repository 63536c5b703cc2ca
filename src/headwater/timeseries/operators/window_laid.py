"""Windows of one length laid along time, tumbling or hopping: one row for each window that has rows.

Rows come sorted, so a window is a stretch of its series. Which windows there are is told by the rows: a row brings
those that no row before it was in, so each is found once, at its first row; its last is found by a search. Windows that
begin before the first row are among them. A window is answered as soon as a row at or after its end has come, so what
is held is a window and not the series.

Spark's own form is its window() for timestamps, and the same arithmetic for dates and whole numbers. It has none where
an aggregate goes by the order of rows: Spark would take any of several rows of one time, where tasks refuse to guess.
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
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.querying import quoted
from headwater.timeseries.rows import Rows, key_starts
from headwater.timeseries.searching import first_from, series_of
from headwater.timeseries.steps import Step, begin_of, ends_of, most_of, number_of, room_of
from headwater.timeseries.times import time_numbers
from headwater.timeseries.windowing import START_AND_END, Bounds, followed, timed_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["LaidWindows", "laid"]

Places = npt.NDArray[np.int64]

ONE_TASK_BYTES = 256 << 20
"""So much may be one series' without a task that others wait for."""


@dataclass(frozen=True)
class LaidWindows(Keyed):
    """Aggregates of windows of one length.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"t": [1, 4, 12], "v": [1, 2, 3]})
    >>> node = LaidWindows(Values(rows), Ordering("t"), 10, 5, 0, {"total": "sum(v)"})
    >>> [tuple(row.values()) for row in run_here(node).to_pylist()]
    [(-5, 5, 3), (0, 10, 3), (5, 15, 3), (10, 20, 3)]
    """

    input: Node
    ordering: Ordering
    size: Step
    every: Step
    offset: int
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
        return self.shown or f"windows of {self.size} every {self.every}: {', '.join(self.texts)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        if self.bounds.start is None:
            return (None,)
        return (Extent(self.ordering.time, self.bounds.start, after=most_of(self.size)),)

    def kernel(self) -> KeyedKernel:
        return _Laid(self.ordering, self.size, self.every, self.offset, self.aggregates, self.bounds, self.schema)

    @property
    def frame_first(self) -> bool:
        # Spark makes a row of each row for every window that it is in.
        return self.size == self.every

    @property
    def frame_from_bytes(self) -> int:
        # A kernel reads and exchanges for less, but has all rows of a series in one task; Spark aggregates where the
        # rows are, however many of them are one series'.
        return ONE_TASK_BYTES if self.ordering.by else 0

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        if self.aggregates.ordered or not isinstance(self.size, int) or not isinstance(self.every, int):
            return None
        from pyspark.sql import functions as f

        rows, time = frames[0], quoted(self.ordering.time)
        keys = [f.col(quoted(name)) for name in self.ordering.by]
        made = [f.expr(text).alias(name) for name, text in self.texts.items()]
        field = self.input.schema.field(self.ordering.time)
        if pa.types.is_timestamp(field.type):
            lengths = [f"{n} microseconds" for n in (self.size, self.every, self.offset % self.every)]
            window = f.window(f.col(time), *lengths).alias("__hw_window")
            found = rows.groupBy(*keys, window).agg(*made)
            start, end = f.col("__hw_window.start"), f.col("__hw_window.end")
        else:
            found, start, end = self._spark_numbers(rows, made, is_date=pa.types.is_date(field.type))
        return found.select(*keys, *self._spark_bounds(start, end, field.type), *map(f.col, map(quoted, self.texts)))

    def _spark_numbers(self, rows: DataFrame, made: list[Column], *, is_date: bool) -> tuple[DataFrame, Column, Column]:
        assert isinstance(self.size, int)
        assert isinstance(self.every, int)
        from pyspark.sql import functions as f

        time = quoted(self.ordering.time)
        number = f"unix_date({time})" if is_date else f"CAST({time} AS BIGINT)"
        latest = f"({number} - pmod({number} - {self.offset}L, {self.every}L))"
        begins = (
            f"explode(filter(transform(sequence(0L, {(self.size - 1) // self.every}L), i -> {latest} - i * "
            f"{self.every}L), s -> {number} < s + {self.size}L))"
        )
        keys = [f.col(quoted(name)) for name in self.ordering.by]
        there = rows.withColumn("__hw_start", f.expr(begins))
        found = there.groupBy(*keys, f.col("__hw_start")).agg(*made)
        start, end = f.col("__hw_start"), f.col("__hw_start") + f.lit(self.size)
        if is_date:
            start, end = (f.date_from_unix_date(c.cast("int")) for c in (start, end))
        return found, start, end

    def _spark_bounds(self, start: Column, end: Column, kind: pa.DataType) -> list[Column]:
        from pyspark.sql import functions as f

        found = [c.alias(n) for n, c in ((self.bounds.start, start), (self.bounds.end, end)) if n is not None]
        if self.bounds.delay is not None:
            if pa.types.is_timestamp(kind):
                late = end + f.expr(f"INTERVAL '{self.bounds.delay / 1_000_000:.6f}' SECOND")
            else:
                late = f.date_add(end, self.bounds.delay) if pa.types.is_date(kind) else end + f.lit(self.bounds.delay)
            found.append(late.alias(self.bounds.complete))
        return found


@dataclass(frozen=True, slots=True)
class _Laid:
    ordering: Ordering
    size: Step
    every: Step
    offset: int
    aggregates: Aggregates
    bounds: Bounds
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        held: pa.Table | None = None
        passed: int | None = None
        kind = moment_type(rows.schema.field(self.ordering.time))
        for chunk, more in followed(timed_rows(rows, self.ordering, self.aggregates)):
            table = chunk if held is None else pa.concat_tables([held, chunk]).combine_chunks()
            times, _ = time_numbers(table.column(self.ordering.time))
            check_room(times, 2 * room_of(self.size) + abs(self.offset), self.ordering.time)
            starts = key_starts(table, self.ordering.by)
            first, begin = laid(times, starts, self.size, self.every, self.offset)
            series = series_of(starts, len(times))[first]
            end = ends_of(begin, self.size)
            answered = np.ones(len(first), np.bool_)
            if passed is not None:
                answered &= (series > 0) | (end > passed)
            if more:
                # All windows of the last series that may still get rows are left for later.
                passed = int(times[-1])
                later = (series == len(starts) - 1) & (end > passed)
                held = table.slice(int(first[later][0]))
                answered &= ~later
            if self.size == self.every:
                after = np.append(first[1:], len(times))[answered]
            else:
                after = first_from(times, starts, series[answered], end[answered])
            first, begin = first[answered], begin[answered]
            if len(first):
                columns = self.bounds.columns(table, self.ordering, first, begin, ends_of(begin, self.size), kind)
                columns += self.aggregates.of_windows(table, first, after, joined=self.size == self.every)
                yield pa.Table.from_arrays(columns, schema=self.schema)


def laid(times: Places, starts: Places, size: Step, every: Step, offset: int) -> tuple[Places, Places]:
    """The windows that sorted series have: the first row of each, and when it begins.

    >>> [found.tolist() for found in laid(np.array([1, 4, 12]), np.array([0]), 10, 5, 0)]
    [[0, 0, 2, 2], [-5, 0, 5, 10]]
    """
    latest = number_of(times, every, offset)
    if size == every:
        new = np.ones(len(times), np.bool_)
        new[1:] = latest[1:] != latest[:-1]
        new[starts] = True
        first = np.flatnonzero(new)
        return first, begin_of(latest[first], every, offset)
    assert isinstance(size, int), "only windows of a fixed length overlap"
    assert isinstance(every, int)
    earliest = (times - size - offset) // every + 1
    begin = earliest.copy()
    begin[1:] = np.maximum(earliest[1:], latest[:-1] + 1)
    begin[starts] = earliest[starts]
    counts = np.maximum(latest - begin + 1, 0)
    first = np.repeat(np.arange(len(times)), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, (begin[first] + within) * every + offset
