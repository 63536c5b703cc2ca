"""Series of any length in a few points: what a picture needs of them, and no more.

The problem: a picture has some hundreds of pixels, a series may have billions of rows, and a random sample of them
would miss the one that stands out. The idea: time is cut into steps, and of each the first, the last, the smallest and
the largest value are kept: a line through these looks like the line through all. A step's length is a power of two of
the time's unit, the shortest with which a series is at most `rows` points; a series that has no more rows than that is
kept whole.

So a `Thinning` can be filled anywhere and put together in any order: steps of one length lie within those of twice the
length, a part of a series never needs longer steps than the whole, and the four points of a step are those of its
parts. The result is a function of the rows only.

Null, NaN and infinite values are gaps; a step is one if it has no other. Of the series only the first ones by their
keys are kept (nulls first), and one more, by which it is seen that there are more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.timeseries.rows import sort_indices
from headwater.timeseries.times import time_numbers

__all__ = ["COLUMN", "LEVEL", "TIME", "VALUE", "Thinning", "thinned_schema"]

COLUMN, LEVEL, TIME, VALUE = "__hw_column", "__hw_level", "__hw_time", "__hw_value"
_WHOLE = -1
_LONGEST = 63
_HELD = 4
"""So many times of what is kept may be held before it is thinned."""

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


def thinned_schema(schema: pa.Schema, by: Sequence[str]) -> pa.Schema:
    """Names and types of points: their series, the number of their column, the length of their step,
    their time and value.
    """
    own = [(COLUMN, pa.int32()), (LEVEL, pa.int8()), (TIME, pa.int64()), (VALUE, pa.float64())]
    return pa.schema([*(schema.field(name) for name in by), *(pa.field(*pair) for pair in own)])


@dataclass(frozen=True, slots=True)
class _Points:
    """Points as arrays: which group (series and column) each is of."""

    group: Numbers
    level: Numbers
    time: Numbers
    value: Values

    def taken(self, which: npt.NDArray[Any]) -> _Points:
        return _Points(self.group[which], self.level[which], self.time[which], self.value[which])


class Thinning:
    """Points of some series, in bounded memory.

    >>> rows = pa.table({"s": ["a"] * 1000, "t": range(1000), "v": [0.0] * 500 + [9.0] + [0.0] * 499})
    >>> thin = Thinning(thinned_schema(rows.schema, ["s"]), ["s"], rows=100, series=8)
    >>> thin.add(rows, "t", ["v"])
    >>> points = thin.points()
    >>> points.num_rows <= 100, max(points["__hw_value"].to_pylist())
    (True, 9.0)
    """

    def __init__(self, schema: pa.Schema, by: Sequence[str], *, rows: int, series: int) -> None:
        self.schema, self._by = schema, list(by)
        self._rows, self._series = rows, series + 1
        self._held: list[pa.Table] = []
        self._kept = schema.empty_table()

    def add(self, table: pa.Table, time: str, columns: Sequence[str]) -> None:
        """Rows of a stream."""
        times, there = time_numbers(table.column(time))
        chosen = None if there is None else np.flatnonzero(there)
        keys = _unsigned(table.select(self._by))
        if chosen is not None:
            keys, times = keys.take(pa.array(chosen)), times[chosen]
        if self._by and len(times):
            # Most rows may be of series that are not among the first: those go first.
            first = np.flatnonzero(
                self._series_of(pa.concat_tables([self._kept.select(self._by), keys])) < self._series
            )
            first = first[first >= self._kept.num_rows] - self._kept.num_rows
            if len(first) < len(times):
                keys, times = keys.take(pa.array(first)), times[first]
                chosen = first if chosen is None else chosen[first]
        for number, name in enumerate(columns):
            values = _doubles(table.column(name))
            own = [
                pa.array(np.full(len(times), number, np.int32)),
                pa.array(np.full(len(times), _WHOLE, np.int8)),
                pa.array(times),
                pa.array(values if chosen is None else values[chosen]),
            ]
            parts = [*(keys.column(n) for n in self._by), *own]
            self.merge(pa.Table.from_arrays(parts, schema=self.schema))

    def merge(self, points: pa.Table) -> None:
        """Points of another thinning, or rows in the form of points."""
        if points.num_rows:
            self._held.append(points)
        if sum(t.num_rows for t in self._held) > max(_HELD * self._kept.num_rows, _HELD * self._rows):
            self._thin()

    def points(self) -> pa.Table:
        """What is left, by series, column and time."""
        self._thin()
        return self._kept

    def _thin(self) -> None:
        held = pa.concat_tables([self._kept, *self._held])
        self._held = []
        series = self._series_of(held.select(self._by)) if self._by else np.zeros(held.num_rows, np.int64)
        within = np.flatnonzero(series < self._series)
        if len(within) < held.num_rows:
            held, series = held.take(pa.array(within)), series[within]
        group = series * 2**31 + held.column(COLUMN).to_numpy()
        points = _Points(
            np.unique(group, return_inverse=True)[1].astype(np.int64),
            held.column(LEVEL).to_numpy().astype(np.int64),
            held.column(TIME).to_numpy(),
            held.column(VALUE).to_numpy(),
        )
        kept, level = _thinned(points, self._rows)
        found = held.take(pa.array(kept))
        at = found.schema.get_field_index(LEVEL)
        self._kept = found.set_column(at, found.schema.field(at), pa.array(level.astype(np.int8)))

    def _series_of(self, keys: pa.Table) -> Numbers:
        """The place of each row's series among all there are here, in the order of their keys."""
        code = np.zeros(keys.num_rows, np.int64)
        for name in self._by:
            # Numbers stay small: they are made dense after each column.
            code = np.unique(code * 2**31 + _ranks(keys.column(name)), return_inverse=True)[1].astype(np.int64)
        return code


def _unsigned(keys: pa.Table) -> pa.Table:
    """Keys in which -0.0 is 0.0, as Spark has it."""
    for k, field in enumerate(keys.schema):
        if pa.types.is_floating(field.type):
            keys = keys.set_column(k, field, pc.add(keys.column(k), pa.scalar(0.0, field.type)))
    return keys


def _ranks(column: pa.ChunkedArray) -> Numbers:
    """For each value its place among those that occur; null is the first, and NaN the last."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = pa.concat_arrays([pa.array([], column.type), *column.chunks]).dictionary_encode("encode")
    order = sort_indices([pa.chunked_array([coded.dictionary])])
    if order is None:
        rank = np.arange(len(coded.dictionary))
    else:
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
    found: Numbers = rank[np.asarray(coded.indices)]
    return found


def _doubles(column: pa.ChunkedArray) -> Values:
    """Numbers as doubles, gaps as NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    found: Values = pc.fill_null(pc.cast(column, pa.float64(), safe=False), float("nan")).to_numpy()
    return np.where(np.isfinite(found), found + 0.0, np.nan)


def _thinned(points: _Points, rows: int) -> tuple[Numbers, Numbers]:
    """Which points stay, by group and time, and the level of each."""
    order = np.lexsort((points.value, points.time, points.group))
    sorted_points = points.taken(order)
    starts = np.flatnonzero(np.diff(sorted_points.group, prepend=-1))
    counts = np.diff(starts, append=len(order))
    known = np.maximum.reduceat(sorted_points.level, starts) if len(starts) else counts
    crowded = (counts > rows) | (known > _WHOLE)
    level = np.where(crowded, np.maximum(known, 0), _WHOLE)
    if crowded.any():
        level = np.where(crowded, _levels(sorted_points.time, starts, counts, level, max(rows // 4, 1)), level)
    of_point = np.repeat(level, counts)
    stays = np.ones(len(order), np.bool_)
    for begin, end in _runs(of_point > _WHOLE):
        stays[begin:end] = _of_steps(sorted_points.taken(np.arange(begin, end)), of_point[begin:end])
    return order[stays], of_point[stays]


def _runs(flags: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Where flags are set, from and until."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _levels(time: Numbers, starts: Numbers, counts: Numbers, least: Numbers, most: int) -> Numbers:
    """For each group the shortest steps, as powers of two, of which no more than ``most`` have points."""
    low, high = np.maximum(least, 0), np.full(len(starts), _LONGEST)
    while (low < high).any():
        middle = (low + high) // 2
        fits = _occupied(time, starts, counts, middle) <= most
        low, high = np.where(fits, low, np.minimum(middle + 1, high)), np.where(fits, middle, high)
    return low


def _occupied(time: Numbers, starts: Numbers, counts: Numbers, level: Numbers) -> Numbers:
    step = time >> np.repeat(level, counts)
    new = np.diff(step, prepend=step[0]) != 0
    new[starts] = True
    return np.add.reduceat(new, starts, dtype=np.int64)


def _of_steps(points: _Points, level: Numbers) -> npt.NDArray[np.bool_]:
    """Which points of each step stay: the first, the last, the smallest and the largest value; of gaps alone, the
    first.

    Points come by group, time and value (NaN last), so that the answer is one also where times or values are the same.
    """
    step = points.time >> level
    begins = np.flatnonzero((np.diff(step, prepend=step[0]) != 0) | (np.diff(points.group, prepend=-1) != 0))
    lengths = np.diff(begins, append=len(step))
    bucket = np.repeat(np.arange(len(begins)), lengths)
    stays = np.zeros(len(step), np.bool_)
    gap = np.isnan(points.value)
    full = np.flatnonzero(~gap)
    of = bucket[full]
    stays[begins[np.bincount(of, minlength=len(begins)) == 0]] = True
    if len(full):
        edge = np.diff(of, prepend=-1) != 0
        stays[full[edge]] = True
        stays[full[np.append(edge[1:], True)]] = True
        by_value = full[np.lexsort((points.time[full], points.value[full], of))]
        edge = np.diff(bucket[by_value], prepend=-1) != 0
        stays[by_value[edge]] = True
        # Of several largest ones the earliest, as of the smallest.
        by_value = full[np.lexsort((points.time[full], -points.value[full], of))]
        edge = np.diff(bucket[by_value], prepend=-1) != 0
        stays[by_value[edge]] = True
    return stays
