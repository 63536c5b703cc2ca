"""mode: the value that occurs most often; of several the least.

A tally says how often each value occurs (`headwater.incremental.aggregates.tally`), and its rows, sorted by that
number, are the values of an extreme: the mode is the first of them. So a change costs itself, and not its group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Aggregation, Extreme, Words
from headwater.incremental.aggregates.extremes import Extremes
from headwater.incremental.aggregates.tally import COUNT_COLUMN, Tally
from headwater.incremental.layout import Layout, Order
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

__all__ = ["Mode", "Modes"]


@dataclass(frozen=True)
class Mode(Aggregation):
    """mode(column): nulls do not count."""

    column: str
    dtype: pa.DataType

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.dtype)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.column,)


class Modes:
    """The values of a column by how often they occur."""

    def __init__(self, arranged: Layout, sums: Layout, output: Layout, *, wanted: Sequence[Mode], at: int) -> None:
        first = wanted[0]
        self._tally = Tally(arranged, [first.column], first.where, counted=True)
        order = (Order(COUNT_COLUMN, descending=True), Order(first.column))
        extremes = [Extreme(m.name, m.column, m.dtype, False, order) for m in wanted]
        self._extremes = Extremes(self._tally.layout, sums, output, wanted=extremes, at=at)
        self.accumulators = self._extremes.accumulators

    def step(self, delta: ZSet, touched: ZSet, old: Words, out: Words) -> None:
        """Write the old and the new answers to the two halves of ``out``."""
        self._extremes.step(self._tally.step(delta), touched, old, out)

    def owners(self) -> Sequence[object]:
        """What has to be kept while the answers flow."""
        return self._extremes.owners()

    def commit(self) -> None:
        """Make staged state permanent."""
        self._tally.commit()
        self._extremes.commit()

    def rollback(self) -> None:
        """Forget staged state."""
        self._tally.rollback()
        self._extremes.rollback()

    def traces(self) -> Mapping[str, Trace]:
        """The state, by name."""
        return {f"mode: {n}": t for n, t in {**self._tally.traces(), **self._extremes.traces()}.items()}
