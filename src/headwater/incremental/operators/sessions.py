"""Sessions: rows of a key that follow each other with gaps of at most the timeout.

Each row gets the session it belongs to, as Spark's ``session_window`` has it: from its first row to its last plus the
gap. A gap equal to the timeout still merges; rows without a time belong to no session and are left out. A change can
join two sessions or part one, and it moves the end of its own, so it reaches as far as neighbours are near: the
sessions it touches, and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.incremental.aggregates.aggregation import Values
from headwater.incremental.operators.cogroup import Groups, Slices
from headwater.incremental.operators.frames import length_words, units
from headwater.incremental.operators.over import Over, nulls_of
from headwater.incremental.operators.reach import Reach
from headwater.incremental.operators.windows import ends_within
from headwater.kernels.window_frames import chained

if TYPE_CHECKING:
    from headwater.incremental.operators.arrange import Arrange
    from headwater.incremental.zset import ZSet

__all__ = ["Sessions"]


class Sessions(Over):
    """Rows with ``session_start`` and ``session_end``; the source is arranged by the time, ascending.

    With one name there is no end, and a row that only moves the end of its session changes no other row.
    """

    def __init__(
        self,
        source: Arrange,
        gap: int | timedelta,
        *,
        names: tuple[str, ...] = ("session_start", "session_end"),
        columns: Sequence[tuple[str, str]] | None = None,
        sql: str = "",
    ) -> None:
        layout = source.layout
        ticks = units(layout, gap)
        if ticks <= 0:
            raise InputError.bad_argument("gap", gap, "more than nothing")
        order = layout.order[0]
        if order.descending:
            raise InputError.bad_argument("order", order.column, "a time that rises")
        self._time = layout.column(order.column)
        if self._time.words != 1:
            raise InputError.bad_argument("order", order.column, "a timestamp, date or bigint")
        self.gap = ticks
        self._has_ends = len(names) > 1
        fields = [pa.field(name, self._time.dtype, nullable=False) for name in names]
        detail = f"{order.column} with gaps of at most {ticks}"
        super().__init__(
            source, fields, reach=Reach.chain(ticks), columns=columns, label="sessions", detail=detail, sql=sql
        )
        self.shown = f"{order.column} with gaps of at most {length_words(self._time.dtype, ticks)}"

    def compute(self, groups: Groups, read: Slices) -> list[Values]:
        words = np.ascontiguousarray(groups.rows[:, self._time.word])
        start, end = np.empty(len(groups), dtype=np.int64), np.empty(len(groups), dtype=np.int64)
        chained(words, groups.at, groups.offsets, self.gap, start, end)
        found = [Values(start[:, None])]
        if self._has_ends:
            found.append(Values(ends_within(self._time, start, end)[:, None]))
        return found

    def change(self, read: Sequence[Slices]) -> ZSet:
        slices = read[0]
        if self._time.nullable:
            nulls = nulls_of(slices.rows, self._time)
            slices.old[nulls] = 0
            slices.new[nulls] = 0
        return super().change(read)
