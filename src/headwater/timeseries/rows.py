"""The rows of one input in one task: as they come, whole, or sorted, in bounded memory.

The problem: a task gets the blocks of its bucket in pieces, in the order of the plan, and an ordered operator wants
them by series and time, also when one series is larger than memory. The idea: pieces are collected up to a budget and
sorted at once; what is more than that is sorted piece by piece into files (Arrow IPC, memory-mapped when they are read
back) and merged in chunks: of each run a piece is at hand, the smallest of their last rows bounds what is safe to give,
and one sort of what is at hand gives it. No row is handled alone.

Order: by the columns given, ascending, nulls first, NaN last and equal to itself, -0.0 equal to 0.0, and rows that are
equal in all of them in the order in which they came. So what comes in a fixed order is sorted into a fixed order.

Texts of keys may come as dictionaries, as blocks have them (`coded`); they are sorted so, and given as the texts that
the schema says.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.dictionaries import encoded
from headwater.spark.block_format import plain
from headwater.timeseries.digits import order_by_digits

__all__ = ["BUDGET_BYTES", "Rows", "comparable", "key_starts", "sort_indices", "sort_table", "whole_keys"]

BUDGET_BYTES = 256 << 20
_PIECE_ROWS = 65_536
_MANY = 10_000
"""From here on digits are faster than comparing."""
_RUN, _PLACE = "__hw_run", "__hw_place"

Indices = npt.NDArray[np.int64]
Words = npt.NDArray[Any]


class Rows:
    """Rows of one schema that can be read once: iterate, or take them `whole` or `sorted`.

    >>> rows = Rows([pa.table({"k": [2, 1], "v": ["a", "b"]}), pa.table({"k": [1], "v": ["c"]})])
    >>> [t.to_pylist() for t in rows.sorted(["k"])]
    [[{'k': 1, 'v': 'b'}, {'k': 1, 'v': 'c'}, {'k': 2, 'v': 'a'}]]
    """

    def __init__(
        self,
        tables: Iterable[pa.Table],
        schema: pa.Schema | None = None,
        *,
        budget_bytes: int = BUDGET_BYTES,
    ) -> None:
        self._tables = iter(tables)
        self._first: pa.Table | None = None
        if schema is None:
            self._first = next(self._tables)
            schema = self._first.schema
        self.schema: pa.Schema = schema
        self.budget_bytes = budget_bytes
        self.spilled_bytes = 0

    def __iter__(self) -> Iterator[pa.Table]:
        return (plain(table, self.schema) for table in self.coded())

    def coded(self) -> Iterator[pa.Table]:
        """The tables as they come: texts of keys may be dictionaries, in each table another."""
        if self._first is not None:
            first, self._first = self._first, None
            yield first
        yield from self._tables

    def fitting(self) -> pa.Table | None:
        """All rows, keys as they come, if they fit into the budget; else None, and they can still be read."""
        held: list[pa.Table] = []
        size = 0
        for table in self.coded():
            held.append(table)
            size += table.nbytes
            if size > self.budget_bytes:
                self._tables = itertools.chain(held, self._tables)
                return None
        return pa.concat_tables(held) if held else self.schema.empty_table()

    def whole(self) -> pa.Table:
        """All rows, however many."""
        tables = list(self)
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def sorted(self, by: Sequence[str]) -> Iterator[pa.Table]:
        """The rows in order, in chunks of bounded size; nothing, if there are none."""
        held: list[pa.Table] = []
        size = 0
        runs: list[Path] = []
        try:
            for table in self.coded():
                if not table.num_rows:
                    continue
                held.append(table)
                size += table.nbytes
                if size >= self.budget_bytes:
                    runs.append(self._spilled(held, by, runs))
                    held, size = [], 0
            if not runs:
                if held:
                    yield plain(sort_table(pa.concat_tables(held), by), self.schema)
                return
            if held:
                runs.append(self._spilled(held, by, runs))
            yield from _merged(runs, by, max(16, min(_PIECE_ROWS, self._rows_in_budget(runs) // (2 * len(runs)))))
        finally:
            # Not a TemporaryDirectory: the collector may find that one before this generator, and it would complain.
            if runs:
                shutil.rmtree(runs[0].parent, ignore_errors=True)

    def _spilled(self, tables: list[pa.Table], by: Sequence[str], runs: Sequence[Path]) -> Path:
        folder = runs[0].parent if runs else Path(tempfile.mkdtemp(prefix="headwater-sort-"))
        path = folder / f"{len(runs)}.arrow"
        run = plain(sort_table(pa.concat_tables(tables), by), self.schema)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, run.schema) as writer:
            writer.write_table(run, max_chunksize=_PIECE_ROWS)
        self.spilled_bytes += os.path.getsize(path)
        return path

    def _rows_in_budget(self, runs: Sequence[Path]) -> int:
        rows = 0
        for path in runs:
            with pa.memory_map(str(path)) as source:
                file = pa.ipc.open_file(source)
                rows += sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
        return max(1, rows * self.budget_bytes // max(1, self.spilled_bytes))


def sort_table(table: pa.Table, by: Sequence[str]) -> pa.Table:
    """The table in the order of this module.

    >>> sort_table(pa.table({"t": [2.0, None, float("nan"), -0.0, 0.0], "i": [0, 1, 2, 3, 4]}), ["t"])["i"].to_pylist()
    [1, 3, 4, 0, 2]
    """
    if table.num_rows < 2:
        return table
    order = sort_indices([table.column(name) for name in by])
    return table if order is None else table.take(pa.array(order))


def sort_indices(columns: Sequence[pa.ChunkedArray]) -> Indices | None:
    """The stable order of rows by these columns; None if they are in order already."""
    words: list[Words] = []
    for column in columns:
        words += comparable(column)
    if _is_sorted(words):
        return None
    if len(words) > 1 and len(words[0]) >= _MANY:
        return order_by_digits(words)
    # The last of its keys is the first that decides.
    return np.lexsort(words[::-1]) if len(words) > 1 else np.argsort(words[0], kind="stable")


def _is_sorted(words: Sequence[Words]) -> bool:
    undecided: npt.NDArray[np.bool_] | None = None
    for word in words:
        before, after = word[:-1], word[1:]
        falls = before > after
        if undecided is not None:
            falls &= undecided
        if falls.any():
            return False
        same = before == after
        undecided = same if undecided is None else undecided & same
        if not undecided.any():
            return True
    return True


def comparable(column: pa.ChunkedArray) -> list[Words]:
    """Arrays that compare as the column's values do; the first of them decides."""
    kind = column.type
    if pa.types.is_dictionary(kind) and not pa.types.is_string(kind.value_type):
        column = column.cast(kind.value_type)
        kind = column.type
    words: list[Words] = []
    if column.null_count:
        words.append(np.asarray(pc.is_valid(column)).astype(np.int8))
    if pa.types.is_null(kind):
        return words or [np.zeros(len(column), np.int8)]
    if pa.types.is_integer(kind):
        filled = column.fill_null(0) if column.null_count else column
        return [*words, filled.to_numpy()]
    if pa.types.is_floating(kind):
        # Adding 0.0 makes -0.0 positive; numpy sorts NaN last, and compares it as unequal, so it gets a word of its
        # own.
        values = (column.fill_null(0.0) if column.null_count else column).cast(pa.float64()).to_numpy() + 0.0
        missing = np.isnan(values)
        if missing.any():
            words.append(missing.astype(np.int8))
            values = np.where(missing, 0.0, values)
        return [*words, values]
    if pa.types.is_boolean(kind):
        filled = column.fill_null(False) if column.null_count else column
        return [*words, filled.cast(pa.int8()).to_numpy()]
    if (
        pa.types.is_timestamp(kind)
        or pa.types.is_duration(kind)
        or pa.types.is_date64(kind)
        or pa.types.is_time64(kind)
    ):
        return [*words, _filled(column.cast(pa.int64()))]
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return [*words, _filled(column.cast(pa.int32()))]
    # Texts, bytes, decimals and nested values: their rank among those that are there.
    return [*words, _ranks(column)]


def _filled(column: pa.ChunkedArray) -> Words:
    values: Words = (column.fill_null(0) if column.null_count else column).to_numpy()
    return values


def _ranks(column: pa.ChunkedArray) -> Words:
    once = encoded(column)
    order = pc.sort_indices(once.dictionary).to_numpy()
    ordered = once.dictionary.take(pa.array(order))
    # A dictionary may have a value twice.
    new = np.asarray(pc.not_equal(ordered.slice(1), ordered.slice(0, max(0, len(order) - 1))))
    rank = np.zeros(len(order), np.int32)
    rank[order[1:]] = np.cumsum(new, dtype=np.int32)
    codes = once.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return rank[codes] if len(order) else np.zeros(len(column), np.int32)


def _merged(paths: Sequence[Path], by: Sequence[str], rows: int) -> Iterator[pa.Table]:
    runs = [_Run(path, number, rows) for number, path in enumerate(paths)]
    order = [*by, _RUN, _PLACE]
    held = pa.concat_tables([run.next() for run in runs])
    while True:
        behind = [run for run in runs if not run.done]
        held = sort_table(held, order)
        if not behind:
            break
        # All rows up to the smallest last row at hand of the runs that have more are here.
        numbers = np.asarray(held.column(_RUN))
        places = np.asarray(held.column(_PLACE))
        at = min(int(np.flatnonzero((numbers == run.number) & (places == run.last))[0]) for run in behind)
        yield held.slice(0, at + 1).drop_columns([_RUN, _PLACE])
        slow = next(run for run in behind if run.number == numbers[at])
        held = pa.concat_tables([held.slice(at + 1).combine_chunks(), slow.next()])
    if held.num_rows:
        yield held.drop_columns([_RUN, _PLACE])


class _Run:
    """A sorted file, of which pieces are taken."""

    def __init__(self, path: Path, number: int, rows: int) -> None:
        self._file = pa.ipc.open_file(pa.memory_map(str(path)))
        self._batches = iter(range(self._file.num_record_batches))
        self._batch: pa.RecordBatch | None = None
        self._rows = rows
        self.number = number
        self.last = -1
        self.done = False
        self._advance()

    def _advance(self) -> None:
        batches = (self._file.get_batch(number) for number in self._batches)
        self._batch = next((batch for batch in batches if batch.num_rows), None)
        self.done = self._batch is None

    def next(self) -> pa.Table:
        """The next rows, with the run's number and their places in it."""
        assert self._batch is not None
        piece = self._batch.slice(0, self._rows)
        if piece.num_rows < self._batch.num_rows:
            self._batch = self._batch.slice(self._rows)
        else:
            self._advance()
        table = pa.Table.from_batches([piece])
        places = np.arange(self.last + 1, self.last + 1 + piece.num_rows, dtype=np.int64)
        self.last += piece.num_rows
        numbers = pa.array(np.full(piece.num_rows, self.number, np.int32))
        return table.append_column(_RUN, numbers).append_column(_PLACE, pa.array(places))


def key_starts(table: pa.Table, keys: Sequence[str]) -> Indices:
    """Where each key begins in a table that is sorted by it; nulls are a key, and no keys at all are one.

    >>> key_starts(pa.table({"k": [1, 1, None, None, 3]}), ["k"]).tolist()
    [0, 2, 4]
    """
    rows = table.num_rows
    if not rows:
        return np.empty(0, np.int64)
    differs = np.zeros(rows - 1, np.bool_)
    for name in keys:
        column = table.column(name)
        if pa.types.is_string(column.type) and not column.null_count:
            # Neighbours are compared as they are: cheaper than to rank them all.
            differs |= np.asarray(pc.not_equal(column.slice(1), column.slice(0, rows - 1)))
            continue
        for word in comparable(column):
            differs |= word[1:] != word[:-1]
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def whole_keys(chunks: Iterable[pa.Table], keys: Sequence[str]) -> Iterator[pa.Table]:
    """The same rows, cut only where a key ends: for kernels that cannot go on in the middle of one.

    >>> cut = whole_keys([pa.table({"k": [1, 2]}), pa.table({"k": [2, 3]})], ["k"])
    >>> [t["k"].to_pylist() for t in cut]
    [[1], [2, 2], [3]]
    """
    held: list[pa.Table] = []
    for chunk in chunks:
        if not chunk.num_rows:
            continue
        if (
            held
            and len(key_starts(pa.concat_tables([held[-1].slice(held[-1].num_rows - 1), chunk.slice(0, 1)]), keys)) > 1
        ):
            yield pa.concat_tables(held)
            held = []
        last = int(key_starts(chunk, keys)[-1])
        if last:
            yield pa.concat_tables([*held, chunk.slice(0, last)])
            held = []
        held.append(chunk.slice(last))
    if held:
        yield pa.concat_tables(held)
