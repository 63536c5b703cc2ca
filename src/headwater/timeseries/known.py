"""What was known: rows by key and time, which answer what was known of a key at a time.

Keys become numbers by a dictionary, and key and time together one 64-bit word: the key's number times the span of all
times, plus the time in it. Where that does not fit, times become ranks among the times that occur, and numbers of
several keys are counted anew, only those that occur; then it always fits. The words are sorted once; after that a
question is a binary search, and all questions of a column are one call.

Two rows of one key and time, and of one tiebreak, are in no order. If such a row would be an answer and the others of
its time differ in a column that is read, that is refused: there is no right answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.dictionaries import encoded
from headwater.timeseries.digits import order_by_digits
from headwater.timeseries.node import Ordering
from headwater.timeseries.rows import sort_indices
from headwater.timeseries.searching import places_of
from headwater.timeseries.times import moved, time_numbers
from headwater.timeseries.total_order import check_total

__all__ = ["Direction", "Known"]

Direction = Literal["backward", "forward", "nearest"]
Words = npt.NDArray[np.int64]
_MOST = (1 << 63) - 1
_FEW_KEYS = 1 << 16
_MANY = 10_000
"""From here on digits are faster than comparing."""


class Known:
    """Rows that are looked up by key and time.

    >>> quotes = pa.table({"s": ["a", "a", "b"], "t": [1, 5, 2], "bid": [9, 8, 7]})
    >>> known = Known(quotes, ("s",), "t", (), ["bid"])
    >>> keys, times = pa.chunked_array([["a", "b", "c"]]), pa.chunked_array([[4, 1, 1]])
    >>> known.matches([keys], times, "backward", False, None).tolist()
    [0, -1, -1]
    """

    def __init__(
        self, rows: pa.Table, by: Sequence[str], time: str, tiebreak: Sequence[str], read: Sequence[str]
    ) -> None:
        self._ordering, self.read = Ordering(time, tuple(by), tuple(tiebreak)), tuple(read)
        rows = _with_all(rows, (*by, time)).combine_chunks()
        self.rows = rows
        self._values: list[tuple[pa.Array, pa.Array | None]] = []
        """For each key column its values, and the numbers that occur with it, where they were counted anew."""
        codes = np.zeros(rows.num_rows, np.int64)
        count = 1
        for name in by:
            key = encoded(_comparable(rows.column(name)))
            size = max(1, len(key.dictionary))
            assert count * size <= _MOST, "more keys than numbers"
            codes = codes * size + key.indices.to_numpy(zero_copy_only=False)
            count *= size
            occurring = None
            if count > _MOST // (2 * rows.num_rows + 2):
                anew = encoded(pa.array(codes))
                occurring, codes = anew.dictionary, anew.indices.to_numpy().astype(np.int64)
                count = len(occurring)
            self._values.append((key.dictionary, occurring))
        self._count = count
        times = time_numbers(rows.column(time))[0]
        self._first = int(times.min()) if len(times) else 0
        self._span = (int(times.max()) - self._first + 3) if len(times) else 3
        self._ranked: Words | None = None
        if count * self._span > _MOST:
            self._ranked = np.unique(times)
            self._span = 2 * len(self._ranked) + 2
        assert count * self._span <= _MOST, "more keys and times than numbers"
        self._times = times
        words = codes * self._span + self._placed(times)
        order = self._order(words, codes, [rows.column(name) for name in tiebreak])
        self._sorted_rows = order
        self._words = words if order is None else words[order]

    def _order(self, words: Words, codes: Words, tiebreak: list[pa.ChunkedArray]) -> Words | None:
        if tiebreak:
            return sort_indices([pa.chunked_array([words]), *tiebreak])
        if _rises(words):
            return None
        if self._count <= _FEW_KEYS and _rises(self._times):
            # As most logs are written; small numbers are sorted by counting.
            return np.argsort(codes.astype(np.uint16), kind="stable")
        return order_by_digits([codes, self._times]) if len(words) >= _MANY else np.argsort(words)

    def _placed(self, times: Words) -> Words:
        """Times within the span: known ones between its ends, the same for all keys."""
        if self._ranked is None:
            return np.clip(times, self._first - 1, self._first + self._span - 2) - (self._first - 1)
        at = np.searchsorted(self._ranked, times)
        there = self._ranked[np.minimum(at, len(self._ranked) - 1)] == times
        return np.where(there, 2 * at + 1, 2 * at)

    def matches(
        self,
        keys: Sequence[pa.ChunkedArray],
        times: pa.ChunkedArray,
        direction: Direction,
        strict: bool,
        tolerance: int | None,
    ) -> Words:
        """For each key and time the row that was known, by its place in `rows`; -1 where there is none."""
        base, there = self._asked(keys, times)
        moments = time_numbers(times)[0]
        if not len(self._words) or not there.any():
            return np.full(len(times), -1, np.int64)
        words = base + self._placed(moments)
        if direction == "backward":
            place = self._back(base, words, there, strict=strict)
        elif direction == "forward":
            place = self._ahead(base, words, there, strict=strict)
        else:
            place = self._nearest(base, words, moments, there, strict=strict)
        if tolerance is not None:
            met = self._time_at(place)
            # Unsigned, since the ends of time may be further apart than a signed number holds.
            away = np.where(met >= moments, met - moments, moments - met).view(np.uint64)
            place = np.where(away <= np.uint64(tolerance), place, -1)
        self._check_alone(place)
        return self.rows_at(place)

    def around(
        self, keys: Sequence[pa.ChunkedArray], times: pa.ChunkedArray, before: int, after: int
    ) -> tuple[Words, Words]:
        """For each key and time the rows from so long before to so long after it: the first in order, and how many."""
        base, there = self._asked(keys, times)
        if not len(self._words) or not there.any():
            return np.zeros(len(times), np.int64), np.zeros(len(times), np.int64)
        moments = time_numbers(times)[0]
        first = places_of(self._words, base + self._placed(moved(moments, -before)), "left")
        last = places_of(self._words, base + self._placed(moved(moments, after)), "right")
        return first, np.where(there, np.maximum(last - first, 0), 0)

    def rows_at(self, place: Words) -> Words:
        """Places in order as places in `rows`; -1 stays."""
        return place if self._sorted_rows is None else np.where(place < 0, -1, self._sorted_rows[place])

    def _asked(self, keys: Sequence[pa.ChunkedArray], times: pa.ChunkedArray) -> tuple[Words, npt.NDArray[np.bool_]]:
        """Where each row's key begins among the words, and whether the key is known and the time is there."""
        codes = np.zeros(len(times), np.int64)
        there = np.ones(len(times), np.bool_)
        for column, (values, occurring) in zip(keys, self._values, strict=True):
            codes = codes * max(1, len(values)) + _numbers(_found(column, values), there)
            if occurring is not None:
                codes = _numbers(pc.index_in(pa.array(codes), value_set=occurring), there)
        if times.null_count:
            there &= np.asarray(pc.is_valid(times))
        return codes * self._span, there

    def _back(self, base: Words, words: Words, there: npt.NDArray[np.bool_], *, strict: bool) -> Words:
        place = places_of(self._words, words, "left" if strict else "right") - 1
        met = there & (place >= 0)
        met &= self._words[np.maximum(place, 0)] >= base
        return np.where(met, place, -1)

    def _ahead(self, base: Words, words: Words, there: npt.NDArray[np.bool_], *, strict: bool) -> Words:
        place = places_of(self._words, words, "right" if strict else "left")
        met = there & (place < len(self._words))
        met &= self._words[np.minimum(place, len(self._words) - 1)] - base < self._span
        return np.where(met, place, -1)

    def _nearest(
        self, base: Words, words: Words, moments: Words, there: npt.NDArray[np.bool_], *, strict: bool
    ) -> Words:
        back = self._back(base, words, there, strict=strict)
        ahead = self._ahead(base, words, there, strict=strict)
        behind = moments.view(np.uint64) - self._time_at(back).view(np.uint64)
        before = self._time_at(ahead).view(np.uint64) - moments.view(np.uint64)
        takes_back = (back >= 0) & ((ahead < 0) | (behind <= before))
        return np.where(takes_back, back, ahead)

    def _time_at(self, place: Words) -> Words:
        at = np.maximum(place, 0)
        return self._times[at if self._sorted_rows is None else self._sorted_rows[at]]

    def _check_alone(self, place: Words) -> None:
        """Refuse answers that share key, time and tiebreak with another row that is not the same."""
        words = self._words
        same = words[1:] == words[:-1]
        if not same.any():
            return
        tied = np.zeros(len(words), np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        asked = np.unique(place[place >= 0])
        asked = asked[tied[asked]]
        if not len(asked):
            return
        chosen = np.isin(words, words[asked])
        rows = np.flatnonzero(chosen) if self._sorted_rows is None else self._sorted_rows[chosen]
        names = dict.fromkeys((*self._ordering.columns, *self.read))
        check_total(self.rows.select(list(names)).take(pa.array(rows)), self._ordering, self.read)


def _comparable(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Keys as SQL compares them: whole numbers of any width, one zero and one NaN."""
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        # Adding 0.0 makes -0.0 positive.
        return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), pc.add(column, 0.0))
    return column


def _found(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray | pa.Array:
    """For each row which of these values it has."""
    if not pa.types.is_dictionary(column.type):
        return pc.index_in(_comparable(column).cast(values.type), value_set=values)
    # Each text that occurs is looked for once.
    key = encoded(column)
    return pc.index_in(key.dictionary.cast(values.type), value_set=values).take(key.indices)


def _numbers(found: pa.ChunkedArray | pa.Array, there: npt.NDArray[np.bool_]) -> Words:
    """Places as numbers; rows without one are not there any more."""
    if found.null_count:
        there &= np.asarray(pc.is_valid(found))
        found = found.fill_null(0)
    return np.asarray(found).astype(np.int64)


def _rises(words: Words) -> bool:
    return bool((words[1:] >= words[:-1]).all())


def _with_all(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows that have a value in each of these columns: no other row can be found."""
    missing = [name for name in names if rows.column(name).null_count]
    for name in missing:
        rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows
