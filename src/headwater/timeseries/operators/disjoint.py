"""Disjoint intervals: overlapping ones cut into pieces, with the values of all that hold in each.

An interval is half-open: it holds from its start up to its end, and not at its end, so two that touch do not overlap,
and one whose end is its start holds never and gives nothing. A series is cut wherever one of its intervals starts or
ends. A piece has, of each column, the value of the intervals that hold in it; those that have none (null) say
nothing. Two that hold at once and have different values are refused: there is no one value. Pieces that touch and
agree in all columns are one; so the answer is the shortest there is, and to ask for it again changes nothing.

The kernel needs no pairs of intervals. Values of one column that overlap are all equal, so overlapping intervals of a
column are one longer interval, and of those each piece lies in at most one: a binary search for each column. Rows
come sorted by start; wherever no earlier interval reaches a start, what came before is done, so what is held are the
intervals that hang together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.timeseries.moments import moment_type, moments_from
from headwater.timeseries.node import Keyed, KeyedKernel, Node
from headwater.timeseries.present_times import PresentTimes
from headwater.timeseries.rows import Rows, key_starts
from headwater.timeseries.searching import series_of
from headwater.timeseries.times import time_numbers
from headwater.timeseries.total_order import unequal_pairs
from headwater.timeseries.windowing import followed, one_zero

__all__ = ["Disjoint"]

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Disjoint(Keyed):
    """Intervals of which no two of one series overlap.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"start": [1, 3], "end": [5, 9], "a": [7, None], "b": [None, 8]}))
    >>> [tuple(row.values()) for row in run_here(Disjoint(rows, "start", "end", ())).to_pylist()]
    [(1, 3, 7, None), (3, 5, 7, 8), (5, 9, None, 8)]
    """

    input: Node
    start: str
    end: str
    by: tuple[str, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([f.with_nullable(True) for f in self.input.schema])

    def line(self) -> str:
        return f"disjoint intervals from {self.start} to {self.end}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.by,)

    def time_columns(self) -> tuple[str | None, ...]:
        return (self.start,)

    def kernel(self) -> KeyedKernel:
        return _Disjoint(self.start, self.end, self.by, self.schema)


@dataclass(frozen=True, slots=True)
class _Disjoint:
    start: str
    end: str
    by: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        usable = Rows(map(self._holding, rows), rows.schema, budget_bytes=rows.budget_bytes)
        held: pa.Table | None = None
        for chunk, more in followed(c for c in usable.sorted((*self.by, self.start, self.end)) if c.num_rows):
            table = chunk if held is None else pa.concat_tables([held, chunk]).combine_chunks()
            words = _Words(table, self.start, self.end, self.by)
            done = words.last_gap() if more else table.num_rows
            held = table.slice(done)
            if done:
                yield self._cut(table.slice(0, done))

    def _holding(self, table: pa.Table) -> pa.Table:
        """The intervals that hold at all."""
        table = PresentTimes(self.end)(table)
        starts, ends = (time_numbers(table.column(name))[0] for name in (self.start, self.end))
        backward = starts > ends
        if backward.any():
            row = int(np.argmax(backward))
            start, end = (str(table.column(name)[row].as_py()) for name in (self.start, self.end))
            raise InputError.backward_interval(self._series(table, row), start, end)
        return table.filter(pa.array(starts < ends))

    def _series(self, table: pa.Table, row: int) -> str:
        return ", ".join(f"{name} = {table.column(name)[row].as_py()!r}" for name in self.by) or "the series"

    def _cut(self, table: pa.Table) -> pa.Table:
        """The pieces of whole stretches."""
        words = _Words(table, self.start, self.end, self.by)
        bounds = np.unique(np.concatenate((words.starts, words.ends)))
        begins, ends = bounds[:-1], bounds[1:]
        # So many intervals have begun and not ended; those of the series before have all ended.
        begun = np.searchsorted(words.starts, begins, "right")
        open_ = begun - np.searchsorted(np.sort(words.ends), begins, "right")
        begins, ends = begins[open_ > 0], ends[open_ > 0]
        columns: dict[str, pa.ChunkedArray] = {}
        for name in self.schema.names:
            if name not in (*self.by, self.start, self.end):
                columns[name] = self._values(table, name, words, begins)
        first = _joined(begins, ends, columns)
        last = np.append(first[1:], len(begins)) - 1
        begins, ends, at = begins[first], ends[last], pa.array(first)
        series = pa.array(words.firsts[words.series(begins)])
        for name in self.by:
            columns[name] = one_zero(table.column(name).take(series))
        found = {name: column.take(at) if name not in self.by else column for name, column in columns.items()}
        kinds = moment_type(table.schema.field(self.start))
        found[self.start], found[self.end] = (moments_from(words.times(w), kinds) for w in (begins, ends))
        return pa.Table.from_arrays([_as(found[f.name], f.type) for f in self.schema], schema=self.schema)

    def _values(self, table: pa.Table, name: str, words: _Words, begins: Numbers) -> pa.ChunkedArray:
        """The value of a column in each piece."""
        column = table.column(name)
        rows = np.flatnonzero(np.asarray(pc.is_valid(column)))
        if not len(rows):
            return pa.chunked_array([pa.nulls(len(begins), column.type)])
        starts, reached = words.starts[rows], np.maximum.accumulate(words.ends[rows])
        overlaps = np.zeros(len(rows), np.bool_)
        overlaps[1:] = starts[1:] < reached[:-1]
        later = np.flatnonzero(overlaps)
        # Where all neighbours that overlap agree, all that overlap agree.
        differs = unequal_pairs(column, rows[later - 1], rows[later])
        if differs.any():
            row = int(rows[later[np.argmax(differs)]])
            time = str(table.column(self.start)[row].as_py())
            raise InputError.overlapping_values(self._series(table, row), time, name)
        first = np.flatnonzero(~overlaps)
        until = reached[np.append(first[1:], len(rows)) - 1]
        place = np.searchsorted(starts[first], begins, "right") - 1
        holds = (place >= 0) & (begins < until[np.maximum(place, 0)])
        return column.take(pa.array(np.where(holds, rows[first[place]], 0), mask=~holds))


def _joined(begins: Numbers, ends: Numbers, columns: dict[str, pa.ChunkedArray]) -> Numbers:
    """The pieces that do not go on with the one before."""
    touching = np.flatnonzero(begins[1:] == ends[:-1]) + 1
    for column in columns.values():
        touching = touching[~unequal_pairs(column, touching - 1, touching)]
    new = np.ones(len(begins), np.bool_)
    new[touching] = False
    return np.flatnonzero(new)


class _Words:
    """Times of sorted series as numbers that sort by series and time: the rank of a time, moved up for each series."""

    def __init__(self, table: pa.Table, start: str, end: str, by: tuple[str, ...]) -> None:
        starts, ends = (time_numbers(table.column(name))[0] for name in (start, end))
        self._known = np.unique(np.concatenate((starts, ends)))
        self.firsts = key_starts(table, by)
        series = series_of(self.firsts, table.num_rows)
        self.starts = series * len(self._known) + np.searchsorted(self._known, starts)
        self.ends = series * len(self._known) + np.searchsorted(self._known, ends)

    def series(self, words: Numbers) -> Numbers:
        return words // len(self._known)

    def times(self, words: Numbers) -> Numbers:
        found: Numbers = self._known[words % len(self._known)]
        return found

    def last_gap(self) -> int:
        """The last row that no row before it reaches or touches: up to it, nothing can change any more."""
        reached = np.maximum.accumulate(self.ends)
        alone = np.flatnonzero(self.starts[1:] > reached[:-1])
        return int(alone[-1]) + 1 if len(alone) else 0


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)
