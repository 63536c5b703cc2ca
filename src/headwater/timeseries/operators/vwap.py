"""Volume-weighted average prices: what was paid, over what was bought.

``sum(price * volume) / sum(volume)``, of doubles, over rows that have both; where no volume was traded there is no
price: null. Beside each row it is that of the series so far, or of a frame (`Vwap`); with ``every`` one row for each
window of time in which a series has rows (`VwapWindows`), windows being cut in absolute time as Spark's ``window()``
does, or by months of the calendar.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.kernels.arrays import read_only
from headwater.timeseries.frames import Frame, bounds_of, doubles_of
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.series import extended, extended_schema
from headwater.timeseries.querying import quoted
from headwater.timeseries.reaching import carried, neighbourhoods
from headwater.timeseries.rows import Rows, key_starts, whole_keys
from headwater.timeseries.steps import Step, begin_of, most_of, number_of
from headwater.timeseries.times import time_numbers
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Vwap", "VwapWindows"]

_WINDOW = "__hw_window"

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Vwap(Keyed):
    """The average price of the rows of a frame, beside each row; without a frame, of the series so far.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = Values(pa.table({"t": [1, 2], "p": [10.0, 13.0], "v": [1, 2]}))
    >>> run_here(Vwap(trades, Ordering("t"), "p", "v", "vwap"))["vwap"].to_pylist()
    [10.0, 12.0]
    """

    input: Node
    ordering: Ordering
    price: str
    volume: str
    name: str
    over: Frame | None = None

    @property
    def schema(self) -> pa.Schema:
        return extended_schema(self.input.schema, {self.name: pa.float64()})

    def line(self) -> str:
        return f"vwap of {self.price} by {self.volume}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        frame = self.over or Frame(None, 0)
        return (None if time == self.name else Extent(time, time, *frame.times),)

    def kernel(self) -> KeyedKernel:
        return _Vwap(self.ordering, self.price, self.volume, self.name, self.over)

    def frame(self, *frames: DataFrame) -> DataFrame:
        by = ", ".join(map(quoted, self.ordering.by))
        over = self.over or Frame(None, 0)
        columns = (self.ordering.time,) if over.in_time else (self.ordering.time, *self.ordering.tiebreak)
        kind = self.input.schema.field(self.ordering.time).type if over.in_time else None
        order = f"ORDER BY {', '.join(map(quoted, columns))} {over.sql(kind)}"
        window = f"OVER ({f'PARTITION BY {by} ' if by else ''}{order})"
        value, volume = _sums(self.price, self.volume)
        text = f"{value} {window} / nullif({volume} {window}, CAST(0 AS DOUBLE))"
        return frames[0].selectExpr(
            *[f"{text} AS {quoted(n)}" if n == self.name else quoted(n) for n in self.schema.names]
        )


def _sums(price: str, volume: str) -> tuple[str, str]:
    amount = f"CAST({quoted(volume)} AS DOUBLE)"
    paid = f"sum(CAST({quoted(price)} AS DOUBLE) * {amount})"
    return paid, f"sum(CASE WHEN {quoted(price)} IS NOT NULL THEN {amount} END)"


def _traded(table: pa.Table, price: str, volume: str) -> tuple[Doubles, Doubles]:
    """What was paid and how much was bought in each row; nothing where one of them is not known."""
    prices, volumes = table.column(price), table.column(volume)
    both = np.asarray(pc.and_(pc.is_valid(prices), pc.is_valid(volumes)))
    bought = doubles_of(volumes)
    with np.errstate(all="ignore"):
        paid = doubles_of(prices) * bought
    return np.where(both, paid, 0.0), np.where(both, bought, 0.0)


def _ratio(paid: Doubles, bought: Doubles) -> pa.Array:
    with np.errstate(all="ignore"):
        return pa.array(paid / bought, mask=bought == 0.0)


@dataclass(frozen=True, slots=True)
class _Vwap:
    ordering: Ordering
    price: str
    volume: str
    name: str
    over: Frame | None

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = rows.sorted(self.ordering.columns)
        if self.over is None:
            yield from self._so_far(checked(chunks, self.ordering))
            return
        if not self.over.in_time:
            chunks = checked(chunks, self.ordering)
        yield from self._framed(chunks, self.over)

    def _so_far(self, chunks: Iterator[pa.Table]) -> Iterator[pa.Table]:
        from headwater.kernels.series import running_sums

        states = (np.zeros(1), np.zeros(1))
        for part in carried(chunks, self.ordering.by):
            sums = []
            for values, state in zip(_traded(part.table, self.price, self.volume), states, strict=True):
                if not part.goes_on:
                    state[0] = 0.0
                out = np.empty(len(values))
                running_sums(read_only(values), part.starts, False, state, out)
                sums.append(out)
            yield extended(part.table, {self.name: _ratio(*sums)})

    def _framed(self, chunks: Iterator[pa.Table], frame: Frame) -> Iterator[pa.Table]:
        from headwater.kernels.series_frames import frame_sums

        assert frame.reach is not None
        for near in neighbourhoods(chunks, self.ordering, frame.reach):
            bounds = bounds_of(near, frame, self.ordering.time)
            lo, hi = bounds.lo[near.begin : near.end], bounds.hi[near.begin : near.end]
            sums = []
            for values in _traded(near.table, self.price, self.volume):
                out = np.empty(near.end - near.begin)
                frame_sums(read_only(values), near.starts, near.first, lo, hi, out)
                sums.append(out)
            yield extended(near.rows, {self.name: _ratio(*sums)})


@dataclass(frozen=True)
class VwapWindows(Keyed):
    """One row for each series and window of time: its start, the average price, the volume and the value.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = Values(pa.table({"t": [1, 2, 11], "p": [10.0, 13.0, 9.0], "v": [1, 2, 5]}))
    >>> run_here(VwapWindows(trades, Ordering("t"), "p", "v", 10)).to_pylist()
    [{'t': 0, 'vwap': 12.0, 'volume': 3.0, 'value': 36.0}, {'t': 10, 'vwap': 9.0, 'volume': 5.0, 'value': 45.0}]
    """

    input: Node
    ordering: Ordering
    price: str
    volume: str
    every: Step

    @property
    def schema(self) -> pa.Schema:
        kept = [self.input.schema.field(name) for name in (*self.ordering.by, self.ordering.time)]
        return pa.schema([*kept, *[pa.field(name, pa.float64()) for name in ("vwap", "volume", "value")]])

    def line(self) -> str:
        return f"vwap of {self.price} by {self.volume} in windows of {self.every}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        return (Extent(self.ordering.time, self.ordering.time, after=most_of(self.every)),)

    def kernel(self) -> KeyedKernel:
        return _Windows(self.ordering, self.price, self.volume, self.every, self.schema)

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        if not isinstance(self.every, int):
            return None
        from pyspark.sql import functions as f

        time, kind = quoted(self.ordering.time), self.input.schema.field(self.ordering.time).type
        start = f"{time} - pmod({time}, {self.every})"
        if pa.types.is_date(kind):
            start = f"date_add(DATE'1970-01-01', unix_date({time}) - pmod(unix_date({time}), {self.every}))"
        elif pa.types.is_timestamp(kind):
            start = f"window({time}, '{self.every} microseconds').start"
        value, volume = _sums(self.price, self.volume)
        kept = frames[0].withColumn(_WINDOW, f.expr(start))
        sums = kept.groupBy(*map(quoted, self.ordering.by), _WINDOW).agg(
            f.expr(f"coalesce({value}, CAST(0 AS DOUBLE)) AS value"),
            f.expr(f"coalesce({volume}, CAST(0 AS DOUBLE)) AS volume"),
        )
        cast = "BIGINT" if pa.types.is_int64(kind) else "INT" if pa.types.is_int32(kind) else ""
        moment = f"CAST({_WINDOW} AS {cast})" if cast else _WINDOW
        return sums.selectExpr(
            *map(quoted, self.ordering.by),
            f"{moment} AS {time}",
            "value / nullif(volume, CAST(0 AS DOUBLE)) AS vwap",
            "volume",
            "value",
        )


@dataclass(frozen=True, slots=True)
class _Windows:
    ordering: Ordering
    price: str
    volume: str
    every: Step
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        keys = (*self.ordering.by, _WINDOW)
        for table in whole_keys(map(self._placed, rows.sorted(self.ordering.columns)), keys):
            starts = key_starts(table, keys)
            paid, bought = (np.add.reduceat(v, starts) for v in _traded(table, self.price, self.volume))
            first = table.take(pa.array(starts))
            time = self.schema.field(self.ordering.time).type
            moments = first.column(_WINDOW).cast(pa.int32()) if pa.types.is_date(time) else first.column(_WINDOW)
            columns = [*(first.column(name) for name in self.ordering.by), moments.cast(time)]
            yield pa.table([*columns, _ratio(paid, bought), pa.array(bought), pa.array(paid)], schema=self.schema)

    def _placed(self, table: pa.Table) -> pa.Table:
        """The rows with the start of their window."""
        times, _ = time_numbers(table.column(self.ordering.time))
        return table.append_column(_WINDOW, pa.array(begin_of(number_of(times, self.every), self.every)))
