"""Slots beside a trace: the sums of keys that change again and again, kept whole.

What is in the slots and not in the trace yet belongs to the trace all the same: `Trace` drains them before it shows its
runs to anybody, so a checkpoint, a picture or an operator that goes another way sees all of it. The kernels of a fused
aggregate alone read past that (`headwater.kernels.slots`).

There are at most a few ten thousand slots. When they are full they are drained, as one run, and filled anew with what
is touched then; so memory is bounded, and keys that are touched seldom are in the trace. A step adds in place, and
takes back what it added if it does not happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.incremental.zset import ZSet
from headwater.kernels.slots import BOOK, drain, take_from_slots

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.packing import Rows

__all__ = ["NO_BOOK", "NO_PLACES", "Slots"]

_FIRST = 1 << 10
_MOST = 1 << 15

NO_BOOK = np.zeros(0, dtype=np.int64)
NO_PLACES = np.zeros(0, dtype=np.int32)


class Slots:
    """Slots for rows of sums of a layout."""

    __slots__ = ("_added", "_arrays", "_capacity", "book", "is_off", "layout")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.is_off = False
        """Are they not to be used any more, because keys do not fit them?"""
        self._added: tuple[npt.NDArray[np.int32], Rows] | None = None
        self._capacity = 0
        self.book = NO_BOOK

    def has_room(self, keys: int) -> bool:
        """Is there room for so many more keys? If not, they have to be drained and cleared."""
        return bool(self._capacity) and int(self.book[7]) + keys <= self._capacity

    def make_room(self, keys: int) -> bool:
        """Make room for so many keys, in slots that are empty; False if it is not worth it."""
        if self.is_off or 2 * keys > _MOST:
            return False
        self._make(min(_MOST, max(_FIRST, 4 * self._capacity, 1 << (2 * keys).bit_length())))
        return True

    def _make(self, capacity: int) -> None:
        layout = self.layout
        index = np.full(2 * capacity, -1, dtype=np.int32)
        hashes = np.empty(capacity, dtype=np.uint64)
        rows = np.empty((capacity, layout.width), dtype=np.int64)
        bases = np.empty((capacity, layout.weights), dtype=np.int64)
        differing = np.empty(capacity, dtype=np.int32)
        marks = np.zeros(capacity, dtype=np.uint8)
        self._arrays = (index, hashes, rows, bases, differing, marks)
        self._capacity = capacity
        at = {
            "index": index.ctypes.data,
            "mask": len(index) - 1,
            "hashes": hashes.ctypes.data,
            "rows": rows.ctypes.data,
            "bases": bases.ctypes.data,
            "differing": differing.ctypes.data,
            "marks": marks.ctypes.data,
            "capacity": capacity,
        }
        self.book = np.array([at.get(name, 0) for name in BOOK], dtype=np.int64)

    def added(self, places: npt.NDArray[np.int32], rows: Rows) -> None:
        """Note what a step has added, until it is committed or rolled back."""
        assert self._added is None, "a step adds once"
        self._added = (places, rows)

    def commit(self) -> None:
        """What was added stays."""
        self._added = None

    def rollback(self) -> None:
        """What was added goes."""
        if self._added is not None:
            places, rows = self._added
            take_from_slots(self.book, places, rows, self.layout.payload)
            self._added = None

    @property
    def differ(self) -> bool:
        """Is there something that the trace does not have?"""
        return bool(self._capacity) and bool(self.book[8])

    def drained(self) -> ZSet:
        """What the trace is short of; it has to be added to it now."""
        assert self._added is None, "a step is under way"
        n = int(self.book[8])
        hashes = np.empty(n, dtype=np.uint64)
        rows = np.empty((n, self.layout.width), dtype=np.int64)
        drain(self.book, self.layout.payload, hashes, rows)
        return ZSet(self.layout, rows, hashes=hashes)

    def clear(self) -> None:
        """Forget all keys: the trace changes in another way."""
        assert not self.differ, "what differs has to be drained first"
        if self._capacity:
            self._arrays[0].fill(-1)
            self.book[7] = 0

    def drop(self) -> None:
        """Forget everything, and what the trace does not have too."""
        self._added = None
        self._capacity = 0
        self.book = NO_BOOK
