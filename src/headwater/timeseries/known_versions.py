"""Rows that were there for a while, looked up by key, time and the moment at which they had to be known.

Each row was visible from ``since`` until before ``until``. A lookup gives the latest row up to a time of those that
were visible at a moment. Where several were, of the same key, time and tiebreak, and differ in what is read, there is
no right answer, and that is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.derived.digest import RowHash
from headwater.kernels.arrays import read_only
from headwater.kernels.known_rows import BLOCK, latest_known, spans_of_blocks
from headwater.timeseries.known import Known
from headwater.timeseries.node import Ordering
from headwater.timeseries.times import moved, time_numbers
from headwater.timeseries.total_order import check_total

__all__ = ["KnownVersions"]

Words = npt.NDArray[np.int64]


class KnownVersions(Known):
    """Rows by key and time, each with the stretch in which it was known.

    >>> rows = pa.table({"k": ["a", "a"], "t": [1, 1], "v": [5, 6], "since": [10, 20], "until": [20, 99]})
    >>> known = KnownVersions(rows, ("k",), "t", (), ["v"], "since", "until")
    >>> asked = [pa.chunked_array([["a", "a", "a"]])], pa.chunked_array([[3, 3, 3]])
    >>> known.matches_at(*asked, np.array([9, 10, 20]), strict=False, tolerance=None).tolist()
    [-1, 0, 1]
    """

    def __init__(
        self,
        rows: pa.Table,
        by: Sequence[str],
        time: str,
        tiebreak: Sequence[str],
        read: Sequence[str],
        since: str,
        until: str,
    ) -> None:
        super().__init__(rows, by, time, tiebreak, read)
        self._named = Ordering(time, tuple(by), tuple(tiebreak))
        self._since, self._until = (self._in_order(self.rows.column(name).to_numpy()) for name in (since, until))
        blocks = -(-len(self._since) // BLOCK)
        self._came, self._went = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
        spans_of_blocks(read_only(self._since), read_only(self._until), self._came, self._went)
        self._said = self._contents()

    def _in_order(self, values: npt.NDArray[np.int64]) -> Words:
        found = values.astype(np.int64)
        return np.ascontiguousarray(found if self._sorted_rows is None else found[self._sorted_rows])

    def _contents(self) -> tuple[Words, Words]:
        """A hash of the tiebreak and one of what is read of each row, in order; empty where no two have one key and
        time.
        """
        none = np.zeros(0, np.int64)
        if not (self._words[1:] == self._words[:-1]).any():
            return none, none
        return self._hashes(self._named.tiebreak), self._hashes(self.read)

    def _hashes(self, names: Sequence[str]) -> Words:
        rows = self.rows.select(list(dict.fromkeys(names))).combine_chunks()
        if not rows.num_columns:
            return np.zeros(len(self._words), np.int64)
        hashes = RowHash(rows.schema)
        parts = [hashes.exact_lanes(batch, hashes.plain_lanes(batch))[:, 0] for batch in rows.to_batches()]
        return self._in_order(np.concatenate([np.zeros(0, np.uint64), *parts]).view(np.int64))

    def matches_at(
        self,
        keys: Sequence[pa.ChunkedArray],
        times: pa.ChunkedArray,
        known: Words,
        *,
        strict: bool,
        tolerance: int | None,
    ) -> Words:
        """For each key and time the latest row up to it that was known then, by its place in `rows`; -1 for none."""
        base, there = self._asked(keys, times)
        if not len(self._words) or not there.any():
            return np.full(len(times), -1, np.int64)
        moments = time_numbers(times)[0]
        place = self._back(base, base + self._placed(moments), there, strict=strict)
        found, tied = np.empty(len(place), np.int64), np.empty(len(place), np.int64)
        spans = (self._since, self._until, self._came, self._went)
        asked = (np.ascontiguousarray(place), np.ascontiguousarray(base), np.ascontiguousarray(known, np.int64))
        words = np.ascontiguousarray(self._words)
        came, went, first, last = map(read_only, spans)
        at, least, moment = map(read_only, asked)
        order, content = map(read_only, self._said)
        latest_known(read_only(words), came, went, first, last, at, least, moment, order, content, found, tied)
        if tolerance is not None:
            far = self._time_at(found) < moved(moments, -tolerance)
            found = np.where(far, -1, found)
        self._check(found, tied)
        return self.rows_at(found)

    def _check(self, found: Words, tied: Words) -> None:
        """Refuse rows of which two could be meant."""
        both = np.flatnonzero((found >= 0) & (tied >= 0))
        if len(both):
            pair = self.rows_at(np.array([tied[both[0]], found[both[0]]]))
            names = list(dict.fromkeys((*self._named.columns, *self.read)))
            check_total(self.rows.select(names).take(pa.array(pair)), self._named, self.read)
