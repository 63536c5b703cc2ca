"""Timed state: rows by key, each with the iteration in which it changed.

`past` has the rows of earlier epochs, `present` those of this one. Committing an epoch adds the present to the past.
Weights of a row at all iterations up to ``i`` add up to its weight at iteration ``i``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.trace import Matches, Trace
from headwater.incremental.zset import Positions, ZSet, concatenate

__all__ = ["ITERATION", "Timed", "stamped_layout"]

ITERATION = "\0iteration"


def stamped_layout(layout: Layout) -> Layout:
    """The same layout with a last column for the iteration."""
    field = pa.field(ITERATION, pa.int64(), nullable=False)
    return Layout(layout.schema.append(field), keys=layout.keys, order=layout.order)


class Timed:
    """The state of one input of a nested operator, in a layout with its key."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.stamped = stamped_layout(layout)
        self.past = Trace(self.stamped)
        self.present = Trace(self.stamped)
        self._word = self.stamped.columns[-1].word
        pairs = [(i, i) for i in range(len(layout.columns))]
        self._stamping = Moving(layout, self.stamped, pairs)
        self._stripping = Moving(self.stamped, layout, pairs)

    def stamp(self, delta: ZSet, iteration: int) -> ZSet:
        """The rows with an iteration."""
        out = self._stamping.moved(delta.rows)
        out[:, self._word] = iteration
        return ZSet(self.stamped, out, delta.owners)

    def plain(self, rows: ZSet) -> ZSet:
        """The rows without their iterations."""
        return ZSet(self.layout, self._stripping.moved(rows.rows), rows.owners)

    def iterations(self, rows: ZSet) -> Positions:
        """The iteration of each row."""
        return rows.rows[:, self._word]

    def add(self, delta: ZSet, iteration: int) -> None:
        """Take a change of this epoch."""
        if len(delta):
            self.present.add(self.stamp(delta, iteration))

    def find(self, keys: ZSet) -> tuple[Matches, Matches]:
        """The rows of some keys, of the past and of the present."""
        return self.past.find(keys), self.present.find(keys)

    def until(self, matches: Matches, iteration: int) -> ZSet:
        """Those of the rows found that are not later than an iteration, without it."""
        at = np.flatnonzero(self.iterations(matches.rows) <= iteration)
        return self.plain(matches.rows.filtered(at))

    def commit(self) -> None:
        """The epoch is over."""
        if len(self.present):
            self.past.add(self.present.zset())
            self.present = Trace(self.stamped)

    def rollback(self) -> None:
        """The epoch did not happen."""
        self.present = Trace(self.stamped)

    def sum(self, parts: list[ZSet]) -> ZSet:
        """The sum of Z-sets without iterations."""
        return concatenate(parts, self.layout)
