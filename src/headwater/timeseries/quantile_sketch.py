"""Quantiles of many columns at once, in one pass and in bounded memory, with an error that is never exceeded.

The problem: a quantile needs the values in order, and thousands of columns of billions of rows cannot be sorted. The
idea (of Munro and Paterson, and of Manku, Rajagopalan and Lindsay): levels of buffers. Level 0 holds values as they
come. Whenever a level has as many values as fit (its capacity), they are sorted, of each eight in a row the fourth goes
on to the next level, where it stands for eight, and the others are forgotten. Weights are powers of eight, and together
they always are the number of values.

Error: forgetting changes the rank of any value by at most half of the new weight. A level of capacity c does that once
for c of its values, so all of a level's changes together are at most 8 n / 2c for n values, and with H levels in use
the rank is wrong by at most 4 n H / c. The capacity is chosen such that this is at most ``error * n`` up to 2^40
values; for fewer it is smaller, and below the capacity the answer is exact. It does not matter how rows are cut into
sketches or in which order sketches are merged: each change is paid for by c values of its level. So any two runs agree
within the error, and a given division of the rows gives one answer.

Values are 64-bit words that sort as they do (`quantile_words`). All columns share a level as one flat array with
lengths, so that sorting is one call for all of them. The smallest and the largest value of a column are kept exactly.

As Arrow (version 1, between tasks only): rows of ``column`` int32, ``level`` int16, ``values`` large_list<int64>; level
-1 has the smallest and the largest value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["SKETCH_SCHEMA", "QuantileSketch", "capacity_of"]

Words = npt.NDArray[np.int64]

SKETCH_SCHEMA = pa.schema([("column", pa.int32()), ("level", pa.int16()), ("values", pa.large_list(pa.int64()))])

_STEP = 8
_MOST_VALUES = 1 << 40
_EXTREMES = -1
_PENDING_VALUES = 1 << 22


def capacity_of(error: float) -> int | None:
    """How many values a level holds for this error; None, all of them, for no error at all.

    >>> capacity_of(0.01), capacity_of(0)
    (4000, None)
    """
    if error <= 0:
        return None
    levels = 1
    while True:
        capacity = math.ceil(levels * _STEP / 2 / error / _STEP) * _STEP
        if capacity * _STEP**levels >= _MOST_VALUES:
            return capacity
        levels += 1


@dataclass(slots=True)
class _Level:
    """Values of all columns, one column after the other."""

    values: Words
    lengths: Words

    def of_each(self) -> list[Words]:
        ends = np.cumsum(self.lengths).tolist()
        return [self.values[s:e] for s, e in zip([0, *ends[:-1]], ends, strict=True)]


class QuantileSketch:
    """A sketch of each of some columns.

    >>> sketch = QuantileSketch(1, 0.1)
    >>> sketch.add([np.arange(100_000)])
    >>> [abs(int(v) - p * 100_000) <= 0.1 * 100_000 for v, p in zip(sketch.quantiles([0.1, 0.9])[0], [0.1, 0.9])]
    [True, True]
    """

    def __init__(self, columns: int, error: float) -> None:
        self.columns = columns
        self.capacity = capacity_of(error)
        self._levels: list[_Level] = []
        self._pending: list[list[Words]] = [[] for _ in range(columns)]
        self._pending_values = 0
        self._low = np.full(columns, np.iinfo(np.int64).max, np.int64)
        self._high = np.full(columns, np.iinfo(np.int64).min, np.int64)

    def add(self, values: Sequence[Words]) -> None:
        """More values, for each column some."""
        for column, words in enumerate(values):
            if len(words):
                self._pending[column].append(words)
                self._pending_values += len(words)
                self._low[column] = min(self._low[column], words.min())
                self._high[column] = max(self._high[column], words.max())
        if self._pending_values > _PENDING_VALUES:
            self._flush()

    def counts(self) -> Words:
        """How many values each column has."""
        self._flush()
        found = np.zeros(self.columns, np.int64)
        for level, held in enumerate(self._levels):
            found += held.lengths * _STEP**level
        return found

    def extremes(self) -> tuple[Words, Words]:
        """The smallest and the largest value of each column; of one without values, neither means anything."""
        return self._low, self._high

    def quantiles(self, probabilities: Sequence[float]) -> list[Words | None]:
        """For each column its quantiles; None if it has no values."""
        self._flush()
        parts = [level.of_each() for level in self._levels]
        found: list[Words | None] = []
        for column in range(self.columns):
            held = [part[column] for part in parts]
            total = sum(len(words) * _STEP**level for level, words in enumerate(held))
            if not total:
                found.append(None)
                continue
            values = np.concatenate(held)
            weights = np.repeat(np.array([_STEP**level for level in range(len(held))]), [len(words) for words in held])
            order = np.argsort(values, kind="stable")
            ranks = np.cumsum(weights[order])
            targets = [max(1, math.ceil(p * total)) for p in probabilities]
            picked = values[order[np.minimum(np.searchsorted(ranks, targets), len(values) - 1)]]
            picked[np.equal(probabilities, 0)] = self._low[column]
            picked[np.equal(probabilities, 1)] = self._high[column]
            found.append(picked)
        return found

    def merge(self, table: pa.Table) -> None:
        """Take in a sketch of the same columns, as `to_arrow` gives it."""
        columns, levels = np.asarray(table.column("column")), np.asarray(table.column("level"))
        lists = table.column("values").combine_chunks()
        if isinstance(lists, pa.ChunkedArray):
            lists = (
                pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], SKETCH_SCHEMA.field("values").type)
            )
        offsets, flat = np.asarray(lists.offsets), np.asarray(lists.values)
        for level in np.unique(levels).tolist():
            pieces: list[list[Words]] = [[] for _ in range(self.columns)]
            for row in np.flatnonzero(levels == level).tolist():
                pieces[columns[row]].append(flat[offsets[row] : offsets[row + 1]])
            if level == _EXTREMES:
                for column, found in enumerate(pieces):
                    for low, high in found:
                        self._low[column] = min(self._low[column], low)
                        self._high[column] = max(self._high[column], high)
            else:
                self._append(level, pieces)
        self._compact()

    def to_arrow(self) -> pa.Table:
        """The sketch as rows, for `merge`."""
        self._flush()
        columns: list[Words] = []
        levels: list[npt.NDArray[np.int16]] = []
        lengths: list[Words] = []
        there = np.flatnonzero(self._low <= self._high)
        extremes = np.stack([self._low[there], self._high[there]], axis=1).ravel()
        rows = [(_EXTREMES, there, extremes, np.full(len(there), 2, np.int64))]
        for number, level in enumerate(self._levels):
            used = np.flatnonzero(level.lengths)
            rows.append((number, used, level.values, level.lengths[used]))
        for number, used, _, sizes in rows:
            columns.append(used)
            levels.append(np.full(len(used), number, np.int16))
            lengths.append(sizes)
        offsets = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
        values = np.concatenate([values for _, _, values, _ in rows])
        arrays = [
            pa.array(np.concatenate(columns).astype(np.int32)),
            pa.array(np.concatenate(levels)),
            pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values)),
        ]
        return pa.Table.from_arrays(arrays, schema=SKETCH_SCHEMA)

    def _flush(self) -> None:
        if self._pending_values:
            self._append(0, self._pending)
            self._pending = [[] for _ in range(self.columns)]
            self._pending_values = 0
            self._compact()

    def _append(self, level: int, pieces: Sequence[Sequence[Words]]) -> None:
        while len(self._levels) <= level:
            self._levels.append(_Level(np.empty(0, np.int64), np.zeros(self.columns, np.int64)))
        held = self._levels[level]
        parts = [part for old, new in zip(held.of_each(), pieces, strict=True) for part in (old, *new)]
        added = np.array([sum(map(len, new)) for new in pieces], np.int64)
        self._levels[level] = _Level(np.concatenate(parts), held.lengths + added)

    def _compact(self) -> None:
        if self.capacity is None:
            return
        level = 0
        while level < len(self._levels):
            held = self._levels[level]
            taken = held.lengths // self.capacity * self.capacity
            if taken.any():
                each = held.of_each()
                ends = taken.tolist()
                blocks = np.concatenate([words[:end] for words, end in zip(each, ends, strict=True) if end])
                rest = np.concatenate([words[end:] for words, end in zip(each, ends, strict=True)])
                blocks = blocks.reshape(-1, self.capacity)
                blocks.sort(axis=1)
                self._levels[level] = _Level(rest, held.lengths - taken)
                going = _Level(np.ascontiguousarray(blocks[:, _STEP // 2 - 1 :: _STEP]).ravel(), taken // _STEP)
                self._append(level + 1, [[words] for words in going.of_each()])
            level += 1
