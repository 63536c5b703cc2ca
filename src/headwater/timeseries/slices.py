"""Slices: a key with very many rows, cut by time, so that several tasks can share it.

The problem: rows that agree in their keys meet in one task, and one key may have a fifth of all rows. The idea: for an operator that
looks from a row only to the nearest row before or after it, a key can be cut by time, if each slice is also given the last row
before it and the first row after it. Each task that makes blocks sends, for each slice, the last (first) such row that it
has; the last of those is the last of all. So slices are exact whatever the cuts are; cuts only decide how even they are.

Which keys are cut, and where, comes from a sample: `hot_keys` finds keys with more rows than a bucket should have, and cuts them at the
quantiles of their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.spark.blocks import split
from headwater.spark.buckets import hash_of
from headwater.timeseries.rows import key_starts, sort_table
from headwater.timeseries.times import moved, time_numbers

__all__ = ["HotKey", "Sliced", "hot_keys"]

Words = npt.NDArray[np.int64]
_MOST_SLICES = 64


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key that is cut: the hash of its values, and the times at which slices begin, but for the first."""

    hash: int
    cuts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sliced:
    """Rows by their keys, and those of hot keys by their time too.

    Attributes
    ----------
    keys, time : the columns that place a row
    plain : int
        how many buckets the other keys have; the slices' follow them
    hot : tuple of HotKey
    before, after : bool
        whether a slice is given the last row before it, and the first row after it
    reach : pair of int or None
        how long before and after a slice begins and ends rows are still given to it
    tiebreak : what decides between rows of one time, where only one of them is sent
    """

    keys: tuple[str, ...]
    time: str
    plain: int
    hot: tuple[HotKey, ...]
    before: bool = False
    after: bool = False
    tiebreak: tuple[str, ...] = ()
    reach: tuple[int, int] | None = None

    @property
    def buckets(self) -> int:
        return self.plain + sum(len(h.cuts) + 1 for h in self.hot)

    def __call__(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        hashes = hash_of([table.column(name) for name in self.keys], table.num_rows)
        places = ((hashes >> np.uint64(32)) % np.uint64(self.plain)).astype(np.int32)
        first = self.plain
        carried: list[tuple[int, pa.Table]] = []
        for hot in self.hot:
            mine = np.flatnonzero(hashes == np.uint64(hot.hash))
            if len(mine):
                times = time_numbers(table.column(self.time).take(pa.array(mine)))[0]
                cuts = np.array(hot.cuts, np.int64)
                places[mine] = first + np.searchsorted(cuts, times, side="right")
                if self.reach is not None:
                    carried += [
                        (first + slice_, table.take(pa.array(mine[rows])))
                        for slice_, rows in self._reached(times, cuts)
                    ]
                if self.before or self.after:
                    rows = table.take(pa.array(mine))
                    carried += [(first + slice_, row) for slice_, row in self._carried(rows, hot.cuts)]
            first += len(hot.cuts) + 1
        yield from split(table, places, self.buckets)
        yield from carried

    def _reached(self, times: Words, cuts: Words) -> Iterator[tuple[int, Words]]:
        """For each slice the rows of others that lie within reach of it."""
        assert self.reach is not None
        before, after = self.reach
        own = np.searchsorted(cuts, times, side="right")
        first = np.searchsorted(cuts, moved(times, -after), side="right")
        last = np.searchsorted(cuts, moved(times, before), side="right")
        for slice_ in range(len(cuts) + 1):
            rows = np.flatnonzero((first <= slice_) & (slice_ <= last) & (own != slice_))
            if len(rows):
                yield slice_, rows

    def _carried(self, rows: pa.Table, cuts: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """For each slice the rows that it needs of the others: nearly always one of each, for there is one key here."""
        column = rows.column(self.time)
        rows = sort_table(
            rows.filter(column.is_valid()) if column.null_count else rows, (*self.keys, self.time, *self.tiebreak)
        )
        if not rows.num_rows:
            return
        starts = key_starts(rows, self.keys)
        times = time_numbers(rows.column(self.time))[0]
        ends = np.append(starts[1:], rows.num_rows)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            of_key = times[start:end]
            at = np.searchsorted(of_key, np.array(cuts, np.int64), side="left")
            for number, place in enumerate(at.tolist()):
                if self.before and place > 0:
                    yield number + 1, self._all_of_one_time(rows, start + place - 1, start, end)
                if self.after and place < end - start:
                    yield number, self._all_of_one_time(rows, start + place, start, end)

    def _all_of_one_time(self, rows: pa.Table, at: int, start: int, end: int) -> pa.Table:
        """A row with all others of its key and time: which of them is meant, or that it is not clear, the kernel says."""
        times = time_numbers(rows.column(self.time).slice(start, end - start))[0]
        low, high = (
            np.searchsorted(times, times[at - start], side="left"),
            np.searchsorted(times, times[at - start], side="right"),
        )
        return rows.slice(start + int(low), int(high - low))


def hot_keys(
    samples: Sequence[tuple[pa.Table, float]],
    keys: Sequence[tuple[str, ...]],
    times: Sequence[str],
    most_rows: float,
) -> tuple[HotKey, ...]:
    """Keys of which a task should not have all rows.

    Parameters
    ----------
    samples
        Rows of each side, and how many rows one of them stands for.
    keys, times
        The columns of each side.
    most_rows
        A key with more rows than this, of all sides together, is cut into slices of about so many.
    """
    hashes, weights, moments = [], [], []
    for (table, weight), names, time in zip(samples, keys, times, strict=True):
        valid = table.filter(table.column(time).is_valid()) if table.column(time).null_count else table
        hashes.append(hash_of([valid.column(name) for name in names], valid.num_rows))
        weights.append(np.full(valid.num_rows, weight))
        moments.append(time_numbers(valid.column(time))[0])
    every, weight_of, moment_of = np.concatenate(hashes), np.concatenate(weights), np.concatenate(moments)
    if not len(every):
        return ()
    values, which = np.unique(every, return_inverse=True)
    total = np.bincount(which, weight_of)
    found = []
    for at in np.flatnonzero(total > most_rows).tolist():
        count = min(_MOST_SLICES, int(np.ceil(total[at] / most_rows)))
        mine = np.sort(moment_of[which == at])
        cuts = np.unique(mine[[len(mine) * i // count for i in range(1, count)]])
        if len(cuts):
            found.append(HotKey(int(values[at]), tuple(cuts.tolist())))
    return tuple(found)
