"""The as-of join: to each row of the left side the row of the right side that was known at its time.

Backward takes the last right row at or before the left row's time, forward the first at or after it, nearest the closer of the two, and
the earlier one if they are equally far. ``strict`` leaves out rows of exactly the same time; ``tolerance`` rows that are
further away. Keys are compared as in SQL, so that a null key meets nobody, and neither does a null time. Every left row comes
out once, with nulls if it met nobody (or not at all: ``how="inner"``).

The kernel in memory: both sides' keys become numbers by one dictionary, key and time one 64-bit word where they fit, the right side is sorted once,
and one binary search a left row finds its match; left columns are not moved at all, right ones are gathered once. Where a side is
larger than the budget, both are sorted into chunks (`rows`) and walked together: for each left chunk the right rows up to its
end are at hand, and the last one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import pyarrow as pa

from headwater.spark.block_format import plain
from headwater.timeseries.known import Direction, Known
from headwater.timeseries.node import KeyedKernel, Slicing
from headwater.timeseries.operators.time_join import TimeJoin
from headwater.timeseries.rows import Rows
from headwater.timeseries.walking import walked

__all__ = ["AsOf", "AsOfKernel"]


@dataclass(frozen=True)
class AsOf(TimeJoin):
    """Each left row, and the right row that was known at its time."""

    tiebreak: tuple[str, ...] = ()
    """What decides between right rows of one key and time: the last one by these columns is meant."""
    direction: Direction = "backward"
    tolerance: int | None = None
    """In the units of the time columns."""
    strict: bool = False
    how: Literal["left", "inner"] = "left"

    def line(self) -> str:
        parts = [f"as-of join {self.direction} on {self.left_time}"]
        if self.left_by:
            parts.append(f"by {', '.join(self.left_by)}")
        if self.tolerance is not None:
            is_moment = pa.types.is_timestamp(self.left.schema.field(self.left_time).type)
            parts.append(f"within {timedelta(microseconds=self.tolerance) if is_moment else self.tolerance}")
        return " ".join(parts) + (", strictly" if self.strict else "")

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        left, right = super().needs(wanted)
        return left, None if right is None else right | set(self.tiebreak)

    def slicing(self) -> tuple[Slicing, ...]:
        before, after = self.direction != "forward", self.direction != "backward"
        return Slicing(self.left_time), Slicing(self.right_time, before, after)

    def kernel(self) -> KeyedKernel:
        return AsOfKernel(
            self.left_time,
            self.right_time,
            self.left_by,
            self.right_by,
            self.tiebreak,
            self.direction,
            self.tolerance,
            self.strict,
            self.how,
            tuple(self.taken.items()),
            self.schema,
        )


@dataclass(frozen=True, slots=True)
class AsOfKernel:
    """What a task does for its keys."""

    left_time: str
    right_time: str
    left_by: tuple[str, ...]
    right_by: tuple[str, ...]
    tiebreak: tuple[str, ...]
    direction: Direction
    tolerance: int | None
    strict: bool
    how: str
    taken: tuple[tuple[str, str], ...]
    schema: pa.Schema

    def __call__(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        whole = right.fitting()
        if whole is None:
            yield from self._walked(left, right)
            return
        known = self._known(whole)
        for rows in left.coded():
            if rows.num_rows:
                yield self._joined(rows, known)

    @property
    def _left_schema(self) -> pa.Schema:
        return pa.schema(list(self.schema)[: len(self.schema) - len(self.taken)])

    def _known(self, rows: pa.Table) -> Known:
        return Known(rows, self.right_by, self.right_time, self.tiebreak, [column for _, column in self.taken])

    def _joined(self, left: pa.Table, known: Known) -> pa.Table:
        keys = [left.column(name) for name in self.left_by]
        found = known.matches(keys, left.column(self.left_time), self.direction, self.strict, self.tolerance)
        if self.how == "inner":
            met = found >= 0
            left, found = left.filter(pa.array(met)), found[met]
        columns = list(plain(left, self._left_schema).columns)
        if self.taken:
            taken = known.rows.select([column for _, column in self.taken]).take(pa.array(found, mask=found < 0))
            columns += taken.columns
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _walked(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        left_order, right_order = (*self.left_by, self.left_time), (*self.right_by, self.right_time)
        for rows, held in walked(left, right, left_order, right_order, self.tiebreak):
            yield self._joined(rows, self._known(held))
