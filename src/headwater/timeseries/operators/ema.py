"""Exponential averages: true recursion along a series, by rows or by time, carried from chunk to chunk.

By rows ``y[i] = (1 - alpha) y[i-1] + alpha x[i]`` from ``y[0] = x[0]``. `adjust` divides by the weights there are, so
that the first rows do not count more than others: the weighted mean of all rows so far, with weights ``(1 - alpha) **
age``. By time the old average keeps the share ``2 ** -(elapsed / half_life)``, whatever the spacing of rows; a row at
the time of the one before it adds nothing.

A row without a value shows the average as it is. It leaves it as old as it was (`skip`), or counts as a row that has
passed (`age`), so that the next value weighs more. By time ages pass anyway. NaN is a value like any other, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.kernels.arrays import read_only
from headwater.timeseries.frames import doubles_of
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.series import extended, extended_schema
from headwater.timeseries.reaching import Carried, carried
from headwater.timeseries.rows import Rows
from headwater.timeseries.times import time_numbers
from headwater.timeseries.total_order import checked

__all__ = ["Decay", "Ema"]


@dataclass(frozen=True, slots=True)
class Decay:
    """How the past loses its weight: by rows (``alpha``) or by time (``half_life``, in the time column's unit)."""

    alpha: float = 0.0
    half_life: int = 0
    adjust: bool = False
    skip: bool = True


@dataclass(frozen=True)
class Ema(Keyed):
    """Exponential averages of columns.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = pa.table({"t": [1, 2, 3], "p": [8.0, 4.0, 0.0]})
    >>> run_here(Ema(Values(trades), Ordering("t"), {"e": "p"}, Decay(alpha=0.5), "ema"))["e"].to_pylist()
    [8.0, 6.0, 3.0]
    """

    input: Node
    ordering: Ordering
    columns: Mapping[str, str]
    decay: Decay
    shown: str

    @property
    def schema(self) -> pa.Schema:
        return extended_schema(self.input.schema, dict.fromkeys(self.columns, pa.float64()))

    def line(self) -> str:
        return self.shown

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        return (None if time in self.columns else Extent(time, time, before=None),)

    def kernel(self) -> KeyedKernel:
        return _Ema(self.ordering, dict(self.columns), self.decay)


@dataclass(frozen=True, slots=True)
class _Ema:
    ordering: Ordering
    columns: Mapping[str, str]
    decay: Decay

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        states = {name: (np.zeros(3), np.zeros(1, np.int64)) for name in self.columns}
        for part in carried(checked(rows.sorted(self.ordering.columns), self.ordering), self.ordering.by):
            found = {}
            for name, column in self.columns.items():
                state, moment = states[name]
                if not part.goes_on:
                    state[:] = 0.0
                found[name] = self._averages(part, part.table.column(column), state, moment)
            yield extended(part.table, found)

    def _averages(self, part: Carried, column: pa.ChunkedArray, state: np.ndarray, moment: np.ndarray) -> pa.Array:
        from headwater.kernels.series import decayed, smoothed

        rows, decay = part.table.num_rows, self.decay
        values = doubles_of(column)
        valid = np.asarray(pc.is_valid(column)) if column.null_count else np.ones(rows, np.bool_)
        out, known = np.empty(rows), np.empty(rows, np.bool_)
        if decay.half_life:
            times, timed = time_numbers(part.table.column(self.ordering.time))
            # Without a time there is no age: such rows come first, and have no average.
            valid = valid if timed is None else valid & timed
            decayed(values, valid, read_only(times), part.starts, float(decay.half_life), state, moment, out, known)
        else:
            smoothed(values, valid, part.starts, decay.alpha, decay.adjust, decay.skip, state, out, known)
        return pa.array(out, mask=None if known.all() else ~known)
