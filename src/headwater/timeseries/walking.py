"""Sides that are larger than memory, walked together in order: a left one, and one or more right ones.

All sides come sorted by key and time, in chunks. For each chunk of the left one the right rows that it may meet are
at hand: those up to its last row, the next one, and the last one before its first, each with all others of its key
and time, so that a tie is seen however rows are cut; and with a reach, those within it. What no later left row can
meet is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headwater.timeseries.rows import Rows, key_starts, sort_indices
from headwater.timeseries.wider_type import wider

__all__ = ["walked"]


def walked(
    left: Rows,
    rights: Sequence[Rows],
    left_order: Sequence[str],
    right_order: Sequence[str],
    tiebreak: Sequence[str] = (),
    *,
    before: int = 0,
    after: int = 0,
) -> Iterator[tuple[pa.Table, list[pa.Table]]]:
    """Chunks of the left side, each with the rows of each right side that it may meet.

    All are in order, of which the last column is the time.

    >>> trades, quotes = pa.table({"t": [1, 5]}), pa.table({"t": [0, 2, 4, 7, 9]})
    >>> [(l["t"].to_pylist(), r["t"].to_pylist()) for l, (r,) in walked(Rows([trades]), [Rows([quotes])], ["t"], ["t"])]
    [([1, 5], [0, 2, 4, 7, 9])]
    """
    sides = [_Side(right, right_order, tiebreak) for right in rights]
    for chunk in left.sorted(left_order):
        last = [chunk.column(name).slice(chunk.num_rows - 1) for name in left_order]
        end = [*last[:-1], _moved(last[-1], after)]
        yield chunk, [side.up_to(end) for side in sides]
        # The next chunk may begin at the same key and time.
        begin = [*last[:-1], _moved(last[-1], -before)]
        for side in sides:
            side.release_before(begin)


class _Side:
    """A right side in order, of which the rows that left rows may meet are at hand."""

    def __init__(self, rows: Rows, order: Sequence[str], tiebreak: Sequence[str]) -> None:
        self._order = order
        self._coming = rows.sorted((*order, *tiebreak))
        self._held = rows.schema.empty_table()

    def up_to(self, end: list[pa.ChunkedArray]) -> pa.Table:
        """The rows at hand: at least those up to a bound, and the next one with all others of its key and time."""
        while not self._has_next(_before(self._held, self._order, end, or_equal=True)):
            more = next(self._coming, None)
            if more is None:
                break
            self._held = pa.concat_tables([self._held, more])
        return self._held

    def _has_next(self, place: int) -> bool:
        """Whether the row at a place and all others of its key and time are at hand: a later one is there."""
        last = self._held.num_rows - 1
        if place >= last:
            return False
        ends = self._held.select(list(self._order)).take(pa.array([place, last]))
        return len(key_starts(ends, self._order)) == 2

    def release_before(self, begin: list[pa.ChunkedArray]) -> None:
        """Release the rows before a bound, but for the last of them and all others of its key and time."""
        place = _before(self._held, self._order, begin, or_equal=False)
        kept = int(key_starts(self._held.slice(0, place), self._order)[-1]) if place else 0
        self._held = self._held.slice(kept).combine_chunks()


def _moved(time: pa.ChunkedArray, by: int) -> pa.ChunkedArray:
    """A time and what is so long after it, or the end of time."""
    if not by or time.null_count:
        return time
    narrow = pa.types.is_date32(time.type) or pa.types.is_int32(time.type)
    number = time.cast(pa.int32()).cast(pa.int64())[0].as_py() if narrow else time.cast(pa.int64())[0].as_py()
    bits = 31 if narrow else 63
    moved = max(-(1 << bits), min((1 << bits) - 1, number + by))
    return pa.chunked_array([pa.array([moved], pa.int32() if narrow else pa.int64()).cast(time.type)])


def _before(rows: pa.Table, order: Sequence[str], bound: list[pa.ChunkedArray], *, or_equal: bool) -> int:
    """How many rows, which are sorted, come before a bound."""
    columns = []
    for name, limit in zip(order, bound, strict=True):
        kind = wider(rows.schema.field(name).type, limit.type)
        here, limit = rows.column(name).cast(kind), limit.cast(kind)  # noqa: PLW2901
        pair = [here, limit] if or_equal else [limit, here]
        columns.append(pa.chunked_array([chunk for part in pair for chunk in part.chunks], kind))
    found = sort_indices(columns)
    if found is None:
        return rows.num_rows if or_equal else 0
    return int(np.flatnonzero(found == (rows.num_rows if or_equal else 0))[0])
