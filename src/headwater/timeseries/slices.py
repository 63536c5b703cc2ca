"""Slices: a key with very many rows, cut by time, so that several tasks can share it.

The problem: rows that agree in their keys meet in one task, and one key may have a fifth of all rows. The idea: for an
operator that looks from a row only to the nearest row before or after it, a key can be cut by time, if each slice is
also given the last row before it and the first row after it. Each task that makes blocks sends, for each slice, the
last (first) such rows that it has; the last of those is the last of all. So slices are exact whatever the cuts are;
cuts only decide how even they are.

Which keys are cut, and where, comes from a sample: `hot_keys` finds keys with more rows than a bucket should have, and
cuts them at the quantiles of their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.dictionaries import encoded
from headwater.spark.blocks import split
from headwater.spark.buckets import hash_of
from headwater.timeseries.times import moved, time_numbers

__all__ = ["HotKey", "Sliced", "hot_keys"]

Words = npt.NDArray[np.int64]
_MOST_SLICES = 64


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key that is cut: the hash of its values, and the times at which slices begin, but for the first."""

    hash: int
    cuts: tuple[int, ...]
    share: float = field(default=0.0, compare=False)
    """About how much of all rows it has."""


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
    values : tuple of str
        columns of which a slice is given the last row with a value before it, and the first after it, besides
    own : str or None
        a column of flags that is false in rows within reach of a slice
    """

    keys: tuple[str, ...]
    time: str
    plain: int
    hot: tuple[HotKey, ...]
    before: bool = False
    after: bool = False
    reach: tuple[int, int] | None = None
    values: tuple[str, ...] = ()
    own: str | None = None

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
                        (first + slice_, self._lent(table.take(pa.array(mine[rows]))))
                        for slice_, rows in self._reached(times, cuts)
                    ]
                if self.before or self.after:
                    carried += [(first + slice_, rows) for slice_, rows in self._carried(table, mine, cuts)]
            first += len(hot.cuts) + 1
        yield from split(table, places, self.buckets)
        yield from carried

    def _lent(self, rows: pa.Table) -> pa.Table:
        if self.own is None:
            return rows
        at = rows.schema.get_field_index(self.own)
        return rows.set_column(at, rows.schema.field(at), pa.array(np.zeros(rows.num_rows, np.bool_)))

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

    def _carried(self, table: pa.Table, mine: Words, cuts: Words) -> Iterator[tuple[int, pa.Table]]:
        """For each slice the rows that it needs of the others, with all others of their time: which of them is meant,
        the kernel says.
        """
        for rows, times in self._by_key(table, mine):
            there = [np.ones(len(rows), np.bool_)]
            there += [np.asarray(table.column(name).take(pa.array(rows)).is_valid()) for name in self.values]
            needed: dict[int, list[Words]] = {}
            for valid in there:
                held, at = rows[valid], times[valid]
                ordered = np.sort(at)
                for number, place in enumerate(np.searchsorted(ordered, cuts, side="left").tolist()):
                    if self.before and place > 0:
                        needed.setdefault(number + 1, []).append(held[at == ordered[place - 1]])
                    if self.after and place < len(ordered):
                        needed.setdefault(number, []).append(held[at == ordered[place]])
            for slice_, parts in needed.items():
                # A row that is needed for several columns goes once.
                yield slice_, table.take(pa.array(np.unique(np.concatenate(parts))))

    def _by_key(self, table: pa.Table, mine: Words) -> Iterator[tuple[Words, Words]]:
        """The rows that have a time, and their times, of each key with the hash: nearly always there is one."""
        times, timed = time_numbers(table.column(self.time).take(pa.array(mine)))
        if timed is not None:
            mine, times = mine[timed], times[timed]
        codes = np.zeros(len(mine), np.int64)
        for name in self.keys:
            key = encoded(table.column(name).take(pa.array(mine)))
            codes = codes * (len(key.dictionary) + 1) + key.indices.fill_null(len(key.dictionary)).to_numpy()
        for code in np.unique(codes):
            of_key = codes == code
            yield mine[of_key], times[of_key]


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
        mine = np.flatnonzero(which == at)
        mine = mine[np.argsort(moment_of[mine], kind="stable")]
        # A row of one side may stand for more rows than one of the other.
        before = np.cumsum(weight_of[mine])
        places = np.searchsorted(before, before[-1] * np.arange(1, count) / count, side="right")
        cuts = np.unique(moment_of[mine[np.minimum(places, len(mine) - 1)]])
        if len(cuts):
            found.append(HotKey(int(values[at]), tuple(cuts.tolist()), float(total[at] / total.sum())))
    return tuple(found)
