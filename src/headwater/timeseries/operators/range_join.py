"""The range join: to each row of the left side all rows of the right side around its time.

A right row is met if its key is the same and its time is from ``before`` earlier to ``after`` later than the left
row's, both ends included. Each pair comes out; ``how="left"`` keeps left rows that met nobody, once, with nulls. Keys
and times are found as in the as-of join (`known`), two binary searches a row; pairs are made in pieces of bounded size,
since there may be many more of them than rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import numpy as np
import pyarrow as pa

from headwater.spark.block_format import plain
from headwater.timeseries.known import Known
from headwater.timeseries.node import Extent, KeyedKernel, Slicing
from headwater.timeseries.operators.time_join import TimeJoin
from headwater.timeseries.rows import Rows
from headwater.timeseries.walking import walked

__all__ = ["RangeJoin"]

_PAIRS = 1 << 18


@dataclass(frozen=True)
class RangeJoin(TimeJoin):
    """Each left row with the right rows around its time."""

    before: int
    after: int
    how: Literal["left", "inner"] = "inner"

    def line(self) -> str:
        moment = pa.types.is_timestamp(self.left.schema.field(self.left_time).type)
        before, after = (timedelta(microseconds=n) if moment else n for n in (self.before, self.after))
        by = f" by {', '.join(self.left_by)}" if self.left_by else ""
        return f"range join on {self.left_time}{by}, from {before} before to {after} after"

    def slicing(self) -> tuple[Slicing, ...]:
        return Slicing(self.left_time), Slicing(self.right_time, reach=(self.before, self.after))

    def extents(self) -> tuple[Extent | None, ...]:
        left = self.left_time
        return Extent(left, left), Extent(self.right_time, left, max(0, self.before), max(0, self.after))

    def kernel(self) -> KeyedKernel:
        columns = (self.left_time, self.right_time, self.left_by, self.right_by)
        return _Around(*columns, self.before, self.after, self.how, tuple(self.taken.values()), self.schema)


@dataclass(frozen=True, slots=True)
class _Around:
    left_time: str
    right_time: str
    left_by: tuple[str, ...]
    right_by: tuple[str, ...]
    before: int
    after: int
    how: str
    taken: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        whole = right.fitting()
        if whole is None:
            orders = (*self.left_by, self.left_time), (*self.right_by, self.right_time)
            for rows, (held,) in walked(left, [right], *orders, before=self.before, after=self.after):
                yield from self._joined(rows, self._known(held))
            return
        known = self._known(whole)
        for rows in left.coded():
            if rows.num_rows:
                yield from self._joined(rows, known)

    @property
    def _left_schema(self) -> pa.Schema:
        return pa.schema(list(self.schema)[: len(self.schema) - len(self.taken)])

    def _known(self, rows: pa.Table) -> Known:
        return Known(rows, self.right_by, self.right_time, (), ())

    def _joined(self, left: pa.Table, known: Known) -> Iterator[pa.Table]:
        keys = [left.column(name) for name in self.left_by]
        first, count = known.around(keys, left.column(self.left_time), self.before, self.after)
        made = count if self.how == "inner" else np.maximum(count, 1)
        ends = np.cumsum(made)
        start = 0
        while start < len(made):
            # At least one left row, and about so many pairs.
            done = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS, side="right")))
            yield self._pairs(left, known, first, count, made, start, stop)
            start = stop

    def _pairs(
        self,
        left: pa.Table,
        known: Known,
        first: np.ndarray,
        count: np.ndarray,
        made: np.ndarray,
        start: int,
        stop: int,
    ) -> pa.Table:
        here = made[start:stop]
        rows = np.repeat(np.arange(start, stop), here)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(here) - here, here)
        met = within < np.repeat(count[start:stop], here)
        found = known.rows_at(np.where(met, np.repeat(first[start:stop], here) + within, -1))
        columns = list(plain(left.take(pa.array(rows)), self._left_schema).columns)
        if self.taken:
            columns += known.rows.select(list(self.taken)).take(pa.array(found, mask=found < 0)).columns
        return pa.Table.from_arrays(columns, schema=self.schema)
