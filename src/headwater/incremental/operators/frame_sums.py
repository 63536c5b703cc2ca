"""What is made of exact sums over frames: counts, sums, averages, deviations, in Spark's types.

A sum of whole numbers is a bigint, and an error where it does not fit; of decimals a decimal with ten more digits; of
doubles the nearest double to the exact sum. An average of decimals has four more digits after the point, rounded half
up. A deviation of one value is null for a sample, as in Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import ExpressionError, UnsupportedError
from headwater.incremental.aggregates.aggregation import Values
from headwater.incremental.aggregates.decimals import averages, exceeds
from headwater.kernels.window_sums import DOUBLE, PAIR, WORD, sums

if TYPE_CHECKING:
    from headwater.incremental.layout import Placed
    from headwater.incremental.operators.cogroup import Groups
    from headwater.incremental.zset import Positions

__all__ = ["Sums", "result_type"]

_FLIP = np.int64(-(1 << 63))
_LOW = (1 << 64) - 1
_KINDS = {"word": WORD, "double": DOUBLE, "float": DOUBLE, "pair": PAIR}
_DEVIATIONS = {"stddev_samp", "stddev_pop", "var_samp", "var_pop"}


def result_type(what: str, column: Placed) -> pa.DataType:
    """The type of a sum, average or deviation of a column.

    >>> from headwater.incremental.layout import Layout
    >>> price = Layout(pa.schema([("price", pa.decimal128(10, 2))])).columns[0]
    >>> str(result_type("sum", price)), str(result_type("avg", price))
    ('decimal128(20, 2)', 'decimal128(14, 6)')
    """
    dtype = column.dtype
    decimal = pa.types.is_decimal(dtype)
    if not (decimal or pa.types.is_integer(dtype) or pa.types.is_floating(dtype)):
        raise UnsupportedError.column_type(column.name, str(dtype), f"{what} takes numbers: cast it first")
    if what == "sum" and decimal:
        return pa.decimal128(min(38, dtype.precision + 10), dtype.scale)
    if what == "avg" and decimal:
        return pa.decimal128(min(38, dtype.precision + 4), min(38, dtype.scale + 4))
    return pa.int64() if what == "sum" and pa.types.is_integer(dtype) else pa.float64()


class _Found:
    """The sums of one column."""

    def __init__(self, size: int) -> None:
        self.squared = False
        self.counts = np.zeros(size, dtype=np.int64)
        self.pairs = np.zeros((size, 2), dtype=np.int64)
        self.fits = np.ones(size, dtype=np.bool_)
        self.totals = np.zeros(size)
        self.spreads = np.zeros(size)


class Sums:
    """The sums of columns over frames, each computed once. Copies that are not ``wanted`` have none."""

    __slots__ = ("_found", "_groups", "_hi", "_lo", "_wanted")

    def __init__(self, groups: Groups, lo: Positions, hi: Positions, wanted: npt.NDArray[np.bool_]) -> None:
        self._groups = groups
        self._lo, self._hi = lo, hi
        self._wanted = wanted
        self._found: dict[str, _Found] = {}

    def values(self, what: str, placed: Placed) -> Values:
        """A column of the output."""
        found = self._sums(placed, squared=what in _DEVIATIONS)
        if what == "count":
            return Values(found.counts[:, None])
        nulls = found.counts == 0
        if what == "sum":
            return self._sum(placed, found, nulls)
        if what == "avg":
            return self._average(placed, found, nulls)
        sample = what.endswith("_samp")
        few = found.counts - 1 if sample else found.counts
        nulls |= few < 1
        doubles = found.spreads / np.where(nulls, 1, few)
        if pa.types.is_decimal(placed.dtype):
            doubles /= 10.0 ** (2 * placed.dtype.scale)
        return _doubles(np.sqrt(doubles) if what.startswith("stddev") else doubles, nulls)

    def _sums(self, placed: Placed, *, squared: bool) -> _Found:
        found = self._found.get(placed.name)
        if found is None or (squared and not found.squared):
            groups = self._groups
            found = self._found[placed.name] = _Found(len(groups))
            found.squared = squared
            sums(
                groups.rows,
                groups.at,
                self._lo,
                self._hi,
                self._wanted,
                placed.word,
                _KINDS.get(placed.kind, WORD),
                placed.null_word,
                placed.null_bit,
                squared,
                found.counts,
                found.pairs,
                found.fits,
                found.totals,
                found.spreads,
            )
        return found

    def _sum(self, placed: Placed, found: _Found, nulls: npt.NDArray[np.bool_]) -> Values:
        if placed.kind in {"double", "float"}:
            return _doubles(found.totals, nulls)
        high, low = found.pairs[:, 0], found.pairs[:, 1]
        dtype = result_type("sum", placed)
        if pa.types.is_integer(dtype):
            if (~found.fits | (high != low >> 63)).any():
                raise ExpressionError.failed(f"sum({placed.name})", "the sum does not fit a bigint")
            return Values(low[:, None].copy(), nulls)
        _check(placed, dtype, found)
        if dtype.precision <= 18:
            return Values(low[:, None].copy(), nulls)
        return Values(np.stack([high, low ^ _FLIP], axis=1), nulls)

    def _average(self, placed: Placed, found: _Found, nulls: npt.NDArray[np.bool_]) -> Values:
        if not pa.types.is_decimal(placed.dtype):
            return _doubles(found.totals / np.where(nulls, 1, found.counts), nulls)
        dtype = result_type("avg", placed)
        if (~found.fits & ~nulls).any():
            raise ExpressionError.failed(f"avg({placed.name})", "the sum does not fit 128 bits")
        divisor = np.where(nulls, 1, found.counts)
        more = 10 ** (dtype.scale - placed.dtype.scale)
        upper, lower = averages(found.pairs[:, 0], found.pairs[:, 1], divisor, more)
        if (exceeds(upper, lower, dtype.precision) & ~nulls).any():
            raise ExpressionError.failed(f"avg({placed.name})", f"the average does not fit {dtype}")
        if dtype.precision <= 18:
            return Values(lower[:, None], nulls)
        return Values(np.stack([upper, lower ^ _FLIP], axis=1), nulls)


def _check(placed: Placed, dtype: pa.DataType, found: _Found) -> None:
    if dtype.precision < 38 and found.fits.all():  # ten more digits are enough for any number of rows
        return
    most = 10**dtype.precision
    large = ~found.fits | (np.abs(found.totals) > most * 0.999)
    for i in np.flatnonzero(large):
        total = (int(found.pairs[i, 0]) << 64) + (int(found.pairs[i, 1]) & _LOW)
        if not found.fits[i] or abs(total) >= most:
            raise ExpressionError.failed(f"sum({placed.name})", f"the sum does not fit {dtype}")


def _doubles(values: npt.NDArray[np.float64], nulls: npt.NDArray[np.bool_]) -> Values:
    words = np.ascontiguousarray(values).view(np.int64)[:, None].copy()
    words[values != values] = np.float64(np.nan).view(np.int64)
    return Values(words, nulls)
