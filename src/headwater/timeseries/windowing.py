"""What all windows that rows fall into have in common: the rows they need, and the columns that say when they are.

Only the columns that are read are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.timeseries.aggregates import Aggregates
from headwater.timeseries.moments import moment_type, moments_from
from headwater.timeseries.node import Ordering
from headwater.timeseries.reading import new_names
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

__all__ = ["START_AND_END", "Bounds", "followed", "one_zero", "timed_rows"]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The names of the columns that say when a window is; None for one that is not wanted.

    Attributes
    ----------
    delay : int, optional
        how long after its end a window is complete; then a column says when that is
    """

    start: str | None = "window_start"
    end: str | None = "window_end"
    complete: str = "window_complete"
    delay: int | None = None

    def names(self) -> list[str]:
        """The columns there are."""
        delayed = self.complete if self.delay is not None else None
        return [name for name in (self.start, self.end, delayed) if name is not None]

    def schema(self, rows: pa.Schema, ordering: Ordering, results: pa.Schema) -> pa.Schema:
        """Names and types: the series, the window, the results.

        >>> rows, results = pa.schema([("s", pa.string()), ("t", pa.int32())]), pa.schema([("n", pa.int64())])
        >>> Bounds().schema(rows, Ordering("t", ("s",)), results).names
        ['s', 'window_start', 'window_end', 'n']
        """
        kind = moment_type(rows.field(ordering.time))
        new_names([*self.names(), *results.names], ordering.by, "agg()")
        keys = [rows.field(name).with_nullable(True) for name in ordering.by]
        return pa.schema([*keys, *(pa.field(name, kind) for name in self.names()), *results])

    def columns(
        self, table: pa.Table, ordering: Ordering, first: Places, start: Places, end: Places, kind: pa.DataType
    ) -> list[pa.Array | pa.ChunkedArray]:
        """The series and bounds of windows, each with its first row."""
        rows = pa.array(first)
        columns: list[pa.Array | pa.ChunkedArray] = [one_zero(table.column(name).take(rows)) for name in ordering.by]
        if self.start is not None:
            columns.append(moments_from(start, kind))
        if self.end is not None:
            columns.append(moments_from(end, kind))
        if self.delay is not None:
            columns.append(moments_from(end + self.delay, kind))
        return columns


START_AND_END = Bounds()


def one_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A key as groups show it: there is no -0.0.

    >>> one_zero(pa.chunked_array([[-0.0, 1.0]])).to_pylist()
    [0.0, 1.0]
    """
    if not pa.types.is_floating(column.type):
        return column
    return pc.add(column, pa.scalar(0.0, column.type))


def timed_rows(rows: Rows, ordering: Ordering, aggregates: Aggregates) -> Iterator[pa.Table]:
    """The rows, sorted, with the columns that are needed; those that only a tiebreak could order are refused."""
    names = list(dict.fromkeys((*ordering.columns, *aggregates.reads)))
    schema = pa.schema([rows.schema.field(name) for name in names])

    def read() -> Iterator[pa.Table]:
        for table in rows:
            yield table.select(names)

    chunks = Rows(read(), schema, budget_bytes=rows.budget_bytes).sorted(ordering.columns)
    return checked(chunks, ordering, aggregates.ordered) if aggregates.ordered else (c for c in chunks if c.num_rows)


def followed(chunks: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
    """Each chunk, and whether there is another one after it.

    >>> list(followed("ab"))
    [('a', True), ('b', False)]
    """
    coming = iter(chunks)
    held = next(coming, None)
    while held is not None:
        following = next(coming, None)
        yield held, following is not None
        held = following
