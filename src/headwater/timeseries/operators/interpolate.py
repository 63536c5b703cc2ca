"""Values where a series has none: on an exact grid of times, or in its own rows where they are null.

The points of a grid lie at multiples of a step from an origin, between the first and the last row of each series. A
column's value at a point is that of the row of exactly this time, if it has one; nothing is averaged first. Otherwise
it is filled, for each column by itself, from what is known of it: its values that are not null, before and after the
point. Of several rows of one time the last in the order is the one that is known.

- ``ffill``: the last one known before; ``bfill``: the first one known after;
- ``linear``: on the straight line between both, ``before + (after - before) * share``, in doubles;
- ``zero``, ``null``: nothing is taken from other rows.

With a limit, a value that is farther away in time is not taken; for ``linear``, neither of both may be.

What is held is a piece of a series with the nearest values around it (`surrounded`), never a series; the points are
made in pieces, too, since there may be many more of them than rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.timeseries.frames import doubles_of
from headwater.timeseries.moments import check_room, moment_type, moments_from
from headwater.timeseries.node import Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.reading import new_names
from headwater.timeseries.rows import Rows
from headwater.timeseries.searching import first_from, series_of
from headwater.timeseries.steps import Step, begin_of, number_of, room_of
from headwater.timeseries.surrounded import Surrounded, surrounded
from headwater.timeseries.times import time_numbers
from headwater.timeseries.total_order import checked
from headwater.timeseries.windowing import one_zero

__all__ = ["METHODS", "Interpolate", "Method"]

Method = Literal["ffill", "bfill", "linear", "zero", "null"]
METHODS: tuple[Method, ...] = ("ffill", "bfill", "linear", "zero", "null")

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_POINTS = 1 << 20


@dataclass(frozen=True)
class Interpolate(Keyed):
    """Filled values on a grid of ``every`` from ``origin``, or without it in the rows themselves.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = pa.table({"t": [0, 4, 6], "v": [1.0, 3.0, None]})
    >>> run_here(Interpolate(Values(rows), Ordering("t"), ("v",), "linear", 2)).to_pydict()
    {'t': [0, 2, 4, 6], 'v': [1.0, 2.0, 3.0, None]}
    """

    input: Node
    ordering: Ordering
    filled: tuple[str, ...]
    method: Method
    every: Step | None = None
    origin: int = 0
    limit: int | None = None
    flags: bool = False
    shown: str = ""

    def __post_init__(self) -> None:
        for name in self.filled:
            kind = self.input.schema.field(name).type
            number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            if self.method in ("linear", "zero") and not number:
                raise InputError.bad_argument("columns", f"{name} ({kind})", f"numbers, for {self.method}")

    @cached_property
    def schema(self) -> pa.Schema:
        given, time = self.input.schema, self.ordering.time
        fields = {name: pa.field(name, self._kind(given.field(name).type)) for name in self.filled}
        if self.every is None:
            around = [fields.get(f.name, f) for f in given]
        else:
            keys = [given.field(name).with_nullable(True) for name in self.ordering.by]
            around = [*keys, pa.field(time, moment_type(given.field(time))), *fields.values()]
        marks = [pa.field(f"{name}_filled", pa.bool_()) for name in self.filled] if self.flags else []
        new_names([m.name for m in marks], [f.name for f in around], "flags")
        return pa.schema([*around, *marks])

    def _kind(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64() if self.method == "linear" else kind

    def line(self) -> str:
        return self.shown or f"{self.method} every {self.every}: {', '.join(self.filled)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def kernel(self) -> KeyedKernel:
        return _Interpolate(
            self.ordering, self.filled, self.method, self.every, self.origin, self.limit, self.flags, self.schema
        )


@dataclass(frozen=True, slots=True)
class _Points:
    """Points of time in series, and the rows around them: ``before`` is behind the last row up to it,
    ``from_`` the first not before it.
    """

    series: Places
    times: Places
    before: Places
    from_: Places


@dataclass(frozen=True, slots=True)
class _Interpolate:
    ordering: Ordering
    filled: tuple[str, ...]
    method: Method
    every: Step | None
    origin: int
    limit: int | None
    flags: bool
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        names = rows.schema.names
        if self.every is not None:
            names = list(dict.fromkeys((*self.ordering.columns, *self.filled)))

        def needed() -> Iterator[pa.Table]:
            for table in rows:
                yield table.select(names)

        schema = pa.schema([rows.schema.field(n) for n in names])
        chunks = Rows(needed(), schema, budget_bytes=rows.budget_bytes).sorted(self.ordering.columns)
        for piece in surrounded(
            checked(chunks, self.ordering, self.filled),
            self.ordering,
            self.filled,
            ahead=self.method in ("linear", "bfill"),
            schema=schema,
            budget_bytes=rows.budget_bytes,
        ):
            yield from self._of(piece)

    def _of(self, piece: Surrounded) -> Iterator[pa.Table]:
        table, starts = piece.table, piece.starts
        times = time_numbers(table.column(self.ordering.time))[0]
        known = _Known(times, starts)
        if self.every is None:
            check_room(times, 1, self.ordering.time)
            own = np.arange(piece.begin, piece.end)
            points = _around(times, starts, series_of(starts, len(times))[own], times[own])
            results = [self._column(table.column(name), known, points, own) for name in self.filled]
            columns = {name: value for name, (value, _) in zip(self.filled, results, strict=True)}
            there = table.slice(piece.begin, len(own))
            kept = [columns.get(name, there.column(name)) for name in there.column_names]
            yield pa.Table.from_arrays([*kept, *self._marks(results)], schema=self.schema)
            return
        check_room(times, room_of(self.every) + abs(self.origin), self.ordering.time)
        kind = self.schema.field(self.ordering.time).type
        for series, moments in _grid(piece, times, self.every, self.origin):
            points = _around(times, starts, series, moments)
            results = [self._column(table.column(name), known, points) for name in self.filled]
            firsts = pa.array(starts[series])
            keys = [one_zero(table.column(name).take(firsts)) for name in self.ordering.by]
            values = [value for value, _ in results]
            columns_of = [*keys, moments_from(moments, kind), *values, *self._marks(results)]
            yield pa.Table.from_arrays(columns_of, schema=self.schema)

    def _marks(self, results: list[tuple[pa.Array, Flags]]) -> list[pa.Array]:
        return [pa.array(filled) for _, filled in results] if self.flags else []

    def _column(
        self, column: pa.ChunkedArray, known: _Known, points: _Points, own: Places | None = None
    ) -> tuple[pa.Array, Flags]:
        """The values at points, which may be rows themselves (``own``), and which of them are filled."""
        valid = np.asarray(pc.is_valid(column))
        back = known.last_before(valid, points)
        exact = (back >= 0) & (known.times[back] == points.times)
        if own is not None:
            # A row keeps its own value, whatever others of its time say.
            exact, back = valid[own], np.where(valid[own], own, back)
        if self.method in ("zero", "null"):
            taken = _taken(column, back, exact)
            if self.method == "null":
                return taken, np.zeros(len(exact), np.bool_)
            return pc.fill_null(taken, _zero(column.type)), ~exact
        ahead = np.where(exact, back, known.first_after(valid, points))
        has_back, has_ahead = back >= 0, ahead >= 0
        if self.limit is not None:
            has_back &= points.times - known.times[back] <= self.limit
            has_ahead &= known.times[ahead] - points.times <= self.limit
        if self.method == "ffill":
            return _taken(column, back, has_back), has_back & ~exact
        if self.method == "bfill":
            return _taken(column, ahead, has_ahead), has_ahead & ~exact
        numbers = doubles_of(column)
        both = exact | (has_back & has_ahead)
        # Differences of whole numbers are exact, those of large doubles are not.
        length = (known.times[ahead] - known.times[back]).astype(np.float64)
        share = (points.times - known.times[back]).astype(np.float64) / np.where(length == 0, 1.0, length)
        with np.errstate(all="ignore"):
            between = numbers[back] + (numbers[ahead] - numbers[back]) * share
        return pa.array(np.where(exact | (length == 0), numbers[back], between), mask=~both), both & ~exact


def _zero(kind: pa.DataType) -> pa.Scalar[Any]:
    # A whole number is cast to a decimal only if it has room for all 64 bits.
    return pa.scalar(Decimal(0), kind) if pa.types.is_decimal(kind) else pa.scalar(0).cast(kind)


class _Known:
    """Which rows of sorted series have a value, and which of them is the nearest."""

    def __init__(self, times: Places, starts: Places) -> None:
        self.times, self._starts = times, starts
        self._ends = np.append(starts[1:], len(times))
        new = np.ones(len(times), np.bool_)
        new[1:] = times[1:] != times[:-1]
        new[starts] = True
        firsts = np.flatnonzero(new)
        self._last_of_time = np.repeat(np.append(firsts[1:], len(times)) - 1, np.diff(firsts, append=len(times)))

    def last_before(self, valid: Flags, points: _Points) -> Places:
        """The last row with a value up to each point, or -1."""
        found = self._back(valid)[points.before - 1]
        return np.where((points.before > 0) & (found >= self._starts[points.series]), found, -1)

    def first_after(self, valid: Flags, points: _Points) -> Places:
        """The row with the first value from each point on, of several of one time the last; or -1."""
        rows = len(valid)
        ahead = np.minimum.accumulate(np.where(valid, np.arange(rows), rows)[::-1])[::-1]
        found = ahead[np.minimum(points.from_, rows - 1)]
        there = (points.from_ < rows) & (found < self._ends[points.series])
        return np.where(there, self._back(valid)[self._last_of_time[np.minimum(found, rows - 1)]], -1)

    @staticmethod
    def _back(valid: Flags) -> Places:
        found: Places = np.maximum.accumulate(np.where(valid, np.arange(len(valid)), -1))
        return found


def _around(times: Places, starts: Places, series: Places, moments: Places) -> _Points:
    return _Points(
        series,
        moments,
        first_from(times, starts, series, moments + 1),
        first_from(times, starts, series, moments),
    )


def _grid(piece: Surrounded, times: Places, every: Step, origin: int) -> Iterator[tuple[Places, Places]]:
    """The points of each series from its first row to its last in the piece, or from behind its last row before,
    in pieces.
    """
    first, last = times[piece.starts], times[np.append(piece.starts[1:], len(times)) - 1]
    if piece.after is not None:
        first[0] = piece.after + 1
    last[-1] = times[piece.end - 1]
    low = number_of(first - 1, every, origin) + 1
    counts = np.maximum(number_of(last, every, origin) - low + 1, 0)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, _POINTS):
        number = np.arange(begin, min(begin + _POINTS, total))
        series = np.searchsorted(ends, number, "right")
        yield series, begin_of(low[series] + number - (ends - counts)[series], every, origin)


def _taken(column: pa.ChunkedArray, rows: Places, there: Flags) -> pa.Array:
    return _one(column.take(pa.array(np.where(there, rows, 0), mask=~there)))


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    return whole
