"""The as-of join: to each row of the left side the row of the right side that was known at its time.

Backward takes the last right row at or before the left row's time, forward the first at or after it, nearest the closer
of the two, and the earlier one if they are equally far. ``strict`` leaves out rows of exactly the same time;
``tolerance`` rows that are further away. Keys are compared as in SQL, so that a null key meets nobody, and neither does
a null time. Every left row comes out once, with nulls if it met nobody (or not at all: ``how="inner"``).

``skip_nulls`` asks for each column of the right side by itself: the nearest row that has a value in it, by the same
rule, tolerance and strictness. Columns may so come of different rows; the right side's time, which is never null,
says when the nearest row of all was, and whether a left row met somebody is decided by that one.

The kernel in memory: both sides' keys become numbers by one dictionary, key and time one 64-bit word where they fit,
the right side is sorted once, and one binary search a left row finds its match; left columns are not moved at all,
right ones are gathered once. Where a side is larger than the budget, both are sorted into chunks (`rows`) and walked
together: for each left chunk the right rows up to its end are at hand, and the last one before it. With
``skip_nulls`` the right side is first cut into one part for each column that has nulls, the rows with a value in it,
and a part for all other columns; each part is looked up, and walked, as a side of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import pyarrow as pa

from headwater.spark.block_format import plain
from headwater.timeseries.known import Direction, Known
from headwater.timeseries.node import Extent, KeyedKernel, Slicing
from headwater.timeseries.operators.time_join import TimeJoin
from headwater.timeseries.rows import Rows
from headwater.timeseries.spooling import Spool
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
    skip_nulls: bool = False

    def line(self) -> str:
        parts = [f"as-of join {self.direction} on {self.left_time}"]
        if self.left_by:
            parts.append(f"by {', '.join(self.left_by)}")
        if self.tolerance is not None:
            is_moment = pa.types.is_timestamp(self.left.schema.field(self.left_time).type)
            parts.append(f"within {timedelta(microseconds=self.tolerance) if is_moment else self.tolerance}")
        return " ".join(parts) + (", strictly" if self.strict else "") + (", skipping nulls" if self.skip_nulls else "")

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        left, right = super().needs(wanted)
        return left, None if right is None else right | set(self.tiebreak)

    def slicing(self) -> tuple[Slicing, ...]:
        before, after = self.direction != "forward", self.direction != "backward"
        values = tuple(column for column in self.taken.values() if self.skip_nulls and column != self.right_time)
        return Slicing(self.left_time), Slicing(self.right_time, before, after, values=values)

    def extents(self) -> tuple[Extent | None, ...]:
        left, far = self.left_time, self.tolerance
        before, after = 0 if self.direction == "forward" else far, 0 if self.direction == "backward" else far
        return Extent(left, left), Extent(self.right_time, left, before, after)

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
            self.skip_nulls,
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
    skip_nulls: bool
    taken: tuple[tuple[str, str], ...]
    schema: pa.Schema

    def __call__(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        whole = right.fitting()
        if whole is None:
            yield from self._walked(left, right)
            return
        parts = self._parts({c for c in self._columns if whole.column(c).null_count})
        known = [self._known(_with_value(whole, part), part) for part in parts]
        for rows in left.coded():
            if rows.num_rows:
                yield self._joined(rows, known)

    @property
    def _left_schema(self) -> pa.Schema:
        return pa.schema(list(self.schema)[: len(self.schema) - len(self.taken)])

    @property
    def _columns(self) -> list[str]:
        return [column for _, column in self.taken]

    def _parts(self, with_nulls: set[str]) -> list[_Part]:
        """What is looked up together: the first part decides who met somebody."""
        alone = [c for c in self._columns if c in with_nulls] if self.skip_nulls else []
        first = _Part(tuple(c for c in self._columns if c not in alone))
        return [first, *(_Part((column,), column) for column in alone)]

    def _known(self, rows: pa.Table, part: _Part) -> Known:
        return Known(rows, self.right_by, self.right_time, self.tiebreak, part.columns)

    def _joined(self, left: pa.Table, parts: Sequence[Known]) -> pa.Table:
        keys, times = [left.column(name) for name in self.left_by], left.column(self.left_time)
        places = [known.matches(keys, times, self.direction, self.strict, self.tolerance) for known in parts]
        if self.how == "inner":
            met = places[0] >= 0
            left, places = left.filter(pa.array(met)), [found[met] for found in places]
        taken: dict[str, pa.ChunkedArray] = {}
        for known, found in zip(parts, places, strict=True):
            rows = known.rows.select(list(known.read)).take(pa.array(found, mask=found < 0))
            taken |= dict(zip(known.read, rows.columns, strict=True))
        columns = [*plain(left, self._left_schema).columns, *(taken[column] for column in self._columns)]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _walked(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        left_order, right_order = (*self.left_by, self.left_time), (*self.right_by, self.right_time)
        if not self.skip_nulls:
            part = _Part(tuple(self._columns))
            for rows, (held,) in walked(left, [right], left_order, right_order, self.tiebreak):
                yield self._joined(rows, [self._known(held, part)])
            return
        with Spool(right.schema, budget_bytes=right.budget_bytes) as spool:
            with_nulls: set[str] = set()
            for table in right:
                spool.add(table)
                with_nulls |= {c for c in self._columns if table.column(c).null_count}
            parts = self._parts(with_nulls)
            # Together they hold no more than the side may.
            budget = max(1, right.budget_bytes // len(parts))
            sides = [self._side(spool, part, right.schema, budget) for part in parts]
            for rows, held in walked(left, sides, left_order, right_order, self.tiebreak):
                yield self._joined(rows, [self._known(h, p) for h, p in zip(held, parts, strict=True)])

    def _side(self, spool: Spool, part: _Part, schema: pa.Schema, budget: int) -> Rows:
        needed = list(dict.fromkeys((*self.right_by, self.right_time, *self.tiebreak, *part.columns)))
        narrow = pa.schema([schema.field(name) for name in needed])
        return Rows((_with_value(table, part).select(needed) for table in spool), narrow, budget_bytes=budget)


@dataclass(frozen=True, slots=True)
class _Part:
    """Columns of the right side that come of one row; ``valued``: of one that has a value in this column."""

    columns: tuple[str, ...]
    valued: str | None = None


def _with_value(rows: pa.Table, part: _Part) -> pa.Table:
    return rows if part.valued is None else rows.filter(rows.column(part.valued).is_valid())
