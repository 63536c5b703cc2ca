"""Comparing an artefact with its recomputation, as multisets of rows and in bounded memory.

**What equal means.** Rows are compared bit for bit, except that floats may differ in their last digits: an artefact
that is maintained incrementally adds floats up exactly and rounds once, while a query engine adds them in the order in
which they come, so its own answer is not the same from one run to the next. Two rows are a pair if all other columns
are the same and each pair of floats agrees within `TOLERANCE` of the larger one, or is the same (NaN, infinities, zeros
of either sign). Decimals, dates and strings, and floats inside of lists and structs, have to be the same. Columns are
matched by name. The two sides are equal if all their rows can be paired.

**How.** Three steps, of which the first is nearly always the last:

1. One pass over each side gives a `Digest`: counts and sums of hashes for each partition of the rows. Partitions whose
   sums agree are equal.
2. The rows of the other partitions are read again on both sides, and their exact `Difference` is taken. Without floats
   this is the answer.
3. Rows that are left and have floats are paired by the rule above (`pairing`): in memory, or sorted where they do not
   fit.

Whatever engine recomputes is asked to do it with `ENGINE_BYTES` of memory and to spill the rest, unless the settings
name a limit; where it cannot, it may take what the settings allow.

Rows are read again instead of being kept in the first pass: writing fifty million rows to a disk costs more than the
first step, and mostly for nothing. So both sides have to give the same rows each time they are read, but for the last
digits of floats.

**What is known of the rows that differ.** They are counted exactly; of each kind up to `EXAMPLES` different rows are
kept.

Where rows have several floats, and several rows agree in all other columns, step 3 pairs them in the order of their
floats, which may miss a way to pair them that exists. Step 1 may find it. Neither ever calls rows equal that cannot be
paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from headwater.base import events, rowkey, settings
from headwater.base.change import WEIGHT, ChangeBatch
from headwater.base.errors import SetupError
from headwater.base.frontier import Frontier
from headwater.derived.difference import ROW_BYTES, Difference
from headwater.derived.digest import Digest, RowHash, partition_bits, partition_of
from headwater.derived.pairing import TOLERANCE, Floats, Places, numbers_of, sorted_unpaired, unpaired
from headwater.derived.reports import Verification
from headwater.kernels.arrays import Flags, Lanes

__all__ = ["ENGINE_BYTES", "EXAMPLES", "TOLERANCE", "Limits", "compare"]

EXAMPLES = 1_000
ENGINE_BYTES = 384 << 20
"""How much memory a recomputation may take where the settings say nothing: a few million groups;
what is more is spilled.
"""

_BATCH_ROWS = 65_536
_MOST_BUCKET_BITS = 10
_OUT_OF_MEMORY = "E7005"
_SIGNS = (-1, 1)
"""The signs of the weights of rows that are missing, and of rows that are too many."""

Rows: TypeAlias = "pa.Table | Callable[[], pa.RecordBatchReader]"
"""One side: a table, or a function that begins to read the rows from the start."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a comparison holds in memory.

    Parameters
    ----------
    difference_bytes
        rows of partitions that differ, before they go to a file; and the size of a bucket of them
    paired_bytes
        rows that are paired in memory
    sort_bytes
        what sorting takes on each side where they are not
    examples
        how many different rows are kept of those that are missing, and of those that are too many
    """

    difference_bytes: int = 32 << 20
    paired_bytes: int = 32 << 20
    sort_bytes: int = 128 << 20
    examples: int = EXAMPLES


def compare(
    frontier: Frontier,
    *,
    expected: Rows,
    actual: Rows,
    rows: int | None = None,
    name: str = "",
    limits: Limits | None = None,
) -> Verification:
    """Hold the rows of an artefact against those of a recomputation.

    Parameters
    ----------
    frontier
        where both are
    expected, actual
        the two sides; functions may be called twice
    rows
        about how many rows each side has, where that is known: for the number of partitions, and for progress
    name
        of the artefact, for progress
    limits
        how much memory it takes

    >>> one, other = pa.table({"k": [1], "x": [0.1 + 0.2]}), pa.table({"k": [1], "x": [0.3]})
    >>> print(compare(Frontier(t=1), expected=one, actual=other))
    equal at t@1 (1 row)
    """
    if rows is None and isinstance(expected, pa.Table) and isinstance(actual, pa.Table):
        rows = max(expected.num_rows, actual.num_rows)
    with events.task(f"verify {name}".rstrip(), total=None if rows is None else 2 * rows, unit="rows") as task:
        if settings.current().memory_limit_bytes:
            return _compared(frontier, expected, actual, rows, limits, task)
        try:
            return _compared(frontier, _bounded(expected), actual, rows, limits, task)
        except SetupError as error:
            if error.code != _OUT_OF_MEMORY:
                raise
            task.note(f"the recomputation needs more than {ENGINE_BYTES >> 20} MiB; beginning again without this limit")
            task.expect(None if rows is None else 2 * rows)
            return _compared(frontier, expected, actual, rows, limits, task)


def _compared(
    frontier: Frontier, expected: Rows, actual: Rows, rows: int | None, limits: Limits | None, task: events.Task
) -> Verification:
    comparison = _Comparison(expected, actual, rows, limits or Limits())
    comparison.run(task)
    return comparison.found(frontier)


def _bounded(side: Rows) -> Rows:
    """The same rows; an engine that begins to compute them is told how much memory it has."""
    if isinstance(side, pa.Table):
        return side

    def begin() -> pa.RecordBatchReader:
        with settings.override(memory_limit_bytes=ENGINE_BYTES):
            return side()

    return begin


class _Comparison:
    """One comparison on its way."""

    def __init__(self, expected: Rows, actual: Rows, rows: int | None, limits: Limits) -> None:
        self.limits = limits
        self._sides = (expected, actual)
        self._opened: dict[int, pa.RecordBatchReader] = {i: _opened(side) for i, side in enumerate(self._sides)}
        self.schema, theirs = self._opened[0].schema, self._opened[1].schema
        ChangeBatch.empty(self.schema).add(ChangeBatch.empty(theirs))  # raises where columns or types are not the same
        self._plain = pa.schema([pa.field(f.name, rowkey.plain_type(f.type)) for f in self.schema])
        self._hash = RowHash(self._plain)
        bits = partition_bits(1 << 40 if rows is None else rows)
        self._digests = (Digest(self._hash, bits), Digest(self._hash, bits))
        self._differs: Flags = np.zeros(1 << bits, dtype=np.bool_)
        self._tallies = (_Tally(limits.examples), _Tally(limits.examples))

    def run(self, task: events.Task) -> None:
        for side, digest in enumerate(self._digests):
            for batch in self._batches(side):
                digest.add(batch)
                task.advance(batch.num_rows)
        expected, actual = self._digests
        self._differs = expected.differs(actual)
        count = int(self._differs.sum())
        if count:
            task.expect(expected.rows + actual.rows)
            task.note(f"reading {count:,} of {len(self._differs):,} partitions again, whose digests differ")
            self._compare_rows(task)

    def found(self, frontier: Frontier) -> Verification:
        missing, extra = self._tallies
        return Verification(
            frontier=frontier,
            missing=missing.examples(self.schema),
            extra=extra.examples(self.schema),
            missing_rows=missing.rows,
            extra_rows=extra.rows,
            expected_rows=self._digests[0].rows,
            rows=self._digests[1].rows,
            partitions=len(self._differs),
            exact_partitions=int(self._differs.sum()),
        )

    def _batches(self, side: int) -> Iterator[pa.RecordBatch]:
        """The rows of a side in small batches, with the columns of the expected ones in their order,
        and plain types.
        """
        reader = self._opened.pop(side, None) or _opened(self._sides[side])
        names, have = self._plain.names, reader.schema.names
        order = range(len(names)) if names == have else [have.index(name) for name in names]
        for batch in reader:
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                part = batch.slice(start, _BATCH_ROWS)
                columns = [_as(part.column(i), f.type) for i, f in zip(order, self._plain, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=self._plain)

    # -- rows of partitions that differ --------------------------------------------------------------------------------

    def _compare_rows(self, task: events.Task) -> None:
        buckets, memory_bytes = self._buckets(), self.limits.difference_bytes
        with Difference(self._plain, buckets=buckets, memory_bytes=memory_bytes) as difference:
            for side, weight in ((0, -1), (1, 1)):
                for batch in self._batches(side):
                    self._add(difference, batch, weight, buckets)
                    task.advance(batch.num_rows)
            if self._hash.floats:
                pa.default_memory_pool().release_unused()
                self._pair(difference)
                return
            for change in difference.buckets():
                self._tally(change)

    def _buckets(self) -> int:
        """Into how many buckets the rows of partitions that differ have to be cut, so that each of them fits."""
        size = 0
        for digest in self._digests:
            share = float(digest.counts[self._differs].sum()) / max(1, digest.rows)
            size += int((digest.nbytes + ROW_BYTES * digest.rows) * share)
        return 1 << min(_MOST_BUCKET_BITS, (size // self.limits.difference_bytes).bit_length())

    def _add(self, difference: Difference, batch: pa.RecordBatch, weight: int, buckets: int) -> None:
        lanes = self._hash.plain_lanes(batch)
        wanted = np.flatnonzero(self._differs[partition_of(lanes, self._digests[0].bits)])
        if not len(wanted):
            return
        rows = rowkey.take_rows(pa.Table.from_batches([batch]), wanted).combine_chunks()
        exact = self._hash.exact_lanes(rows.to_batches()[0], lanes[wanted])
        # The second lane: the first one has named the partition, so that its first bits are few here.
        places = (exact[:, 1] & np.uint64(buckets - 1)).astype(np.int64)
        difference.add(rows, np.full(len(wanted), weight, dtype=np.int64), places)

    def _tally(self, change: ChangeBatch) -> None:
        for tally, sign in zip(self._tallies, _SIGNS, strict=True):
            there = np.flatnonzero(change.weights * sign > 0)
            tally.add(_weighted(change.rows, there, np.abs(change.weights[there])))

    # -- floats --------------------------------------------------------------------------------------------------------

    def _pair(self, difference: Difference) -> None:
        held: list[pa.Table] = []
        size = 0.0
        for change in difference.buckets():
            size += (change.rows.nbytes / change.num_rows + ROW_BYTES) * float(
                np.abs(change.weights).sum(dtype=np.float64)
            )
            if size > self.limits.paired_bytes:
                held.clear()
                self._pair_sorted(difference)
                return
            held.append(change.table)
        if not held:
            return
        left = ChangeBatch.from_table(pa.concat_tables(held))
        missing, extra = left.deleted(), left.inserted()
        for tally, rows, alone in zip(self._tallies, (missing, extra), self._unpaired(missing, extra), strict=True):
            tally.add(ChangeBatch.from_rows(rowkey.take_rows(rows, alone)).consolidate())

    def _unpaired(self, missing: pa.Table, extra: pa.Table) -> tuple[Places, Places]:
        return unpaired(missing, extra, [self._plain.field(i).name for i in self._hash.floats])

    def _pair_sorted(self, difference: Difference) -> None:
        """The same for rows that do not fit; a row is known by its number in the difference."""
        left, right = (partial(self._sort_keys, difference, sign) for sign in _SIGNS)
        alone = (_Numbers(self.limits.examples), _Numbers(self.limits.examples))
        for numbers in sorted_unpaired(left, right, len(self._hash.floats), memory_bytes=self.limits.sort_bytes):
            for kept, found in zip(alone, numbers, strict=True):
                kept.add(found)
        start = 0
        for change in difference.buckets():
            for tally, kept in zip(self._tallies, alone, strict=True):
                there, counts = kept.between(start, start + change.num_rows)
                tally.add(_weighted(change.rows, there - start, counts))
            start += change.num_rows
        for tally, kept in zip(self._tallies, alone, strict=True):
            tally.rows = kept.rows

    def _sort_keys(self, difference: Difference, sign: int) -> Iterator[tuple[Lanes, list[Floats], Places]]:
        start = 0
        for change in difference.buckets():
            there = np.flatnonzero(change.weights * sign > 0)
            if len(there):
                rows = rowkey.take_rows(change.rows, there).combine_chunks().to_batches()[0]
                lanes = self._hash.plain_lanes(rows)
                numbers = [numbers_of(rows.column(i)) for i in self._hash.floats]
                for piece in _repeated(np.abs(change.weights[there])):
                    yield lanes[piece], [n[piece] for n in numbers], there[piece] + start
            start += change.num_rows


class _Tally:
    """Rows without a partner: how many, and some of them."""

    def __init__(self, most: int) -> None:
        self.rows = 0
        self._most = most
        self._listed = 0
        self._kept: list[pa.Table] = []

    def add(self, change: ChangeBatch) -> None:
        """Count rows, of positive weights and other than those that were there before."""
        self.rows += int(change.weights.sum())
        table = change.table.slice(0, self._most - self._listed)
        if table.num_rows:
            self._kept.append(rowkey.take_rows(table, np.arange(table.num_rows)))  # what it is a part of can go
            self._listed += table.num_rows

    def examples(self, schema: pa.Schema) -> ChangeBatch:
        """The rows that were kept, with the types that they had."""
        if not self._kept:
            return ChangeBatch.empty(schema)
        table = pa.concat_tables(self._kept)
        columns = [_as(c, f.type) for c, f in zip(table.columns, schema, strict=False)]
        rows = pa.Table.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))
        return _weighted(rows, np.arange(table.num_rows), table.columns[-1].to_numpy())


class _Numbers:
    """Numbers of rows without a partner: how many, and how often the first different ones come."""

    def __init__(self, most: int) -> None:
        self.rows = 0
        self._most = most
        self._kept: dict[int, int] = {}

    def add(self, numbers: Places) -> None:
        self.rows += len(numbers)
        found, counts = np.unique(numbers, return_counts=True)
        if len(self._kept) >= self._most:  # others are of no interest any more
            known = np.isin(found, np.fromiter(self._kept, dtype=np.int64))
            found, counts = found[known], counts[known]
        for number, count in zip(found.tolist(), counts.tolist(), strict=True):
            if number in self._kept or len(self._kept) < self._most:
                self._kept[number] = self._kept.get(number, 0) + count

    def between(self, start: int, end: int) -> tuple[Places, Places]:
        """The numbers that were kept of a range, and how often each came."""
        there = np.array(sorted(n for n in self._kept if start <= n < end), dtype=np.int64)
        return there, np.array([self._kept[n] for n in there.tolist()], dtype=np.int64)


def _opened(side: Rows) -> pa.RecordBatchReader:
    return side.to_reader() if isinstance(side, pa.Table) else side()


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)


def _weighted(rows: pa.Table, there: Places, weights: Places) -> ChangeBatch:
    picked = rowkey.take_rows(rows, there)
    return ChangeBatch.from_table(picked.append_column(WEIGHT, pa.array(weights, type=pa.int64()))).consolidate()


def _repeated(times: Places) -> Iterator[Places]:
    """Each position as often as it comes, in pieces."""
    ends = np.cumsum(times)
    for start in range(0, int(ends[-1]), _BATCH_ROWS):
        yield np.searchsorted(ends, np.arange(start, min(start + _BATCH_ROWS, int(ends[-1]))), side="right")
