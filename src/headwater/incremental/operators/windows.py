"""Windows: each row in the windows of time that it falls into, tumbling or hopping.

As Spark's ``window``: windows begin at whole multiples of ``every`` from the epoch, moved by ``offset``; they have
their begin and not their end; times before 1970 are no different; a row without a time is in no window. A hopping
window (``every`` less than ``size``) has a row in several, and windows that begin before the first row exist. Linear:
there is no state, and a row costs the number of its windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.layout import Layout, Placed
from headwater.incremental.moving import Moving
from headwater.incremental.operators.frames import length_words, units_of
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.operators.over import nulls_of
from headwater.incremental.zset import Positions, ZSet
from headwater.kernels.arrange import take
from headwater.kernels.window_times import OVERFLOW, windows_of

if TYPE_CHECKING:
    from headwater.incremental.operators.frames import Distance

__all__ = ["Windows", "ends_within"]


class Windows(Node):
    """Rows with ``window_start`` and ``window_end``, once for each window.

    Parameters
    ----------
    source : Node
    time : str
        the column: a timestamp, date or whole number
    size : int or timedelta
        how long a window is, in units of the column
    every : int or timedelta, optional
        how far apart they begin; as long as they are, if it is not given (tumbling)
    offset : int or timedelta
        where the first one after the epoch begins
    """

    kind: ClassVar[Kind] = "lift"

    def __init__(
        self,
        source: Node,
        time: str,
        *,
        size: int | timedelta,
        every: int | timedelta | None = None,
        offset: int | timedelta = 0,
        names: tuple[str, str] = ("window_start", "window_end"),
        sql: str = "",
    ) -> None:
        column = source.layout.column(time)
        if column.kind != "word" or pa.types.is_decimal(column.dtype):
            hint = "windows are over a timestamp, a date or a whole number"
            raise UnsupportedError.column_type(time, str(column.dtype), hint)
        self._time = column
        self._size = _positive("size", column.dtype, size)
        self._every = self._size if every is None else _positive("every", column.dtype, every)
        self._offset = 0 if not offset else units_of(column.dtype, offset)
        if self._every > self._size:
            raise InputError.bad_argument("every", every, "at most the size: windows leave no gaps")
        if abs(self._offset) >= self._every:
            raise InputError.bad_argument("offset", offset, "less than the distance of windows")
        schema = source.layout.schema
        layout = Layout(pa.schema([*schema, *(pa.field(n, column.dtype, nullable=False) for n in names)]))
        detail = f"{time} of {self._size} every {self._every} from {self._offset}"
        super().__init__([source], layout, label="windows", detail=detail, sql=sql)
        length, step, begin = (length_words(column.dtype, n) for n in (self._size, self._every, self._offset))
        self.shown = f"{time} of {length}"
        self.shown += f" every {step}" if self._every != self._size else ""
        self.shown += f" from {begin}" if self._offset else ""
        pairs = [(i, i) for i in range(len(schema))]
        self._moving = Moving(source.layout, layout, pairs)

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        times = np.ascontiguousarray(delta.rows[:, self._time.word])
        null = nulls_of(delta.rows, self._time)
        most = -(-self._size // self._every) * len(delta)
        which, starts = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        count = windows_of(times, null, self._size, self._every, self._offset, which, starts)
        if count == OVERFLOW:
            why = f"a time in `{self._time.name}` is too near to the end of all times"
            raise UnsupportedError.operation("a window", why, "leave such rows out")
        which, starts = which[:count], starts[:count]
        source = np.empty((count, delta.layout.width), dtype=np.int64)
        take(delta.rows, which, source)
        out = self._moving.moved(source)
        start, end = self.layout.columns[-2:]
        out[:, start.word] = starts
        out[:, end.word] = ends_within(self._time, starts, starts + self._size)
        return ZSet(self.layout, out, delta.owners)


def ends_within(time: Placed, starts: Positions, ends: Positions) -> Positions:
    """Ends of windows, if all of them are values of their column's type;
    beyond the last whole number are negative ones.
    """
    if len(ends) and (int(ends.max()) > _last(time.dtype) or (ends < starts).any()):
        why = f"a window of `{time.name}` would end after the last {time.dtype}"
        raise UnsupportedError.operation("a window", why, "cast the column to a larger type, or leave such rows out")
    return ends


def _last(dtype: pa.DataType) -> int:
    if pa.types.is_decimal(dtype):
        return int(10**dtype.precision - 1)
    bits = 32 if pa.types.is_date(dtype) else dtype.bit_width
    return int(2 ** (bits - 1) - 1)


def _positive(name: str, dtype: pa.DataType, distance: Distance) -> int:
    found = units_of(dtype, distance)
    if found <= 0:
        raise InputError.bad_argument(name, distance, "more than nothing")
    return found
