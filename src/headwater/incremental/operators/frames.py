"""Frames: aggregates and places over the rows around each row.

``ROWS BETWEEN a AND b`` counts rows, ``RANGE BETWEEN a AND b`` goes by the value of the order column, where rows of the
same place are peers and come in together. Sums are exact (`headwater.kernels.window_sums`), so they do not depend on
the history of the group.

What a change costs: with bounds on both sides, the rows within twice the frame around it, whatever the size of the
group. Without a bound on one side, the rest of the group on the other side changes, and the whole group is read. Rows
in a slice are passed over once for each function: O(1) a row for counts, extremes and places, O(limbs) for sums and
averages, O(limbs squared) for deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from headwater.base.durations import duration_words
from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.aggregates.aggregation import Values
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.operators.cogroup import Groups, Slices
from headwater.incremental.operators.frame_sums import Sums, result_type
from headwater.incremental.operators.over import Over, gathered
from headwater.incremental.operators.reach import Reach, order_value
from headwater.incremental.zset import Positions
from headwater.kernels.window_frames import by_peers, by_rows, by_value, extremes, present

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange

__all__ = ["Frame", "FrameFunction", "Frames", "length_words", "units"]

Distance = int | Decimal | timedelta
What = Literal[
    "count_rows", "count", "sum", "avg", "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop",
    "first_value", "last_value", "nth_value",
]  # fmt: skip

_KINDS = {"word": 0, "bool": 0, "double": 1, "float": 1, "pair": 2, "slot": 3}
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows a row looks at. Distances count forward: 3 PRECEDING is -3, CURRENT ROW 0, UNBOUNDED is None.

    >>> Frame("rows", -6, 0)
    Frame(unit='rows', begin=-6, end=0)
    """

    unit: Literal["rows", "range"] = "range"
    begin: Distance | None = None
    end: Distance | None = 0

    def words(self) -> str:
        """Which rows these are, in words.

        >>> Frame("range", timedelta(hours=-1), 0).words()
        '1 hour preceding to current row'
        >>> Frame("rows", None, -1).words(), Frame("rows", None, None).words()
        ('all rows preceding to 1 row preceding', 'all rows')
        """
        if self.begin is None and self.end is None:
            return "all rows"
        return f"{self._side(self.begin, 'preceding')} to {self._side(self.end, 'following')}"

    def _side(self, bound: Distance | None, endless: str) -> str:
        if bound is None:
            return f"all rows {endless}"
        if not bound:
            return "current row"
        nothing = timedelta() if isinstance(bound, timedelta) else 0
        side = "preceding" if bound < nothing else "following"  # type: ignore[operator]
        return f"{self._length(bound)} {side}"

    def _length(self, bound: Distance) -> str:
        if isinstance(bound, timedelta):
            return duration_words(bound // timedelta(microseconds=1))
        if self.unit == "rows":
            return f"{abs(bound):,} row{'' if abs(bound) == 1 else 's'}"
        return str(abs(bound))

    def bounds(self, layout: Layout, peers: int | None = None) -> tuple[int | None, int | None]:
        """The distances in units of the order column, or in rows."""
        begin, end = (self._bound(layout, b, peers) for b in (self.begin, self.end))
        if begin is not None and end is not None and begin > end:
            raise InputError.bad_argument("frame", f"{self.begin} to {self.end}", "an end that is not before the begin")
        return begin, end

    def _bound(self, layout: Layout, bound: Distance | None, peers: int | None) -> int | None:
        if bound is None:
            return None
        if not bound:
            return 0
        if self.unit == "range":
            return units(layout, bound, peers)
        if not isinstance(bound, int):
            raise InputError.bad_argument("frame", bound, "a number of rows")
        return bound


def units(layout: Layout, distance: Distance, peers: int | None = None) -> int:
    """A distance in units of the one order column of a layout: ticks, days, or the last digit of a decimal."""
    order_value(layout, peers)
    return units_of(layout.column(layout.order[0].column).dtype, distance)


def units_of(dtype: pa.DataType, distance: Distance) -> int:
    """A distance in units of a type.

    >>> units_of(pa.timestamp("ms"), timedelta(seconds=-2)), units_of(pa.decimal128(10, 2), Decimal("1.5"))
    (-2000, 150)
    """
    if isinstance(distance, timedelta):
        if pa.types.is_date32(dtype) and distance % timedelta(days=1) == timedelta(0):
            return distance // timedelta(days=1)
        if pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype):
            microseconds = distance // timedelta(microseconds=1)
            scaled = microseconds * _TICKS[dtype.unit]
            if scaled % 1_000_000 == 0:
                return int(scaled // 1_000_000)
    elif pa.types.is_decimal(dtype):
        scaled_decimal = Decimal(distance).scaleb(dtype.scale)
        if scaled_decimal == int(scaled_decimal):
            return int(scaled_decimal)
    elif isinstance(distance, int):
        return distance
    raise InputError.bad_argument("distance", distance, f"a whole number of units of {dtype}")


@dataclass(frozen=True, slots=True)
class FrameFunction:
    """One column: what of which column over the frame.

    >>> FrameFunction("total", "sum", "amount")
    FrameFunction(name='total', what='sum', column='amount', nth=1, ignore_nulls=False)
    """

    name: str
    what: What
    column: str | None = None
    nth: int = 1
    ignore_nulls: bool = False

    def field(self, layout: Layout) -> pa.Field:
        """The column of the output."""
        if self.what in {"count_rows", "count"}:
            return pa.field(self.name, pa.int64(), nullable=False)
        if self.column is None:
            raise InputError.bad_argument("column", None, f"a column for {self.what}")
        if self.nth < 1:
            raise InputError.bad_argument("nth", self.nth, "a place from 1 on")
        column = layout.column(self.column)
        if self.what in {"min", "max"} and column.kind == "nested":
            raise UnsupportedError.column_type(column.name, str(column.dtype), "compare values that have an order")
        if self.what in {"min", "max", "first_value", "last_value", "nth_value"}:
            return pa.field(self.name, column.dtype)
        return pa.field(self.name, result_type(self.what, column))


class Frames(Over):
    """Functions over one frame of an arranged stream.

    ``peers`` is how many columns of the order a RANGE frame goes by, None for all; the others say in which order its
    rows are taken.
    """

    def __init__(
        self,
        source: Arrange,
        functions: Sequence[FrameFunction],
        *,
        frame: Frame | None = None,
        peers: int | None = None,
        columns: Sequence[tuple[str, str]] | None = None,
        sql: str = "",
    ) -> None:
        layout = source.layout
        self._frame = frame or Frame()
        self._begin, self._end = self._frame.bounds(layout, peers)
        back = None if self._begin is None else -self._begin
        self._by_value = self._frame.unit == "range" and bool(self._begin or self._end)
        self._value = order_value(layout, peers) if self._by_value else None
        columns_of_peers = len(layout.order) if peers is None else peers
        self._peer_parts = layout.first_order_parts(columns_of_peers)
        reach = Reach.values(back, self._end, peers) if self._frame.unit == "range" else Reach.rows(back, self._end)
        if not columns_of_peers and self._frame.unit == "range":
            reach = Reach.whole()
        self._functions = tuple(functions)
        by = "" if peers is None else f" by the first {peers} of the order"
        detail = f"{', '.join(map(_text, functions))}; {self._frame.unit} {self._begin} to {self._end}{by}"
        fields = [f.field(layout) for f in functions]
        super().__init__(source, fields, reach=reach, columns=columns, label="frames", detail=detail, sql=sql)
        self.shown = f"{', '.join(map(_words, functions))}; {self._frame.words()}"

    def compute(self, groups: Groups, read: Slices) -> list[Values]:
        lo, hi = np.empty(len(groups), dtype=np.int64), np.empty(len(groups), dtype=np.int64)
        self._bound(groups, lo, hi)
        sums = Sums(groups, lo, hi, read.core[groups.at])
        return [self._values(f, groups, lo, hi, sums) for f in self._functions]

    def _bound(self, groups: Groups, lo: Positions, hi: Positions) -> None:
        endless = np.array([self._begin is None, self._end is None], dtype=np.int64)
        begin, end = self._begin or 0, self._end or 0
        if self._frame.unit == "rows":
            by_rows(groups.offsets, endless, begin, end, lo, hi)
            return
        layout = groups.layout
        if self._value is None:
            by_peers(groups.rows, groups.at, groups.offsets, self._peer_parts, endless, lo, hi)
            return
        words = [(d >> 64, ((d & 0xFFFFFFFFFFFFFFFF) ^ (1 << 63)) - (1 << 63)) for d in (begin, end)]
        distance = np.array(words, dtype=np.int64)
        null_rank = 0 if layout.order[0].nulls_first else 1
        by_value(groups.rows, groups.at, groups.offsets, self._value, null_rank, endless, distance, lo, hi)

    def _values(self, f: FrameFunction, groups: Groups, lo: Positions, hi: Positions, sums: Sums) -> Values:
        if f.what == "count_rows":
            return Values((hi - lo)[:, None])
        assert f.column is not None, "checked when the field was made"
        placed = groups.layout.column(f.column)
        if f.what in {"min", "max", "first_value", "last_value", "nth_value"}:
            return gathered(groups, placed, _places(f, groups, placed, lo, hi))
        return sums.values(f.what, placed)


def _places(f: FrameFunction, groups: Groups, placed: Placed, lo: Positions, hi: Positions) -> Positions:
    """Which copies the values are taken from."""
    which = np.empty(len(groups), dtype=np.int64)
    at = (placed.null_word, placed.null_bit)
    if f.what in {"min", "max"}:
        extremes(groups.rows, groups.at, lo, hi, placed.word, _KINDS[placed.kind], *at, f.what == "max", which)
    else:
        last = f.what == "last_value"
        nth = f.nth if f.what == "nth_value" else 1
        present(groups.rows, groups.at, lo, hi, *at, nth, last, f.ignore_nulls and placed.nullable, which)
    return which


def _words(f: FrameFunction) -> str:
    return _text(f).replace("count_rows(", "count(", 1) if f.what == "count_rows" else _text(f)


def length_words(dtype: pa.DataType, distance: int) -> str:
    """A distance in units of a type (`units_of`), in words.

    >>> length_words(pa.timestamp("us"), 300_000_000), length_words(pa.date32(), 1)
    ('5 minutes', '1 day')
    >>> length_words(pa.decimal128(9, 2), 150)
    '1.50'
    """
    if pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype):
        scaled, rest = divmod(distance * 1_000_000, _TICKS[dtype.unit])
        return duration_words(scaled) if not rest else f"{distance:,} {dtype.unit}"
    if pa.types.is_date(dtype):
        return duration_words(distance * 86_400_000_000)
    if pa.types.is_decimal(dtype):
        return str(Decimal(distance).scaleb(-dtype.scale))
    return f"{distance:,}"


def _text(f: FrameFunction) -> str:
    extra = f", {f.nth}" if f.what == "nth_value" else ""
    return f"{f.name} = {f.what}({f.column or '*'}{extra}){' ignore nulls' if f.ignore_nulls else ''}"
