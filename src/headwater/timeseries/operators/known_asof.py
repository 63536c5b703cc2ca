"""The as-of join at a known moment: to each row the latest row of the other side up to its time, of those that were
known then.

The other side's rows have two more columns, which say from when until before when each was there (in microseconds).
The left side has a column with the moment. Beside the other side's columns comes a flag for each row: whether the
latest row up to its time as the table is now says something else than the latest of those that were known at the row's
own time. That is what a join by time alone would have leaked.

The rows of a task are at hand where they fit into its budget; else both sides are sorted, and walked key by key, so
that the rows of one key are held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.derived.digest import RowHash
from headwater.spark.block_format import plain
from headwater.timeseries.known_versions import KnownVersions
from headwater.timeseries.node import KeyedKernel
from headwater.timeseries.operators.time_join import TimeJoin
from headwater.timeseries.rows import Rows
from headwater.timeseries.times import time_numbers
from headwater.timeseries.walking import walked

__all__ = ["FOREVER", "SINCE", "UNTIL", "KnownAsOf"]

SINCE, UNTIL = "__hw_since", "__hw_until"
FOREVER = int(np.iinfo(np.int64).max)
_ALL_BEFORE = 1 << 62
Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class KnownAsOf(TimeJoin):
    """Each left row, and the right row that was known for it.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> left = Values(pa.table({"k": ["a", "a"], "t": [9, 9], "known": [15, 25]}))
    >>> right = {"k": ["a", "a"], "t": [5, 5], "v": [1, 2], SINCE: [10, 20], UNTIL: [20, FOREVER]}
    >>> run_here(KnownAsOf(left, Values(pa.table(right)), "t", "t", ("k",), ("k",), known="known"))["v"].to_pylist()
    [1, 2]
    """

    tiebreak: tuple[str, ...] = ()
    known: str | None = None
    """The left side's column with the moment, in microseconds; None: all that there is now."""
    tolerance: int | None = None
    strict: bool = False
    leaked: str | None = None
    """The name of the flag; None where nobody asks."""

    def line(self) -> str:
        by = f" by {', '.join(self.left_by)}" if self.left_by else ""
        return f"as-of join on {self.left_time}{by}, {'as known at ' + self.known if self.known else 'as known now'}"

    @cached_property
    def taken(self) -> dict[str, str]:
        """The right side's columns that come out, by the names they get."""
        return {name: column for name, column in super().taken.items() if column not in (SINCE, UNTIL)}

    @cached_property
    def schema(self) -> pa.Schema:
        fields = list(self.left.schema)
        fields += [pa.field(name, self.right.schema.field(column).type) for name, column in self.taken.items()]
        if self.leaked is not None:
            fields.append(pa.field(self.leaked, pa.bool_()))
        return pa.schema(fields)

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        left, right = super().needs(wanted)
        if self.leaked in wanted:
            right = frozenset(self.right.schema.names)
        assert left is not None and right is not None
        known = {self.known} if self.known is not None else set()
        return left | known, right | {SINCE, UNTIL, *self.tiebreak}

    def time_columns(self) -> tuple[str | None, ...]:
        return (self.left_time, None)

    def kernel(self) -> KeyedKernel:
        sides = (self.left_time, self.right_time), (self.left_by, self.right_by)
        return _Kernel(
            *sides,
            self.tiebreak,
            self.known,
            self.tolerance,
            self.strict,
            self.leaked,
            tuple(self.taken.values()),
            self.schema,
        )


@dataclass(frozen=True, slots=True)
class _Kernel:
    times: tuple[str, str]
    by: tuple[tuple[str, ...], tuple[str, ...]]
    tiebreak: tuple[str, ...]
    known: str | None
    tolerance: int | None
    strict: bool
    leaked: str | None
    taken: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        whole = right.fitting()
        if whole is not None:
            known = self._known(whole)
            for rows in left.coded():
                if rows.num_rows:
                    yield self._joined(rows, known)
            return
        first, second = ((*by, time) for by, time in zip(self.by, self.times, strict=True))
        for rows, (held,) in walked(left, [right], first, second, (*self.tiebreak, SINCE), before=_ALL_BEFORE):
            if rows.num_rows:
                yield self._joined(rows, self._known(held))

    def _known(self, rows: pa.Table) -> KnownVersions:
        return KnownVersions(rows, self.by[1], self.times[1], self.tiebreak, self.taken, SINCE, UNTIL)

    def _joined(self, left: pa.Table, known: KnownVersions) -> pa.Table:
        now = np.full(left.num_rows, FOREVER - 1)
        moment = now if self.known is None else time_numbers(left.column(self.known))[0]
        found = self._matches(left, known, moment)
        rows = known.rows.select(list(dict.fromkeys(self.taken))).take(pa.array(found, mask=found < 0))
        names = list(self.schema.names)[: len(self.schema) - len(self.taken) - (self.leaked is not None)]
        columns = [*plain(left, pa.schema([self.schema.field(n) for n in names])).columns]
        columns += [rows.column(name) for name in self.taken]
        if self.leaked is not None:
            columns.append(pa.chunked_array([self._leaks(left, known, now, found)]))
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _matches(self, left: pa.Table, known: KnownVersions, moment: Words) -> Words:
        keys = [left.column(name) for name in self.by[0]]
        times = left.column(self.times[0])
        return known.matches_at(keys, times, moment, strict=self.strict, tolerance=self.tolerance)

    def _leaks(self, left: pa.Table, known: KnownVersions, now: Words, found: Words) -> pa.Array:
        """Of which rows what was known at their time says something else than what is known now."""
        column = left.column(self.times[0])
        times = time_numbers(column)[0] * (86_400_000_000 if pa.types.is_date(column.type) else 1)
        then = self._matches(left, known, times)
        last = found if self.known is None else self._matches(left, known, now)
        differ = then != last
        at = np.flatnonzero(differ & (then >= 0) & (last >= 0))
        if len(at):  # another row, which may say the same
            differ[at] = _differ(known.rows.select(list(dict.fromkeys(self.taken))), then[at], last[at])
        return pa.array(differ)


def _differ(rows: pa.Table, some: Words, others: Words) -> npt.NDArray[np.bool_]:
    """Whether rows at these places are not the same, bit for bit."""
    hashes = RowHash(rows.schema)
    sides = [_lanes(hashes, rows.take(pa.array(at))) for at in (some, others)]
    return np.asarray((sides[0] != sides[1]).any(axis=1))


def _lanes(hashes: RowHash, rows: pa.Table) -> npt.NDArray[np.uint64]:
    parts: Sequence[npt.NDArray[np.uint64]] = [
        hashes.exact_lanes(batch, hashes.plain_lanes(batch)) for batch in rows.combine_chunks().to_batches()
    ]
    return np.concatenate([np.empty((0, 2), np.uint64), *parts])
