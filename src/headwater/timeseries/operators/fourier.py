"""Fourier transforms: which frequencies a series is made of.

A series of n evenly spaced values becomes n complex numbers, one beside each row: in the k-th row that of the k-th
frequency, 0, 1/(n dt), ... and then the negative ones, as numpy orders them. The series is taken as even, ``step``
apart; its times only order it. One value that is missing makes all of them unknown, so they are null then. A series has
to fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.timeseries.frames import doubles_of
from headwater.timeseries.node import Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.operators.series import extended, extended_schema
from headwater.timeseries.rows import Rows, key_starts, whole_keys
from headwater.timeseries.total_order import checked

__all__ = ["Fourier"]


@dataclass(frozen=True)
class Fourier(Keyed):
    """The frequency and the complex amplitude beside each row.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"t": [1, 2, 3, 4], "v": [1.0, -1.0, 1.0, -1.0]}))
    >>> run_here(Fourier(rows, Ordering("t"), "v", 1.0)).select(["freq", "ft_real", "ft_imag"]).to_pylist()[2]
    {'freq': -0.5, 'ft_real': 4.0, 'ft_imag': 0.0}
    """

    input: Node
    ordering: Ordering
    column: str
    step: float
    names: tuple[str, str, str] = ("freq", "ft_real", "ft_imag")

    @property
    def schema(self) -> pa.Schema:
        return extended_schema(self.input.schema, dict.fromkeys(self.names, pa.float64()))

    def line(self) -> str:
        return f"fourier {self.column}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def kernel(self) -> KeyedKernel:
        return _Fourier(self.ordering, self.column, self.step, self.names)


@dataclass(frozen=True, slots=True)
class _Fourier:
    ordering: Ordering
    column: str
    step: float
    names: tuple[str, str, str]

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering)
        for table in whole_keys(chunks, self.ordering.by):
            column = table.column(self.column)
            values = doubles_of(column, np.nan)
            starts = key_starts(table, self.ordering.by)
            lengths = np.diff(starts, append=len(values))
            spectrum = np.empty(len(values), np.complex128)
            frequencies = np.empty(len(values))
            # Series of the same length are transformed together.
            for length in np.unique(lengths):
                at = starts[lengths == length][:, None] + np.arange(length)
                spectrum[at] = np.fft.fft(values[at], axis=1)
                frequencies[at] = np.fft.fftfreq(int(length), self.step)
            lost = np.repeat(np.logical_or.reduceat(np.isnan(values), starts), lengths)
            mask = lost if lost.any() else None
            parts = (pa.array(spectrum.real, mask=mask), pa.array(spectrum.imag, mask=mask))
            yield extended(table, dict(zip(self.names, (pa.array(frequencies), *parts), strict=True)))
