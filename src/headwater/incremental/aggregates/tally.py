"""Tallies: how often each value occurs in each key.

A trace by (key, values) whose weight is the number of rows. What changes in it is found by looking up the rows that
changed and no others, so an aggregate of distinct values costs its change even in a key with a million of them. From a
tally come the *distinct* rows, each with weight one, that count(DISTINCT …) and sum(DISTINCT …) add up; and the
*counted* rows, with the number as a column, whose first in the order of numbers is the mode.

Zeros of floats are one value here, and so are NaNs, as where Spark compares floats for being equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Words, selected
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout
from headwater.incremental.moving import Moving
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels.floats import normalise

__all__ = ["COUNT_COLUMN", "Tally", "float_words", "normalised"]

COUNT_COLUMN = "count of rows"


class Tally:
    """How often the values of some columns occur in each key, of the rows for which ``where`` is true.

    Parameters
    ----------
    arranged : Layout
        of the rows that come, which begin with the keys
    columns : sequence of str
        rows in which one of them is null do not count, where ``nulls`` is false
    """

    def __init__(
        self, arranged: Layout, columns: Sequence[str], where: str | None, *, nulls: bool = False, counted: bool = False
    ) -> None:
        keys = arranged.names[: arranged.keys]
        names = [*keys, *(c for c in dict.fromkeys(columns) if c not in keys)]
        self._source = arranged
        self._where = where
        self._needed = () if nulls else tuple(columns)
        self._arrangement = Arrangement(arranged, names, keys=len(names))
        self._whole = self._arrangement.target
        self._floats = float_words(self._whole, len(names))
        self.name = ", ".join(columns) + (f" where {where}" if where else "")
        self.trace = Trace(self._whole)
        extra = [pa.field(COUNT_COLUMN, pa.int64(), nullable=False)] if counted else []
        self.layout = Layout(pa.schema([*self._whole.schema, *extra]), keys=arranged.keys)
        pairs = [(i, i) for i in range(len(names))]
        self._moving = Moving(self._whole, self.layout, pairs, weight=None)
        self._counted = counted
        self._owners: tuple[object, ...] = ()

    def step(self, delta: ZSet) -> ZSet:
        """The change of the distinct rows, or of the counted ones; the change of the tally is staged."""
        own = normalised(self._arrangement.apply(selected(delta, self._where, self._needed)), self._floats)
        rows = own.consolidate()
        old = self.trace.weights(rows)[:, 0]
        new = old + rows.weights
        self.trace.stage(rows)
        if not self._counted:
            return self._given(rows, (new > 0).astype(np.int64) - (old > 0), None)
        before = self._given(rows, -(old > 0).astype(np.int64), old)
        after = self._given(rows, (new > 0).astype(np.int64), new)
        return concatenate([before, after], self.layout)

    def _given(self, rows: ZSet, weights: Words, counts: Words | None) -> ZSet:
        kept = np.flatnonzero(weights)
        out = self._moving.moved(rows.rows[kept])
        if counts is not None:
            out[:, self.layout.columns[-1].word] = counts[kept]
        out[:, -1] = weights[kept]
        return ZSet(self.layout, out, rows.owners)

    def commit(self) -> None:
        """Make staged state permanent."""
        self.trace.commit()

    def rollback(self) -> None:
        """Forget staged state."""
        self.trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        """The state, by name."""
        return {f"tally of {self.name}": self.trace}


def float_words(layout: Layout, columns: int) -> Words:
    """The words of the floats among the first columns."""
    words = [c.word for c in layout.columns[:columns] if c.kind in {"double", "float"}]
    return np.array(words, dtype=np.int64)


def normalised(zset: ZSet, words: Words) -> ZSet:
    """The same rows with one zero and one NaN in these words."""
    if not len(words) or not len(zset):
        return zset
    rows = zset.rows.copy()
    normalise(rows, words)
    return ZSet(zset.layout, rows, zset.owners)
