"""Reach: how far an operator looks around a row, and the rows cut so that everything within reach is there.

Sorted rows come in chunks, and a series may go on in the next. What an operator says of a row depends on rows before
and after it, so many of them or so long a time. `neighbourhoods` gives each chunk with what its rows reach back to, and
leaves the last rows of a series for later until what they reach forward to is there. What is held is then the reach,
not the series.

Invariants: each row is answered once, in order; all rows of its series within reach are in the table. A reach in time
includes rows of the same time, on both sides. Every row has a time (`present_times`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.timeseries.node import Ordering
from headwater.timeseries.rows import key_starts
from headwater.timeseries.times import time_numbers

__all__ = ["Carried", "Neighbourhood", "Reach", "carried", "neighbourhoods", "places"]

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Reach:
    """So many rows (or, ``in_time``, so long a time) before and after a row."""

    before: int
    after: int = 0
    in_time: bool = False


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A sorted table of which the rows from ``begin`` to ``end`` (not included) are to be answered.

    Attributes
    ----------
    starts : numpy array
        where each series begins in the table
    first : int
        how many rows of the first series there were before the table
    """

    table: pa.Table
    begin: int
    end: int
    starts: Numbers
    first: int

    @property
    def rows(self) -> pa.Table:
        """The rows to be answered."""
        return self.table.slice(self.begin, self.end - self.begin)

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the table are to be answered."""
        return self.begin == 0 and self.end == self.table.num_rows


def neighbourhoods(chunks: Iterable[pa.Table], ordering: Ordering, reach: Reach) -> Iterator[Neighbourhood]:
    """Sorted chunks with all that is within reach of their rows.

    >>> chunks = [pa.table({"t": [1, 2, 3]}), pa.table({"t": [4]})]
    >>> for near in neighbourhoods(chunks, Ordering("t"), Reach(1, 1)):
    ...     print(near.table["t"].to_pylist(), near.rows["t"].to_pylist(), near.first)
    [1, 2, 3] [1, 2] 0
    [2, 3, 4] [3, 4] 1
    """
    coming = (chunk for chunk in chunks if chunk.num_rows)
    held: pa.Table | None = None
    begin = first = 0
    chunk = next(coming, None)
    while chunk is not None:
        following = next(coming, None)
        table = chunk if held is None else pa.concat_tables([held, chunk])
        starts = key_starts(table, ordering.by)
        if following is None:
            yield Neighbourhood(table, begin, table.num_rows, starts, first)
            return
        last = int(starts[-1])
        series = _Series(table, last, ordering, reach)
        end = max(series.answerable(), begin)
        if end > begin:
            yield Neighbourhood(table, begin, end, starts, first)
        low = series.reached_from(end)
        held = table.slice(low).combine_chunks()
        begin = end - low
        first = low - last + (first if last == 0 else 0)
        chunk = following


@dataclass(frozen=True, slots=True)
class Carried:
    """A sorted chunk, where each series begins in it,
    and whether its first series is the last one of the chunk before.
    """

    table: pa.Table
    starts: Numbers
    goes_on: bool


def carried(chunks: Iterable[pa.Table], keys: tuple[str, ...]) -> Iterator[Carried]:
    """Sorted chunks for operators that carry a small state from row to row.

    >>> chunks = [pa.table({"k": [1, 2]}), pa.table({"k": [2, 3]}), pa.table({"k": [4]})]
    >>> [(c.starts.tolist(), c.goes_on) for c in carried(chunks, ("k",))]
    [([0, 1], False), ([0, 1], True), ([0], False)]
    """
    before: pa.Table | None = None
    for table in chunks:
        if not table.num_rows:
            continue
        goes_on = False
        if before is not None:
            pair = pa.concat_tables([before, table.slice(0, 1).select(list(keys))]) if keys else None
            goes_on = pair is None or len(key_starts(pair, keys)) == 1
        yield Carried(table, key_starts(table, keys), goes_on)
        before = table.slice(table.num_rows - 1).select(list(keys))


def places(starts: Numbers, rows: int) -> Numbers:
    """For each row how many rows of its series are before it in the table.

    >>> places(np.array([0, 2]), 5).tolist()
    [0, 1, 0, 1, 2]
    """
    found: Numbers = np.arange(rows) - np.repeat(starts, np.diff(starts, append=rows))
    return found


class _Series:
    """The last series of a table, which may go on."""

    def __init__(self, table: pa.Table, start: int, ordering: Ordering, reach: Reach) -> None:
        self._start, self._reach = start, reach
        self._rows: int = table.num_rows
        if reach.in_time:
            self._times = time_numbers(table.column(ordering.time).slice(start))[0]

    def answerable(self) -> int:
        """Up to where all rows within reach are there, whatever comes next."""
        if not self._reach.in_time:
            return max(self._start, self._rows - self._reach.after)
        # What comes may have the last row's time.
        limit = max(int(self._times[-1]) - self._reach.after, _LEAST)
        return int(self._start + np.searchsorted(self._times, limit, "left"))

    def reached_from(self, row: int) -> int:
        """The first row that this one, and all after it, may reach."""
        if not self._reach.in_time:
            # One row at least: it tells whether the series goes on.
            return max(self._start, row - max(self._reach.before, 1))
        at = min(row, self._rows - 1) - self._start
        if at < 0:
            return self._start
        limit = max(int(self._times[at]) - self._reach.before, _LEAST)
        return int(self._start + np.searchsorted(self._times, limit, "left"))
