"""The exact difference of two multisets of rows, in bounded memory.

Rows of one side come with weight -1, rows of the other with +1, and equal rows have to meet. They do so in a *bucket*,
named by a hash of the whole row, bit for bit: equal rows fall into one bucket, and buckets are of about the same size,
since rows that come often are one row with a weight. While the rows fit, they stay in memory. What is more is added up
as far as it goes, sorted by bucket, and appended to a file; at the end buckets are read one by one.

The file is an Arrow IPC file (lz4) in a temporary folder, with the columns of the rows, ``_weight`` last. Each of its
batches has rows of one bucket; a list in memory says which.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.change import WEIGHT, ChangeBatch
from headwater.base.scratch import scratch_parent

__all__ = ["ROW_BYTES", "Difference", "difference_of"]

Buckets = npt.NDArray[np.int64]
ROW_BYTES = 100
"""What adding rows up takes for each, beside the rows themselves: codes, hash tables and permutations."""

_BUCKETS = 64
_MEMORY_BYTES = 128 << 20
_WEIGHT_FIELD = pa.field(WEIGHT, pa.int64(), nullable=False)


class Difference:
    """Weighted rows, of which equal ones are added up. Use it as a ``with`` block; the files are gone after it.

    Parameters
    ----------
    schema
        of the rows, without weights
    buckets
        among how many numbers `add` chooses
    memory_bytes
        how much is kept in memory before it goes to a file
    """

    def __init__(self, schema: pa.Schema, *, buckets: int, memory_bytes: int) -> None:
        self._schema = schema.append(_WEIGHT_FIELD)
        self._buckets = buckets
        self._memory_bytes = memory_bytes
        self._held: list[tuple[pa.Table, Buckets]] = []
        self._held_bytes = 0
        self._exits = ExitStack()
        self._writer: pa.RecordBatchFileWriter | None = None
        self._path: Path | None = None
        self._written: dict[int, list[int]] = {}
        self._batches = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    @property
    def spilled(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def add(self, rows: pa.Table, weights: npt.NDArray[np.int64], buckets: Buckets) -> None:
        """Add rows, each with its weight and the bucket that its hash names."""
        if not rows.num_rows:
            return
        columns = [*rows.columns, pa.chunked_array([pa.array(weights)])]
        self._held.append((pa.Table.from_arrays(columns, schema=self._schema), buckets))
        self._held_bytes += _size(self._held[-1][0])
        if self._held_bytes > self._memory_bytes:
            self._shrink()

    def _shrink(self) -> None:
        """Add up what is held; where that leaves much, write it down."""
        table, buckets = self._together()
        self._held, self._held_bytes = [(table, buckets)], _size(table)
        if self._held_bytes > self._memory_bytes // 2:
            self._write(table, buckets)
            self._held, self._held_bytes = [], 0

    def _together(self) -> tuple[pa.Table, Buckets]:
        table = pa.concat_tables([t for t, _ in self._held])
        buckets = np.concatenate([b for _, b in self._held])
        rows = table.remove_column(table.num_columns - 1)
        codes = rowkey.row_codes(rows)
        totals = np.zeros(codes.bound, dtype=np.int64)
        np.add.at(totals, codes.ids, table.column(table.num_columns - 1).to_numpy())
        keep = totals != 0
        first = codes.first_rows()[keep]
        kept = rowkey.take_rows(rows, first)
        weighted = pa.Table.from_arrays(
            [*kept.columns, pa.chunked_array([pa.array(totals[keep])])], schema=self._schema
        )
        return weighted, buckets[first]

    def _write(self, table: pa.Table, buckets: Buckets) -> None:
        if self._writer is None:
            folder = tempfile.TemporaryDirectory(dir=scratch_parent(), prefix="headwater-difference-")
            self._path = Path(self._exits.enter_context(folder)) / "rows.arrow"
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = self._exits.enter_context(pa.ipc.new_file(self._path, self._schema, options=options))
        order = np.argsort(buckets, kind="stable")
        table = rowkey.take_rows(table, order).combine_chunks()
        counts = np.bincount(buckets, minlength=self._buckets)
        start = 0
        for bucket in np.flatnonzero(counts).tolist():
            count = int(counts[bucket])
            for batch in table.slice(start, count).to_batches():
                self._writer.write_batch(batch)
                self._written.setdefault(bucket, []).append(self._batches)
                self._batches += 1
            start += count

    def buckets(self) -> Iterator[ChangeBatch]:
        """The difference, bucket by bucket, consolidated; buckets of which nothing is left are not given.

        It can be read several times, in the same order; nothing can be added any more.
        """
        if not self.spilled:
            if self._held:
                yield from _unless_empty(self._together()[0])
            return
        if self._held:
            self._write(*self._together())
            self._held = []
        assert self._writer is not None, "there is a file"
        self._writer.close()
        # Read, not mapped: pages of a mapped file would count as memory of the process.
        with pa.OSFile(str(self._path)) as source, pa.ipc.open_file(source) as file:
            for numbers in self._written.values():
                parts = [file.get_batch(number) for number in numbers]
                yield from _unless_empty(pa.Table.from_batches(parts, self._schema))


def _size(table: pa.Table) -> int:
    return int(table.nbytes) + ROW_BYTES * int(table.num_rows)


def _unless_empty(table: pa.Table) -> Iterator[ChangeBatch]:
    found = ChangeBatch.from_table(table).consolidate()
    if found.num_rows:
        yield found


def difference_of(old: pa.RecordBatchReader, new: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """What turns one stream of rows into another, bit for bit, with a weight for each row.

    >>> found = difference_of(pa.table({"x": [1, 2]}).to_reader(), pa.table({"x": [2, 3]}).to_reader())
    >>> sorted((row["x"], row["_weight"]) for row in found.read_all().to_pylist())
    [(1, -1), (3, 1)]
    """
    from headwater.derived.digest import RowHash  # with kernels, which most processes never need

    schema = pa.schema([pa.field(f.name, rowkey.plain_type(f.type)) for f in new.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        hashed = RowHash(schema)
        with Difference(schema, buckets=_BUCKETS, memory_bytes=_MEMORY_BYTES) as difference:
            for stream, weight in ((old, -1), (new, 1)):
                for batch in stream:
                    columns = [batch.column(f.name).cast(f.type) for f in schema]
                    plain = pa.RecordBatch.from_arrays(columns, schema=schema)
                    lanes = hashed.exact_lanes(plain, hashed.plain_lanes(plain))
                    places = (lanes[:, 1] & np.uint64(_BUCKETS - 1)).astype(np.int64)
                    rows = pa.Table.from_batches([plain])
                    difference.add(rows, np.full(plain.num_rows, weight, dtype=np.int64), places)
            for change in difference.buckets():
                yield from change.table.to_batches()

    return pa.RecordBatchReader.from_batches(schema.append(_WEIGHT_FIELD), batches())
