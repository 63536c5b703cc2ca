"""Two sides that are larger than memory, walked together in order.

Both sides come sorted by key and time, in chunks. For each chunk of the left one the right rows that it may meet are at hand: those up
to its last row, one more, and the last one before its first; and with a reach, those within it. What no later left row can meet is let go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headwater.timeseries.operators.union import wider
from headwater.timeseries.rows import Rows, sort_indices

__all__ = ["walked"]


def walked(
    left: Rows,
    right: Rows,
    left_order: Sequence[str],
    right_order: Sequence[str],
    tiebreak: Sequence[str] = (),
    *,
    before: int = 0,
    after: int = 0,
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Chunks of the left side, each with the right rows that it may meet; both in order, of which the last column is the time.

    >>> trades, quotes = pa.table({"t": [1, 5]}), pa.table({"t": [0, 2, 4, 7, 9]})
    >>> [(l["t"].to_pylist(), r["t"].to_pylist()) for l, r in walked(Rows([trades]), Rows([quotes]), ["t"], ["t"])]
    [([1, 5], [0, 2, 4, 7, 9])]
    """
    coming = right.sorted((*right_order, *tiebreak))
    held = right.schema.empty_table()
    for chunk in left.sorted(left_order):
        last = [chunk.column(name).slice(chunk.num_rows - 1) for name in left_order]
        end = [*last[:-1], _moved(last[-1], after)]
        while _before(held, right_order, end, or_equal=True) == held.num_rows:
            more = next(coming, None)
            if more is None:
                break
            held = pa.concat_tables([held, more])
        yield chunk, held
        # The next chunk may begin at the same key and time.
        begin = [*last[:-1], _moved(last[-1], -before)]
        held = held.slice(max(0, _before(held, right_order, begin, or_equal=False) - 1)).combine_chunks()


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
