"""count, sum and avg of whole numbers, and of truth: what can be added up.

A sum of whole numbers is a bigint; one that does not fit stops the step (`try_sum` gives null). Inside it is exact in
95 bits, so it does not matter whether it was too large in between. An average is the exact sum rounded to a double,
over the count. bool_and and bool_or count the rows that are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Accumulator, Array, Linear, Values, Words, failed
from headwater.kernels.accumulate import COUNT, SUM_WORD
from headwater.kernels.finish import FINISH_AVERAGE, FINISH_COUNT, FINISH_SUM

__all__ = ["Average", "BoolAnd", "BoolOr", "Count", "CountIf", "CountRows", "Sum", "carried", "counted"]


def counted(*columns: str) -> Accumulator:
    """How many rows have a value in all of these columns."""
    return Accumulator(COUNT, present=columns)


@dataclass(frozen=True)
class _Counting(Linear):
    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.int64(), nullable=False)

    @property
    def recipe(self) -> int:
        return FINISH_COUNT

    def finish(self, sums: Sequence[Array]) -> Values:
        return Values(sums[0])


@dataclass(frozen=True)
class CountRows(_Counting):
    """count(*)"""

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        return (Accumulator(COUNT),)

    @property
    def text(self) -> str:
        return "count(*)"


@dataclass(frozen=True, init=False)
class Count(_Counting):
    """count(column, …): the rows in which none of the columns is null.

    >>> Count("n", "a", "b").arguments
    ('a', 'b')
    """

    columns: tuple[str, ...] = ()

    def __init__(self, name: str, *columns: str, where: str | None = None, distinct: bool = False) -> None:
        super().__init__(name, where=where, distinct=distinct)
        object.__setattr__(self, "columns", columns)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.columns

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        return (counted(*self.columns),)


@dataclass(frozen=True)
class CountIf(_Counting):
    """count_if(condition)"""

    column: str

    @property
    def called(self) -> str:
        return "count_if"

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        return (Accumulator(COUNT, true=(self.column,)),)


@dataclass(frozen=True)
class _OfColumn(Linear):
    column: str

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class BoolAnd(_OfColumn):
    """bool_and(condition): null if there is no value."""

    @property
    def called(self) -> str:
        return "bool_and"

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.bool_())

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        return (Accumulator(COUNT, true=(self.column,)), counted(self.column))

    def finish(self, sums: Sequence[Array]) -> Values:
        return Values((sums[0] == sums[1]).astype(np.int64), sums[1][:, 0] == 0)


@dataclass(frozen=True)
class BoolOr(BoolAnd):
    """bool_or(condition): null if there is no value."""

    @property
    def called(self) -> str:
        return "bool_or"

    def finish(self, sums: Sequence[Array]) -> Values:
        return Values((sums[0] > 0).astype(np.int64), sums[1][:, 0] == 0)


@dataclass(frozen=True)
class Sum(_OfColumn):
    """sum(column) of whole numbers: a bigint; with ``lenient`` null where it does not fit."""

    lenient: bool = False

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.int64())

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        return (Accumulator(SUM_WORD, (self.column,), present=(self.column,), words=2), counted(self.column))

    @property
    def recipe(self) -> int | None:
        return None if self.lenient else FINISH_SUM

    @property
    def text(self) -> str:
        return f"{'try_' * self.lenient}sum({'DISTINCT ' * self.distinct}{self.column})"

    def finish(self, sums: Sequence[Array]) -> Values:
        high, low = carried(sums[0])
        large = (high >> 31) != (high >> 63)
        nulls = sums[1][:, 0] == 0
        if large.any():
            if not self.lenient:
                raise failed(self, "the sum does not fit a bigint")
            nulls |= large
        return Values(((high << 32) | low)[:, None], nulls)


@dataclass(frozen=True)
class Average(_OfColumn):
    """avg(column) of whole numbers: the exact sum, rounded to a double, over the count."""

    @property
    def called(self) -> str:
        return "avg"

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.float64())

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        return (Accumulator(SUM_WORD, (self.column,), present=(self.column,), words=2), counted(self.column))

    @property
    def recipe(self) -> int:
        return FINISH_AVERAGE

    def finish(self, sums: Sequence[Array]) -> Values:
        high, low = carried(sums[0])
        count = sums[1][:, 0]
        total = ((high << 32) | low).astype(np.float64)
        large = (high >> 31) != (high >> 63)
        if large.any():
            total[large] = [float((int(h) << 32) + int(x)) for h, x in zip(high[large], low[large], strict=True)]
        nulls = count == 0
        values = total / np.where(nulls, 1, count)
        return Values(values.view(np.int64)[:, None], nulls)


def carried(limbs: Words) -> tuple[Words, Words]:
    """The high and the low 32 bits of a sum of two limbs, the low one being from 0 to 2^32 - 1."""
    low = limbs[:, 1]
    return limbs[:, 0] + (low >> 32), low & 0xFFFFFFFF
