"""Aggregates over stretches of sorted rows: sums, counts, extremes and moments of ``values[lo:hi]`` for many stretches
at once.

The problem: every window, of whatever kind, is a stretch of a sorted series, and there may be as many windows as rows,
each of many rows. The idea: numbers are added up in blocks of powers of two. ``block[k][i]`` is the aggregate of the
2^k rows from i on; a stretch is made of one block for each bit of its length (for extremes, of two that overlap). So n
stretches cost n log(longest) steps of numpy, nothing is ever subtracted again, and what comes out depends on the
stretch's rows and their order alone, never on what lies around it. Where stretches lie one after the other, numpy's
reduceat does the same in one pass.

Null is skipped, NaN is greater than everything, -0.0 is shown as 0.0 among extremes, a stretch without values gives
null: as in Spark. Sums of doubles are rounded in another order than Spark's; all else is equal. Whole numbers whose sum
might not fit are given up (`Unfit`), for an exact way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["FUNCTIONS", "Stretches", "Unfit", "is_known"]

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

_MOMENTS = frozenset({"stddev", "std", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"})
_PICKS = frozenset({"first", "first_value", "any_value", "last", "last_value"})
FUNCTIONS = frozenset({"count", "sum", "avg", "mean", "min", "max"}) | _MOMENTS | _PICKS


class Unfit(Exception):
    """The numbers are too large for this way of adding them up."""


def is_known(function: str, kind: pa.DataType) -> bool:
    """Whether a function of such values is computed here.

    >>> is_known("sum", pa.int32()), is_known("sum", pa.decimal128(5, 2)), is_known("first", pa.decimal128(5, 2))
    (True, False, True)
    """
    if function in _PICKS or function == "count":
        return True
    number: bool = pa.types.is_signed_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    if function in ("min", "max"):
        return bool(number or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))
    return function in FUNCTIONS and number


class Stretches:
    """Stretches of a table's rows: from ``lo`` to ``hi``, which is not included; ``joined``: each begins where the one
    before ends.

    Both ways round sums of doubles differently, so the kind of window decides between them, and never where they happen
    to lie.

    >>> found = Stretches(np.array([0, 1]), np.array([3, 2]))
    >>> found.aggregate("sum", pa.chunked_array([[1, 2, None]]), pa.int64()).to_pylist()
    [3, 2]
    """

    def __init__(self, lo: Places, hi: Places, *, joined: bool = False) -> None:
        self.lo, self.hi = lo, hi
        self.lengths = hi - lo
        self.joined = joined
        assert not joined or ((self.lengths > 0).all() and (hi[:-1] == lo[1:]).all())

    def aggregate(
        self, function: str, column: pa.ChunkedArray | None, kind: pa.DataType, *, skips: bool = False
    ) -> pa.Array:
        """One value for each stretch, of type ``kind``; without a column, its rows are counted."""
        if column is None:
            return pa.array(self.lengths, kind)
        if function in _PICKS:
            return self._picked(column, last=function.startswith("last"), skips=skips).cast(kind)
        valid = np.asarray(pc.is_valid(column)) if column.null_count else None
        count = self.lengths if valid is None else self._blocks(valid.astype(np.int64), np.add, 0)
        if function == "count":
            return pa.array(count, kind)
        if function in ("min", "max"):
            return self._extreme(column, function, count, kind)
        values = np.asarray(column.fill_null(0) if valid is not None else column)
        if function in _MOMENTS:
            return self._moment(values.astype(np.float64), valid, count, function)
        if function == "sum" and pa.types.is_integer(column.type):
            self._check_fit(values)
            return pa.array(self._blocks(values.astype(np.int64), np.add, 0), mask=count == 0).cast(kind)
        with np.errstate(all="ignore"):
            total = self._blocks(values.astype(np.float64), np.add, 0.0)
            if function != "sum":
                total = total / np.where(count == 0, 1, count)
        return pa.array(total, mask=count == 0).cast(kind)

    def _check_fit(self, values: Numbers) -> None:
        if len(values) and len(self.lengths):
            largest = max(abs(int(values.min())), abs(int(values.max())))
            if largest * int(self.lengths.max()) >= 1 << 63:
                raise Unfit

    def _extreme(self, column: pa.ChunkedArray, function: str, count: Places, kind: pa.DataType) -> pa.Array:
        given = column.type
        if pa.types.is_date32(given):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(given):
            column = column.cast(pa.int64())
        values: Numbers
        if pa.types.is_floating(column.type):
            # fmin passes over NaN unless there is nothing else; maximum gives it whenever it is there.
            fill = np.nan if function == "min" else -np.inf
            values = np.asarray(column.fill_null(fill) if column.null_count else column)
            # Of -0.0 and 0.0 neither is less, so which one numpy gives is an accident; 0.0 is the one.
            found = self._blocks(
                values, np.fmin if function == "min" else np.maximum, fill, again=True
            ) + values.dtype.type(0)
        else:
            limits = np.iinfo(column.type.to_pandas_dtype())
            fill = limits.max if function == "min" else limits.min
            values = np.asarray(column.fill_null(fill) if column.null_count else column)
            found = self._blocks(values, np.minimum if function == "min" else np.maximum, fill, again=True)
        return pa.array(found, column.type, mask=count == 0).cast(given).cast(kind)

    def _picked(self, column: pa.ChunkedArray, *, last: bool, skips: bool) -> pa.Array:
        at = self.hi - 1 if last else self.lo
        there = self.lengths > 0
        if skips and column.null_count:
            valid = np.asarray(pc.is_valid(column))
            places = np.arange(len(valid))
            if last:
                nearest = np.maximum.accumulate(np.where(valid, places, -1))
                at = nearest[np.maximum(at, 0)]
                there = there & (at >= self.lo)
            else:
                nearest = np.minimum.accumulate(np.where(valid, places, len(valid))[::-1])[::-1]
                at = nearest[np.minimum(at, max(len(valid) - 1, 0))] if len(valid) else at
                there = there & (at < self.hi)
        taken = column.take(pa.array(np.where(there, at, 0), mask=~there))
        whole = taken.combine_chunks()
        return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)

    def _moment(self, values: Numbers, valid: Flags | None, count: Places, function: str) -> pa.Array:
        """Variances by merging means and squared distances, which never subtracts large sums from each other."""
        n = np.ones(len(values)) if valid is None else valid.astype(np.float64)
        with np.errstate(all="ignore"):
            # Infinity has no distance from a mean: as in Spark, NaN.
            _, _, squares = self._merged(n, values, np.where(np.isfinite(values), 0.0, np.nan))
            sample = not function.endswith("_pop")
            found = squares / np.where(count - sample > 0, count - sample, 1)
            if function.startswith("std"):
                found = np.sqrt(found)
        return pa.array(found, mask=count <= sample)

    def _blocks(self, values: Numbers, op: np.ufunc, nothing: Any, *, again: bool = False) -> Numbers:
        """The aggregate of each stretch; ``again``: values may be taken more than once."""
        if self.joined and len(self.lo):
            end = int(self.hi[-1])
            found: Numbers = op.reduceat(values[:end], self.lo)
            return found
        out = np.full(len(self.lo), nothing, values.dtype)
        if again:
            return self._overlapping(values, op, out)
        at = self.lo.copy()
        for bit, block, which in self._levels(values, op):
            place = at[which]
            out[which] = op(out[which], block[place])
            at[which] = place + bit
        return out

    def _levels(self, values: Numbers, op: Callable[..., Numbers]) -> Any:
        block, bit = values, 1
        longest = int(self.lengths.max(initial=0))
        while bit <= longest:
            which = np.flatnonzero(self.lengths & bit)
            if len(which):
                yield bit, block, which
            bit <<= 1
            if bit <= longest:
                block = op(block[: len(block) - bit // 2], block[bit // 2 :])

    def _overlapping(self, values: Numbers, op: np.ufunc, out: Numbers) -> Numbers:
        block, bit = values, 1
        longest = int(self.lengths.max(initial=0))
        while bit <= longest:
            which = np.flatnonzero((self.lengths >= bit) & (self.lengths < 2 * bit))
            if len(which):
                out[which] = op(block[self.lo[which]], block[self.hi[which] - bit])
            bit <<= 1
            if bit <= longest:
                block = op(block[: len(block) - bit // 2], block[bit // 2 :])
        return out

    def _merged(self, *parts: Numbers) -> tuple[Numbers, ...]:
        """Numbers of values, their means and squared distances, of each stretch."""
        block = parts
        out = tuple(np.zeros(len(self.lo)) for _ in parts)
        at = self.lo.copy()
        bit, longest = 1, int(self.lengths.max(initial=0))
        while bit <= longest:
            which = np.flatnonzero(self.lengths & bit)
            if len(which):
                place = at[which]
                sum_of = _merge(tuple(o[which] for o in out), tuple(b[place] for b in block))
                for o, s in zip(out, sum_of, strict=True):
                    o[which] = s
                at[which] = place + bit
            if bit * 2 <= longest:
                block = _merge(tuple(b[: len(b) - bit] for b in block), tuple(b[bit:] for b in block))
            bit <<= 1
        return out


def _merge(a: tuple[Numbers, ...], b: tuple[Numbers, ...]) -> tuple[Numbers, ...]:
    n = a[0] + b[0]
    share = b[0] / np.where(n == 0, 1, n)
    delta = np.where(b[0] == 0, 0.0, np.where(a[0] == 0, b[1], b[1] - a[1]))
    mean = np.where(a[0] == 0, b[1], a[1] + delta * share)
    squares = a[2] + b[2] + np.where((a[0] == 0) | (b[0] == 0), 0.0, delta * delta * a[0] * share)
    return n, mean, squares
