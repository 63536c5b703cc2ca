"""sum and avg of decimals, exact.

The sum of decimals of ``p`` digits is a decimal of ``p + 10`` (38 at most) of the same scale; one that does not fit
stops the step, or is null for `try_sum`. The average has four more digits on both sides of the point and is rounded
half up, away from zero.

A decimal is a whole number of its smallest unit. Sums come in limbs of 32 bits, two for decimals of at most 18 digits
and four for longer ones, and are carried into two words here, the upper and the lower half of a number of 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Accumulator, Array, Linear, Mask, Values, Words, failed
from headwater.incremental.aggregates.linear import carried, counted
from headwater.kernels.accumulate import SUM_PAIR, SUM_WORD

__all__ = ["AverageDecimal", "SumDecimal", "averages", "exceeds", "whole_numbers"]

_LIMB = 0xFFFFFFFF
_LOW = (1 << 64) - 1
_MOST = np.int64((1 << 63) - 1)
_FLIP = np.int64(-(1 << 63))
_SHORT = 18


@dataclass(frozen=True)
class _OfDecimal(Linear):
    column: str
    dtype: pa.DataType
    """The type of the column."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        short = self.dtype.precision <= _SHORT
        what, words = (SUM_WORD, 2) if short else (SUM_PAIR, 4)
        return (Accumulator(what, (self.column,), present=(self.column,), words=words), counted(self.column))

    @property
    def total(self) -> pa.DataType:
        """The type of the sum."""
        return pa.decimal128(min(38, self.dtype.precision + 10), self.dtype.scale)


@dataclass(frozen=True)
class SumDecimal(_OfDecimal):
    """sum(column) of decimals; with ``lenient`` null where it does not fit."""

    lenient: bool = False

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.total)

    @property
    def text(self) -> str:
        return f"{'try_' * self.lenient}sum({'DISTINCT ' * self.distinct}{self.column})"

    def finish(self, sums: Sequence[Array]) -> Values:
        high, low, large = halves(sums[0], self.total.precision)
        nulls = sums[1][:, 0] == 0
        if large.any():
            if not self.lenient:
                raise failed(self, f"the sum does not fit {self.total}")
            nulls |= large
        if self.total.precision <= _SHORT:
            return Values(low[:, None], nulls)
        return Values(np.stack([high, low ^ _FLIP], axis=1), nulls)


@dataclass(frozen=True)
class AverageDecimal(_OfDecimal):
    """avg(column) of decimals."""

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.decimal128(min(38, self.dtype.precision + 4), min(38, self.dtype.scale + 4)))

    @property
    def text(self) -> str:
        return f"avg({'DISTINCT ' * self.distinct}{self.column})"

    def finish(self, sums: Sequence[Array]) -> Values:
        high, low, large = halves(sums[0], self.total.precision)
        if large.any():
            raise failed(self, f"the sum does not fit {self.total}")
        count = sums[1][:, 0]
        nulls = count <= 0
        divisor = np.where(nulls, 1, count)
        upper, lower = averages(high, low, divisor, 10 ** (self.field.type.scale - self.dtype.scale))
        if (exceeds(upper, lower, self.field.type.precision) & ~nulls).any():
            raise failed(self, f"the average does not fit {self.field.type}")
        if self.field.type.precision <= _SHORT:
            return Values(lower[:, None], nulls)
        return Values(np.stack([upper, lower ^ _FLIP], axis=1), nulls)


def averages(high: Words, low: Words, count: Words, more: int) -> tuple[Words, Words]:
    """Numbers of two words, times ``more``, divided by a count and rounded half away from zero: two words again.

    What does not fit two words becomes the largest number that does, which no decimal has the digits for. No row is
    looked at on its own: frames ask for the averages of as many rows as their groups have.

    >>> averages(np.array([0, -1, 1]), np.array([5, -5, 0]), np.array([2, 2, 3]), 1)
    (array([ 0, -1,  0]), array([                  3,                  -3, 6148914691236517205]))
    """
    # The product and twice the count have to fit a word.
    most = (1 << 62) // (2 * more)
    small = (high == low >> 63) & (low > -most) & (low < most) & (count < 1 << 60)
    sign = np.where(low < 0, -1, 1)
    lower = sign * ((2 * more * np.where(small, abs(low), 0) + count) // (2 * count))
    upper = lower >> 63
    large = np.flatnonzero(~small)
    if len(large):
        upper[large], lower[large] = _long_averages(high[large], low[large], count[large], more)
    return upper, lower


def _long_averages(high: Words, low: Words, count: Words, more: int) -> tuple[Words, Words]:
    """The same by long division, limb by limb of 32 bits."""
    if (count >= 1 << 31).any():  # no limb has room for twice the count
        pairs = zip(high.tolist(), low.tolist(), count.tolist(), strict=True)
        most = (1 << 127) - 1
        numbers = [min(max(_average(((h << 64) + (x & _LOW)) * more, n), -most), most) for h, x, n in pairs]
        lower = np.array([n & _LOW for n in numbers], dtype=np.uint64).view(np.int64)
        return np.array([n >> 64 for n in numbers], dtype=np.int64), lower
    negative = high < 0
    # -x is ~x + 1
    top = np.where(negative, ~high + (low == 0), high).view(np.uint64)
    rest = np.where(negative, -low, low).view(np.uint64)
    half = np.uint64(32)
    mask = np.uint64(_LIMB)
    limbs = [rest & mask, rest >> half, top & mask, top >> half]
    carry = count.view(np.uint64)
    product = []
    for limb in limbs:
        found = limb * np.uint64(2 * more) + carry
        product.append(found & mask)
        carry = found >> half
    divisor = count.view(np.uint64) * np.uint64(2)
    left = np.zeros(len(high), dtype=np.uint64)
    quotient = []
    for limb in (carry, *reversed(product)):
        left = (left << half) | limb
        quotient.append(left // divisor)
        left %= divisor
    upper = ((quotient[1] << half) | quotient[2]).view(np.int64)
    lower = ((quotient[3] << half) | quotient[4]).view(np.int64)
    over = (quotient[0] != 0) | (upper < 0)
    upper, lower = np.where(over, _MOST, upper), np.where(over, -1, lower)
    return np.where(negative, ~upper + (lower == 0), upper), np.where(negative, -lower, lower)


def _average(numerator: int, denominator: int) -> int:
    found = (2 * abs(numerator) + denominator) // (2 * denominator)
    return found if numerator >= 0 else -found


def halves(limbs: Words, precision: int) -> tuple[Words, Words, Mask]:
    """The upper and lower words of sums given in limbs, and which have more digits than ``precision``."""
    if limbs.shape[1] == 2:
        top, low32 = carried(limbs)
        high, low = top >> 32, ((top & _LIMB) << 32) | low32
        wide = np.zeros(len(limbs), dtype=np.bool_)
    else:
        a = limbs[:, 3]
        b = limbs[:, 2] + (a >> 32)
        c = limbs[:, 1] + (b >> 32)
        d = limbs[:, 0] + (c >> 32)
        low = ((b & _LIMB) << 32) | (a & _LIMB)
        high = (d << 32) | (c & _LIMB)
        wide = (d >> 31) != (d >> 63)
    return high, low, wide | exceeds(high, low, precision)


def exceeds(high: Words, low: Words, precision: int) -> Mask:
    """Which numbers have more digits than ``precision``."""
    most = 10**precision - 1
    return _greater(high, low, most) | _greater(~high, ~low, most - 1)


def _greater(high: Words, low: Words, most: int) -> Mask:
    """Is a number, given by its words, greater than ``most``? Note that ``~x`` is ``-x - 1``."""
    upper = np.int64(most >> 64)
    lower = np.uint64(most & ((1 << 64) - 1))
    found: Mask = (high > upper) | ((high == upper) & (low.view(np.uint64) > lower))
    return found


def whole_numbers(words: Words) -> list[int]:
    """The numbers of the words of a decimal column."""
    if words.shape[1] == 1:
        return [int(x) for x in words[:, 0]]
    return [(int(h) << 64) + (int(x) & ((1 << 64) - 1)) for h, x in zip(words[:, 0], words[:, 1] ^ _FLIP, strict=True)]
