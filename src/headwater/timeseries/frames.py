"""Frames: which rows of its series each row looks at, and plain aggregates over them, without SQL.

A frame goes from ``begin`` to ``end``, counted forward from the row (3 rows before it is -3), in rows or in time; None
is without a bound. Both ends belong to it: since times are whole numbers, an open end is a closed one a unit further
in.

Sums of doubles and averages are rounded along the frame (`headwater.kernels.series_frames`): up to 32 rows as Spark
does it, bit for bit; over more rows the last bits may differ from Spark's, and are the same however rows are cut. Rows
of the same time are added up in the order of the tiebreak; without one that order is not known, and the last bits of a
sum of doubles are not either. Extremes are Spark's: NaN is the greatest number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import ExpressionError
from headwater.kernels.arrays import read_only
from headwater.timeseries.plain_aggregates import PlainAggregate
from headwater.timeseries.reaching import Neighbourhood, Reach
from headwater.timeseries.times import time_numbers

__all__ = ["Bounds", "Frame", "bounds_of", "doubles_of", "over_bounds", "taken", "words_of"]

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows from ``begin`` to ``end`` further, both included.

    >>> Frame(-9, 0).sql(), Frame(None, 0).sql(), Frame(-5, -1, in_time=True).sql(pa.timestamp("us"))
    ('ROWS BETWEEN 9 PRECEDING AND CURRENT ROW', 'ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW', \
'RANGE BETWEEN INTERVAL 5 MICROSECONDS PRECEDING AND INTERVAL 1 MICROSECONDS PRECEDING')
    """

    begin: int | None
    end: int | None
    in_time: bool = False

    def sql(self, kind: pa.DataType | None = None) -> str:
        """Its text; of a frame in time for an order column of this type."""
        begin = _bound(self.begin, "PRECEDING", kind)
        return f"{'RANGE' if self.in_time else 'ROWS'} BETWEEN {begin} AND {_bound(self.end, 'FOLLOWING', kind)}"

    @property
    def reach(self) -> Reach | None:
        """How far it goes, if it has bounds."""
        if self.begin is None or self.end is None:
            return None
        return Reach(max(0, -self.begin), max(0, self.end), self.in_time)

    @property
    def times(self) -> tuple[int | None, int | None]:
        """How far back and ahead it goes in time; None is without a bound, as of a number of rows.

        >>> Frame(-9, 0, in_time=True).times, Frame(-9, 0).times, Frame(None, 0).times
        ((9, 0), (None, 0), (None, 0))
        """
        before = 0 if self.begin is None else max(0, -self.begin)
        after = 0 if self.end is None else max(0, self.end)
        if self.begin is None or (before and not self.in_time):
            return None, None if self.end is None or (after and not self.in_time) else after
        return before, None if self.end is None or (after and not self.in_time) else after


def _bound(offset: int | None, endless: str, kind: pa.DataType | None) -> str:
    if offset is None:
        return f"UNBOUNDED {endless}"
    if offset == 0:
        return "CURRENT ROW"
    length = str(abs(offset))
    if kind is not None and pa.types.is_timestamp(kind):
        length = f"INTERVAL {length} MICROSECONDS"
    return f"{length} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The frames of the rows to be answered: from ``lo`` to ``hi``, not included.

    ``copies`` says, where all rows of a series have the same frame, how many there are of each: frames are then one for
    each series.
    """

    near: Neighbourhood
    lo: Numbers
    hi: Numbers
    copies: Numbers | None = None

    def spread(self, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What was found for the frames, for each row."""
        return found if self.copies is None else np.repeat(found, self.copies)


def bounds_of(near: Neighbourhood, frame: Frame, time: str) -> Bounds:
    """The frames of rows; one without a bound needs a table of whole series."""
    from headwater.kernels.series_frames import row_frames, time_frames

    rows = near.table.num_rows
    assert frame.reach is not None or (near.is_whole and not frame.in_time)
    if frame.begin is None and frame.end is None:
        lengths = np.diff(near.starts, append=rows)
        return Bounds(near, near.starts, near.starts + lengths, lengths)
    lo, hi = np.empty(rows, np.int64), np.empty(rows, np.int64)
    begin, end = -rows if frame.begin is None else frame.begin, rows if frame.end is None else frame.end
    if frame.in_time:
        times, timed = time_numbers(near.table.column(time))
        time_frames(
            read_only(times), np.ones(rows, np.bool_) if timed is None else timed, near.starts, begin, end, lo, hi
        )
    else:
        row_frames(near.starts, rows, max(begin, -rows), min(end, rows), lo, hi)
    return Bounds(near, lo, hi)


def over_bounds(bounds: Bounds, aggregate: PlainAggregate, least: int) -> pa.Array:
    """The aggregate over the frames of the rows to be answered; null where fewer than ``least`` values are there."""
    near, function = bounds.near, aggregate.function
    asked = slice(None) if bounds.copies is not None else slice(near.begin, near.end)
    lo, hi = bounds.lo[asked], bounds.hi[asked]
    if aggregate.column is None:
        counts = bounds.spread(hi - lo)
        return pa.array(counts, mask=counts < least if least > 0 else None)
    column = near.table.column(aggregate.column)
    if function in ("min", "max"):
        return _extremes(bounds, column, sign=1 if function == "min" else -1, least=least)
    counts = _counts(column, lo, hi)
    if function == "count":
        counts = bounds.spread(counts)
        return pa.array(counts, mask=counts < least if least > 0 else None)
    if function in _MOMENTS or function == "zscore":
        return _moments(bounds, lo, hi, column, function, counts, least)
    hidden = _or_none(bounds.spread(counts < max(least, 1)))
    if pa.types.is_integer(aggregate.type):
        return pa.array(bounds.spread(_whole_sums(column, lo, hi)), mask=hidden)
    from headwater.kernels.series_frames import frame_sums

    sums = np.empty(len(lo))
    frame_sums(doubles_of(column), near.starts, near.first, lo, hi, sums)
    if function == "avg":
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = sums / counts
    return pa.array(bounds.spread(sums), mask=hidden)


def _or_none(mask: Flags) -> Flags | None:
    return mask if mask.any() else None


_MOMENTS = {"stddev_samp": 1, "stddev_pop": 0, "var_samp": 1, "var_pop": 0}


def _moments(
    bounds: Bounds, lo: Numbers, hi: Numbers, column: pa.ChunkedArray, function: str, counts: Numbers, least: int
) -> pa.Array:
    from headwater.kernels.series_frames import frame_moments

    near = bounds.near
    values = doubles_of(column)
    valid = np.asarray(pc.is_valid(column)) if column.null_count else np.ones(len(values), np.bool_)
    means, squares = np.empty(len(lo)), np.empty(len(lo))
    frame_moments(values, valid, near.starts, near.first, lo, hi, means, squares)
    fewer = _MOMENTS.get(function, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = squares / (counts - fewer)
        found = found if function.startswith("var") else np.sqrt(found)
        hidden = bounds.spread(counts < max(least, fewer + 1))
        if function != "zscore":
            return pa.array(bounds.spread(found), mask=_or_none(hidden))
        spread, means = bounds.spread(found), bounds.spread(means)
        hidden = hidden | (spread == 0.0) | ~valid[near.begin : near.end]
        return pa.array((values[near.begin : near.end] - means) / spread, mask=_or_none(hidden))


def _counts(column: pa.ChunkedArray, lo: Numbers, hi: Numbers) -> Numbers:
    if not column.null_count:
        return hi - lo
    there = np.zeros(len(column) + 1, np.int64)
    np.cumsum(np.asarray(pc.is_valid(column)), out=there[1:])
    return there[hi] - there[lo]


def _whole_sums(column: pa.ChunkedArray, lo: Numbers, hi: Numbers) -> Numbers:
    values = (column.fill_null(0) if column.null_count else column).to_numpy().astype(np.int64, copy=False)
    sums = np.zeros(len(values) + 1, np.int64)
    # What goes over the edge here comes back where two are subtracted.
    np.cumsum(values, out=sums[1:])
    found: Numbers = sums[hi] - sums[lo]
    if len(values) and len(lo):
        largest = max(abs(int(values.max())), abs(int(values.min()))) * int((hi - lo).max())
        if largest >= 1 << 63:
            about = np.zeros(len(values) + 1)
            np.cumsum(values, dtype=np.float64, out=about[1:])
            scale = float(np.abs(about).max()) * 1e-9 + 1e6
            if (np.abs(about[hi] - about[lo] - found) > 1e18 + scale).any():
                raise ExpressionError.failed("sum", "a number does not fit its type (overflow)")
    return found


def _extremes(bounds: Bounds, column: pa.ChunkedArray, *, sign: int, least: int) -> pa.Array:
    from headwater.kernels.series_frames import frame_extremes

    near = bounds.near
    lo, hi = bounds.lo, bounds.hi
    if bounds.copies is not None:
        lo, hi = np.repeat(lo, bounds.copies), np.repeat(hi, bounds.copies)
    words, valid = words_of(column)
    at = np.empty(len(words), np.int64)
    frame_extremes(read_only(words), valid, near.starts, lo, hi, sign, at)
    at = at[near.begin : near.end]
    hidden = at < 0
    if least > 1:
        hidden |= _counts(column, lo[near.begin : near.end], hi[near.begin : near.end]) < least
    return taken(column, at, _or_none(hidden))


def taken(column: pa.ChunkedArray, at: Numbers, hidden: Flags | None) -> pa.Array:
    """The values at some places; null where hidden."""
    if not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return pa.array(column.to_numpy()[at], column.type, mask=hidden, from_pandas=False)
    found = column.take(pa.array(at, mask=hidden))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def doubles_of(column: pa.ChunkedArray, nothing: float = 0.0) -> Doubles:
    """The numbers of a column as doubles, the nearest ones, with ``nothing`` where there is none.

    >>> doubles_of(pa.chunked_array([[2**53 + 1, None]]), -1.0).tolist()
    [9007199254740992.0, -1.0]
    """
    # Arrow would refuse whole numbers that are not exactly a double.
    values = column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False)
    values = values.fill_null(nothing) if values.null_count else values
    return read_only(np.ascontiguousarray(values.to_numpy()))


def words_of(column: pa.ChunkedArray) -> tuple[Numbers, Flags]:
    """Words that compare as the values do (-0.0 is 0.0, NaN the greatest), and which are there.

    >>> words_of(pa.chunked_array([[float("nan"), -1.0, 0.0, None, -0.0]]))[0].argsort(kind="stable").tolist()
    [1, 2, 3, 4, 0]
    """
    kind = column.type
    valid = np.asarray(pc.is_valid(column)) if column.null_count else np.ones(len(column), np.bool_)
    if pa.types.is_floating(kind):
        values = doubles_of(column) + 0.0
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF)), valid
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    numbers = (column.fill_null(0) if column.null_count else column).to_numpy()
    return numbers.astype(np.int64, copy=False), valid
