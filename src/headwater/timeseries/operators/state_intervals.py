"""State intervals: the stretches of a series in which some columns keep their values.

One row for each longest stretch: the series, the state, the time of its first row and of its last, the time at which
the next state begins (null for the last one of a series), and how many rows it has. Null is a state like any other, NaN
is itself, and -0.0 is 0.0.

A stretch that is open at the end of a chunk waits: only the first rows of stretches are kept, with what has become of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.timeseries.node import Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.querying import quoted
from headwater.timeseries.rows import Rows, key_starts
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["NAMES", "StateIntervals"]

NAMES = ("start", "end", "until", "rows")


@dataclass(frozen=True)
class StateIntervals(Keyed):
    """The stretches in which ``columns`` keep their values.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"t": [1, 2, 5, 6], "on": [True, True, False, True]}))
    >>> first, second, *_ = run_here(StateIntervals(rows, Ordering("t"), ("on",))).to_pylist()
    >>> first
    {'on': True, 'start': 1, 'end': 2, 'until': 5, 'rows': 2}
    >>> second
    {'on': False, 'start': 5, 'end': 5, 'until': 6, 'rows': 1}
    """

    input: Node
    ordering: Ordering
    columns: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        below = self.input.schema
        kept = [below.field(name) for name in (*self.ordering.by, *self.columns)]
        time = below.field(self.ordering.time).type
        return pa.schema([*kept, *[pa.field(name, time) for name in NAMES[:3]], pa.field(NAMES[3], pa.int64())])

    def line(self) -> str:
        return f"state intervals of {', '.join(self.columns)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def kernel(self) -> KeyedKernel:
        return _Intervals(self.ordering, self.columns, self.schema)

    def frame(self, *frames: DataFrame) -> DataFrame:
        by = ", ".join(map(quoted, self.ordering.by))
        order = ", ".join(map(quoted, (self.ordering.time, *self.ordering.tiebreak)))
        over = f"OVER ({f'PARTITION BY {by} ' if by else ''}ORDER BY {order})"
        whole = f"OVER ({f'PARTITION BY {by} ' if by else ''}ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND "
        whole += "UNBOUNDED FOLLOWING)"
        time = quoted(self.ordering.time)
        state = f"struct({', '.join(map(quoted, self.columns))})"
        names = [*map(quoted, (*self.ordering.by, *self.columns, *self.ordering.tiebreak))]
        # A start knows the time before it, so the start after it knows the end of this one.
        numbered = frames[0].selectExpr(
            *dict.fromkeys([*names, time]),
            f"row_number() {over} AS __hw_row",
            f"count(1) {whole} AS __hw_rows",
            f"lag({time}) {over} AS __hw_before",
            f"last({time}) {whole} AS __hw_last",
            f"lag({state}) {over} <=> {state} AS __hw_same",
        )
        starts = numbered.where("__hw_row = 1 OR NOT __hw_same")
        return starts.selectExpr(
            *map(quoted, (*self.ordering.by, *self.columns)),
            f"{time} AS start",
            f"CASE WHEN lead(1) {over} IS NULL THEN __hw_last ELSE lead(__hw_before) {over} END AS `end`",
            f"lead({time}) {over} AS until",
            f"coalesce(lead(__hw_row) {over}, __hw_rows + 1) - __hw_row AS `rows`",
        )


@dataclass(frozen=True, slots=True)
class _Intervals:
    ordering: Ordering
    columns: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        time, by = self.ordering.time, self.ordering.by
        kept = list(dict.fromkeys((*by, *self.columns, time)))
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering, self.columns)
        held: pa.Table | None = None
        count = 0
        for chunk in chunks:
            table = chunk.select(kept)
            if held is not None:
                # First and last row of the open stretch stand for all of it.
                table = pa.concat_tables([held, table])
            starts = key_starts(table, (*by, *self.columns))
            held = pa.concat_tables([table.slice(int(starts[-1]), 1), table.slice(table.num_rows - 1)]).combine_chunks()
            yield self._closed(table, starts[:-1], starts[1:], count)
            count = (count - 2 if count and len(starts) == 1 else 0) + table.num_rows - int(starts[-1])
        if held is not None:
            yield self._closed(held, np.array([0]), np.array([2]), count)

    def _closed(self, table: pa.Table, begin: np.ndarray, end: np.ndarray, count: int) -> pa.Table:
        """The stretches from ``begin`` to ``end``; ``count`` is how many rows the first two of the table stand for."""
        times = table.column(self.ordering.time)
        lengths = end - begin
        if count and len(lengths):
            lengths = lengths + np.where(np.arange(len(lengths)) == 0, count - 2, 0)
        goes_on = end < table.num_rows
        if self.ordering.by and len(begin):
            series = np.searchsorted(key_starts(table, self.ordering.by), np.minimum(end, table.num_rows - 1), "right")
            goes_on &= series == np.searchsorted(key_starts(table, self.ordering.by), begin, "right")
        until = times.take(pa.array(np.where(goes_on, end, 0), mask=~goes_on))
        states = [table.column(name).take(pa.array(begin)) for name in (*self.ordering.by, *self.columns)]
        found = [
            *states,
            times.take(pa.array(begin)),
            times.take(pa.array(end - 1)),
            until,
            pa.array(lengths, pa.int64()),
        ]
        return pa.table(found, schema=self.schema)
