"""Places: a key and a time of one layout, as rows of another.

Who looks for the rows of another stream around a time needs the key and the time in that stream's words, with the words
made for sorting. `Places` moves them; the time is the first column of the order of both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.base.errors import InputError
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.moving import Moving
from headwater.incremental.packing import Rows
from headwater.incremental.zset import Hashes, fill_derived
from headwater.kernels.asof import compared
from headwater.kernels.hash import hash_rows

__all__ = ["Places", "time_column"]

Mask = npt.NDArray[np.bool_]


def time_column(layout: Layout) -> Placed:
    """The first column of an order, which has to rise."""
    if not layout.order or layout.order[0].descending:
        found = layout.order[0].column if layout.order else "none"
        raise InputError.bad_argument("order", found, "a time that rises")
    return layout.column(layout.order[0].column)


class Places:
    """Moves keys and times from rows of ``source`` to rows of ``target``;
    ``time`` is another column of the source to take.
    """

    __slots__ = ("_moving", "_target", "parts", "time", "time_parts")

    def __init__(self, source: Layout, target: Layout, time: str | None = None, *, keys: int | None = None) -> None:
        self.time = time_column(target)
        shared = source.keys if keys is None else keys
        of = source.schema.get_field_index(time or time_column(source).name)
        to = target.schema.get_field_index(self.time.name)
        pairs = [*((i, i) for i in range(shared)), (of, to)]
        self._target = target
        self._moving = Moving(source, target, pairs, weight=None)
        ordering = 1 + len(self.time.parts) if self.time.nullable else len(self.time.parts)
        self.time_parts = target.order_parts[:ordering]
        self.parts = np.concatenate([target.key_parts, self.time_parts])

    def of(self, rows: Rows) -> Rows:
        """The keys and times of rows, everything else being zero."""
        return self._moving.moved(rows)

    def set_time(self, rows: Rows, times: Rows) -> None:
        """Give places other times."""
        rows[:, self.time.word] = times
        fill_derived(self._target, rows)

    def hashes(self, rows: Rows) -> Hashes:
        """The hashes of the keys of places."""
        return hash_rows(rows, self._target.key_parts)

    @staticmethod
    def inside(rows: Rows, others: Rows, parts: Rows, *, backwards: bool) -> Mask:
        """Which of the rows are after the others (going backwards: before is further), line by line."""
        out = np.empty(len(rows), dtype=np.int64)
        compared(rows, others, parts, out)
        return out > 0 if backwards else out < 0
