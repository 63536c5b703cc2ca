"""Sums of a table that comes in pieces: one line for each key, which grow with the keys and not with the rows.

A piece that fits the cache is added up in two passes (`headwater.kernels.accumulate_groups`). Only sums that are words
can be added so: counts and sums of whole numbers. What may overflow is checked over all pieces together, as it would
be in one step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.base.errors import ConstraintError
from headwater.incremental.layout import Layout
from headwater.incremental.packing import Owners
from headwater.incremental.zset import ZSet
from headwater.kernels.accumulate import OVERFLOW, new_table
from headwater.kernels.accumulate_groups import add_groups, find_groups, put_in_table

__all__ = ["SumsOfTable"]

Words = npt.NDArray[np.int64]
_FIRST_ROOM = 4_096


class SumsOfTable:
    """The sums by key of what was fed.

    Parameters
    ----------
    layout : Layout
        of the sums
    feed : Layout
        of the rows, which begin with the keys
    conditions, gates, specs
        what is added up, as `headwater.kernels.accumulate` has it
    """

    def __init__(self, layout: Layout, feed: Layout, conditions: Words, gates: int, specs: Words) -> None:
        self._layout = layout
        keys = layout.columns[: layout.keys]
        self._keys = (
            feed.columns[0].word if keys else 1,
            keys[0].word if keys else 1,
            sum(c.words for c in keys),
            (1 << len(keys)) - 1,
        )
        self._conditions, self._gates, self._specs = conditions, gates, specs
        self._known = self._total = 0
        self._hashes = np.empty(0, dtype=np.uint64)
        self._rows = np.empty((0, layout.width), dtype=np.int64)
        self._table = new_table(0)

    def feed(self, rows: ZSet) -> None:
        """Add rows up."""
        n = len(rows.rows)
        self._make_room(self._known + n)
        groups = np.empty(n, dtype=np.int32)
        layout = self._layout
        self._known = find_groups(
            rows.hashes,
            rows.rows,
            rows.layout.key_parts,
            *self._keys,
            layout.key_parts,
            layout.payload,
            self._table,
            self._known,
            self._hashes,
            self._rows,
            groups,
        )
        self._total = add_groups(
            rows.rows, groups, self._conditions, self._gates, self._specs, layout.payload, self._total, self._rows
        )
        if self._total == OVERFLOW:
            raise ConstraintError.weight_overflow()

    def _make_room(self, keys: int) -> None:
        if keys <= len(self._hashes):
            return
        room = max(_FIRST_ROOM, 2 * keys)
        hashes, rows = self._hashes, self._rows
        self._hashes = np.empty(room, dtype=np.uint64)
        self._rows = np.zeros((room, self._layout.width), dtype=np.int64)
        self._hashes[: self._known], self._rows[: self._known] = hashes[: self._known], rows[: self._known]
        self._table = new_table(room)
        put_in_table(self._hashes, self._known, self._table)

    def finish(self, owners: Owners) -> ZSet:
        """A row for each key."""
        known = self._known
        return ZSet(self._layout, self._rows[:known], owners, hashes=self._hashes[:known])
