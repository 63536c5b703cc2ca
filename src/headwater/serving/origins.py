"""Origins: which row of which data file of the source each record of a base was made of.

A deletion vector says which rows of a file died, by their positions. Reading the keys of these rows from the file costs
what the row groups hold in which they lie, which is the whole key column where a few rows died all over a table. But
the base has those keys already. It is written in the order in which the source is read, so a few *runs* say where: so
many rows of a file, from a position on, are so many records, from a number on. A file without deleted rows is one run.

Data files never change, so what a run says stays true, whatever has become of the row: the key of a record is the key
that the row has in its file. A row that no run covers came later, or was moved to another file (OPTIMIZE); its key is
read from the file.

The runs lie in the base's own file (`record_file`), as an Arrow stream of one batch, a row per data file::

    path     string         as the log of the source has it
    start    list<int64>    the first position of each run, ascending
    length   list<int64>    its rows
    record   list<int64>    the number of its first record, ascending from run to run and from file to file
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["KeptRecords", "Origins"]

Numbers = np.ndarray[Any, np.dtype[np.int64]]
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Origins:
    """The runs of a base. Those of the file ``paths[k]`` are the ones from ``first[k]`` to ``first[k + 1]``."""

    paths: tuple[str, ...]
    first: Numbers
    start: Numbers
    length: Numbers
    record: Numbers

    @classmethod
    def of_runs(
        cls, paths: tuple[str, ...], file: Numbers, start: Numbers, length: Numbers, record: Numbers
    ) -> Origins:
        """From runs in the order of their records, each with the number of its file; those that adjoin become one."""
        if len(start):
            ends, records = start + length, record + length
            apart = (file[1:] != file[:-1]) | (start[1:] != ends[:-1]) | (record[1:] != records[:-1])
            at = np.flatnonzero(np.concatenate([[True], apart]))
            file, start, record, length = file[at], start[at], record[at], np.add.reduceat(length, at)
        return cls(paths, np.searchsorted(file, np.arange(len(paths) + 1)), start, length, record)

    @classmethod
    def read(cls, data: pa.Buffer) -> Origins:
        """The inverse of `to_buffer`; the runs are a view of the buffer."""
        batch = pa.ipc.open_stream(data).read_next_batch()
        lists = [batch.column(name) for name in ("start", "length", "record")]
        runs = (one.values.to_numpy() for one in lists)
        return cls(tuple(batch.column("path").to_pylist()), lists[0].offsets.to_numpy().astype(np.int64), *runs)

    def to_buffer(self) -> pa.Buffer:
        """As it lies in a file."""
        offsets = pa.array(self.first.astype(np.int32))
        lists = [pa.ListArray.from_arrays(offsets, pa.array(one)) for one in (self.start, self.length, self.record)]
        paths = pa.array(self.paths, pa.string())
        batch = pa.RecordBatch.from_arrays([paths, *lists], ["path", "start", "length", "record"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        return sink.getvalue()

    def find(self, path: str, rows: Numbers) -> Numbers | None:
        """The records that were made of some rows of a file; None unless all of them are known."""
        try:
            file = self.paths.index(path)
        except ValueError:
            return None
        here = slice(self.first[file], self.first[file + 1])
        start = self.start[here]
        run = np.searchsorted(start, rows, "right") - 1
        if not len(start) or (run < 0).any():
            return None
        into = rows - start[run]
        if (into >= self.length[here][run]).any():
            return None
        found: Numbers = self.record[here][run] + into
        return found


class KeptRecords:
    """Notes, while the records of a base are copied to a newer one, which of them become which."""

    def __init__(self) -> None:
        self._runs: list[tuple[Numbers, Numbers, Numbers]] = []

    def note(self, numbers: Numbers, first: int) -> None:
        """Some records, in ascending order, become those from ``first`` on."""
        begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) != 1)
        self._runs.append((numbers[begins], np.diff(begins, append=len(numbers)), begins + first))

    def origins(self, before: Origins) -> Origins:
        """Those of the newer base."""
        if not self._runs or not len(before.start):
            return Origins.of_runs((), _NONE, _NONE, _NONE, _NONE)
        old, length, new = (np.concatenate(column) for column in zip(*self._runs, strict=True))
        file = np.repeat(np.arange(len(before.paths)), np.diff(before.first))
        sides = [before.record, before.record + before.length, old, old + length]
        cuts = np.unique(np.concatenate(sides))  # between two of them, records are of one run and become one run
        begin, count = cuts[:-1], np.diff(cuts)
        run, kept = (np.searchsorted(of, begin, "right") - 1 for of in (before.record, old))
        there = (run >= 0) & (kept >= 0)
        there &= (begin < sides[1][run]) & (begin < sides[3][kept])
        begin, count, run, kept = begin[there], count[there], run[there], kept[there]
        start = before.start[run] + begin - before.record[run]
        return Origins.of_runs(before.paths, file[run], start, count, new[kept] + begin - old[kept])
