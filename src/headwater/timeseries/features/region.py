"""Regions: some stretches of time of some series, and the node that lets only their rows through.

A region is a table of keys, each once, and stretches of time of each. The keys of a plan's result
are called otherwise in its sources, and there more rows around a stretch are needed: `Within` says both. Keys are
compared as values, null with null and NaN with NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.conjuncts import Conjunct
from headwater.timeseries.node import Node, RowKernel, RowWise
from headwater.timeseries.times import moved, time_numbers

__all__ = ["Region", "Within", "region_of"]

Numbers = npt.NDArray[np.int64]
FIRST, LAST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
_MOST_LISTED = 1_000
_WIDEST = 1 << 24


@dataclass(frozen=True, eq=False)
class Region:
    """Stretches of series: of each key one or more, which do not meet, in the order of keys and times."""

    keys: pa.Table
    """Each key once."""
    owner: Numbers
    """The key of each stretch, by its place."""
    first: Numbers
    last: Numbers

    @property
    def rows(self) -> int:
        """How many stretches there are."""
        return len(self.first)

    @property
    def count(self) -> int:
        """How many keys there are."""
        return int(self.owner[-1]) + 1 if len(self.owner) else 0

    def __repr__(self) -> str:
        return f"Region({self.rows} stretches of {', '.join(self.keys.schema.names) or 'all rows'})"

    @cached_property
    def codes(self) -> tuple[list[tuple[pa.Array, pa.Array]], Numbers]:
        """For each key its values and the numbers that they give with those before; and the stretch of each last
        number.
        """
        numbers = np.zeros(self.count, np.int64)
        steps = []
        for given in self.keys.columns:
            column = comparable(given).combine_chunks()
            values = pc.unique(column)
            both = numbers * max(1, len(values)) + _found(column, values)
            known = pc.unique(pa.array(both))
            numbers = _found(pa.array(both), known)
            steps.append((values, known))
        place = np.zeros(max(1, self.count), np.int64)
        place[numbers] = np.arange(self.count)
        return steps, place

    @cached_property
    def _ordinals(self) -> tuple[int, Numbers] | None:
        """Where there is one key, whole numbers that lie close together: the least, and for each number from there on
        the key's place, or -1. Looking a number up there costs a tenth of finding it by its hash.
        """
        if self.keys.num_columns != 1 or not pa.types.is_integer(self.keys.column(0).type):
            return None
        column = self.keys.column(0)
        if column.null_count or not self.count:
            return None
        values = column.cast(pa.int64()).to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low >= _WIDEST:
            return None
        ordinals = np.full(high - low + 1, -1, np.int64)
        ordinals[values - low] = np.arange(len(values))
        return low, ordinals

    def places(self, columns: Sequence[pa.ChunkedArray], rows: int) -> Numbers:
        """For each row its key; -1 where there are no stretches of it."""
        if not self.rows:
            return np.full(rows, -1, np.int64)
        if self._ordinals is not None:
            low, ordinals = self._ordinals
            return _looked_up(columns[0], low, ordinals)
        steps, place = self.codes
        numbers, there = np.zeros(rows, np.int64), np.ones(rows, np.bool_)
        for column, (values, known) in zip(columns, steps, strict=True):
            found = _found(comparable(column).cast(values.type), values)
            there &= found >= 0
            both = numbers * max(1, len(values)) + np.maximum(found, 0)
            numbers = _found(pa.array(both), known)
            there &= numbers >= 0
            numbers = np.maximum(numbers, 0)
        return np.where(there, place[numbers], -1)

    def covers(self, place: Numbers, times: Numbers, before: int | None, after: int | None) -> npt.NDArray[np.bool_]:
        """For the key and time of each row whether it lies in a stretch, or so far before or after one."""
        low = np.full(self.rows, FIRST) if before is None else _saved(self.first, FIRST, moved(self.first, -before))
        high = np.full(self.rows, LAST) if after is None else _saved(self.last, LAST, moved(self.last, after))
        known = np.unique(low)
        width = len(known) + 1
        begins = self.owner * width + np.searchsorted(known, low) + 1
        asked = np.maximum(place, 0) * width + np.searchsorted(known, times, "right")
        # Stretches do not meet, so of those that begin before a time the last one ends last.
        at = np.searchsorted(begins, asked, "right") - 1
        found = np.maximum(at, 0)
        return np.asarray((at >= 0) & (place >= 0) & (self.owner[found] == place) & (times <= high[found]))

    def conjuncts(
        self, columns: Sequence[str], time: pa.Field | None, before: int | None, after: int | None
    ) -> tuple[Conjunct, ...]:
        """What all rows within it meet, for skipping; ``columns`` are its keys as a source calls them."""
        found: list[Conjunct] = []
        if not self.rows:
            return ()
        for name, column in zip(columns, self.keys.columns, strict=True):
            if column.null_count or pa.types.is_floating(column.type):
                continue
            values = pc.unique(column)
            if len(values) <= _MOST_LISTED:
                found.append(Conjunct(name, "in", tuple(values.to_pylist())))
            else:
                ends = pc.min_max(values)
                found += [Conjunct(name, ">=", (ends["min"].as_py(),)), Conjunct(name, "<=", (ends["max"].as_py(),))]
        if time is not None:
            low, high = int(self.first.min()), int(self.last.max())
            if low > FIRST and before is not None and (start := _moment(low - before, time.type)) is not None:
                found.append(Conjunct(time.name, ">=", (start,)))
            if high < LAST and after is not None and (end := _moment(high + after, time.type)) is not None:
                found.append(Conjunct(time.name, "<=", (end,)))
        return tuple(found)


def _moment(number: int, kind: pa.DataType) -> Any:
    """A time as a Python value; None where Python has none."""
    try:
        if pa.types.is_integer(kind):
            return number
        if pa.types.is_date(kind):
            return pa.scalar(number, pa.int32()).cast(pa.date32()).as_py()
        return pa.scalar(number, pa.timestamp("us", kind.tz)).as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        return None


def comparable(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Keys as they are compared: whole numbers of any width, one zero, texts without dictionaries."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    return pc.add(column, 0.0) if pa.types.is_floating(kind) else column


def _looked_up(column: pa.ChunkedArray | pa.Array, low: int, ordinals: Numbers) -> Numbers:
    """For each row of a column of whole numbers its key; -1 where there is none."""
    whole = column.cast(pa.int64())
    there = np.asarray(
        pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, low + len(ordinals) - 1)).fill_null(False)
    )
    found = np.full(len(whole), -1, np.int64)
    at = np.flatnonzero(there)
    found[at] = ordinals[np.asarray(whole.fill_null(low))[at] - low]
    return found


def _found(column: pa.ChunkedArray | pa.Array, values: pa.Array) -> Numbers:
    found = pc.fill_null(pc.index_in(column, value_set=values), -1)
    return np.asarray(found).astype(np.int64)


def _saved(ends: Numbers, endless: int, moved_ends: Numbers) -> Numbers:
    return np.where(ends == endless, endless, moved_ends)


def region_of(keys: pa.Table, first: Numbers, last: Numbers) -> Region:
    """The region of some stretches, of which those of one key may meet: these become one.

    >>> region = region_of(pa.table({"s": ["a", "b", "a", "a"]}), *map(np.array, ([1, 1, 9, 3], [4, 2, 10, 6])))
    >>> region.keys["s"].to_pylist(), region.owner.tolist(), region.first.tolist(), region.last.tolist()
    (['a', 'b'], [0, 0, 1], [1, 9, 1], [6, 10, 2])
    """
    if not len(first):
        return Region(keys, np.empty(0, np.int64), first, last)
    numbers = np.zeros(len(first), np.int64)
    for given in keys.columns:
        column = comparable(given).combine_chunks()
        values = pc.unique(column)
        both = numbers * max(1, len(values)) + _found(column, values)
        numbers = _found(pa.array(both), pc.unique(pa.array(both)))
    where = np.zeros(int(numbers.max()) + 1, np.int64)
    where[numbers] = np.arange(len(first))
    order = np.lexsort((first, numbers))
    owner, low, high = numbers[order], first[order], last[order]
    # How far the stretches of a key reach so far.
    ends = np.unique(high)
    reached = np.maximum.accumulate(owner * len(ends) + np.searchsorted(ends, high)) - owner * len(ends)
    so_far = ends[reached]
    begins = np.ones(len(owner), np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (low[1:] > so_far[:-1])
    at = np.flatnonzero(begins)
    closing = np.append(at[1:], len(owner)) - 1
    return Region(keys.take(pa.array(where)) if keys.num_columns else keys, owner[at], low[at], so_far[closing])


@dataclass(frozen=True, eq=False)
class Within(RowWise):
    """The rows of a region, and those from ``before`` to ``after`` around it; rows without a time are let through.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"s": ["a", "a", "b"], "t": [1, 5, 5]}))
    >>> region = region_of(pa.table({"s": ["a"]}), np.array([4]), np.array([9]))
    >>> run_here(Within(rows, region, ("s",), "t")).to_pylist()
    [{'s': 'a', 't': 5}]
    """

    input: Node
    region: Region
    columns: tuple[str, ...]
    time: str | None = None
    before: int | None = 0
    after: int | None = 0

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        return (wanted | set(self.columns) | ({self.time} if self.time is not None else set()),)

    def line(self) -> str:
        return f"{self.region.rows:,} stretches of {', '.join(self.columns) or 'time'}"

    def kernel(self) -> RowKernel:
        return _Within(self.region, self.columns, self.time, self.before, self.after)


@dataclass(frozen=True, slots=True)
class _Within:
    region: Region
    columns: tuple[str, ...]
    time: str | None
    before: int | None
    after: int | None

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(self.mask(rows)))

    def mask(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows are let through."""
        place = self.region.places([rows.column(name) for name in self.columns], rows.num_rows)
        kept = place >= 0
        if self.time is None or not self.region.rows:
            return kept
        times, there = time_numbers(rows.column(self.time))
        at = np.flatnonzero(kept)  # most rows are of other keys
        inside = np.zeros(len(kept), np.bool_)
        inside[at] = self.region.covers(place[at], times[at], self.before, self.after)
        return inside if there is None else kept & (inside | ~there)
