"""What there is of each series: describe_series.

A row for each series: how many rows it has, its first and last time, and the shortest and longest gap between two
rows that follow each other in time. Rows come sorted by time, so of a series that goes on in the next chunk only
these few numbers are carried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.timeseries.moments import moment_type, moments_from
from headwater.timeseries.node import Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.reaching import carried
from headwater.timeseries.rows import Rows
from headwater.timeseries.times import time_numbers
from headwater.timeseries.windowing import one_zero

__all__ = ["SERIES_NAMES", "DescribeSeries"]

SERIES_NAMES = ("rows", "first", "last", "shortest_gap", "longest_gap")
_NONE = np.iinfo(np.int64).max

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DescribeSeries(Keyed):
    """A row about each series.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> run_here(DescribeSeries(Values(pa.table({"t": [4, 1, 2]})), Ordering("t"))).to_pylist()
    [{'rows': 3, 'first': 1, 'last': 4, 'shortest_gap': 1, 'longest_gap': 2}]
    """

    input: Node
    ordering: Ordering

    @cached_property
    def schema(self) -> pa.Schema:
        known = self.input.schema
        kind = moment_type(known.field(self.ordering.time))
        gap = pa.duration("us") if pa.types.is_timestamp(kind) else pa.int64()
        keys = [known.field(name).with_nullable(True) for name in self.ordering.by]
        kinds = (pa.int64(), kind, kind, gap, gap)
        return pa.schema([*keys, *(pa.field(n, k) for n, k in zip(SERIES_NAMES, kinds, strict=True))])

    def line(self) -> str:
        return "describe each series"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        return (frozenset((*self.ordering.by, self.ordering.time)),)

    def kernel(self) -> KeyedKernel:
        return _Describe(self.ordering, self.schema)


@dataclass(slots=True)
class _Open:
    """The last series of a chunk, which may go on."""

    keys: pa.Table
    rows: int
    first: int
    last: int
    shortest: int
    longest: int


@dataclass(frozen=True, slots=True)
class _Describe:
    ordering: Ordering
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        by, time = self.ordering.by, self.ordering.time
        needed = [*by, time]
        schema = pa.schema([rows.schema.field(name) for name in needed])
        narrow = Rows((table.select(needed) for table in rows), schema, budget_bytes=rows.budget_bytes)
        going: _Open | None = None
        for part in carried(narrow.sorted(needed), by):
            times, starts = time_numbers(part.table.column(time))[0], part.starts
            ends = np.append(starts[1:], len(times))
            gaps = np.diff(times, prepend=times[:1])
            # The first row of a series has no gap.
            shortest, longest = gaps.copy(), gaps
            shortest[starts], longest[starts] = _NONE, -1
            low, high = np.minimum.reduceat(shortest, starts), np.maximum.reduceat(longest, starts)
            count, first, last = ends - starts, times[starts].copy(), times[ends - 1]
            if going is not None and part.goes_on:
                gap = int(first[0]) - going.last
                count[0] += going.rows
                first[0] = going.first
                low[0], high[0] = min(low[0], gap, going.shortest), max(high[0], gap, going.longest)
            elif going is not None:
                yield self._of(going.keys, *(np.array([v]) for v in _values(going)))
            keys = part.table.select(list(by)).take(pa.array(starts))
            if len(starts) > 1:
                yield self._of(keys.slice(0, len(starts) - 1), *(v[:-1] for v in (count, first, last, low, high)))
            numbers = (int(v[-1]) for v in (count, first, last, low, high))
            going = _Open(keys.slice(len(starts) - 1).combine_chunks(), *numbers)
        if going is not None:
            yield self._of(going.keys, *(np.array([v]) for v in _values(going)))

    def _of(
        self, keys: pa.Table, count: Numbers, first: Numbers, last: Numbers, low: Numbers, high: Numbers
    ) -> pa.Table:
        kind, gap = self.schema.field("first").type, self.schema.field("longest_gap").type
        alone = count == 1
        columns = [one_zero(keys.column(name)) for name in self.ordering.by]
        columns += [pa.array(count), moments_from(first, kind), moments_from(last, kind)]
        columns += [pa.array(value, mask=alone).cast(gap) for value in (low, high)]
        return pa.Table.from_arrays(columns, schema=self.schema)


def _values(series: _Open) -> tuple[int, ...]:
    return series.rows, series.first, series.last, series.shortest, series.longest
