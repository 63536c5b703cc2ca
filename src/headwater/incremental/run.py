"""Runs: consolidated Z-sets that do not change any more, with a directory to find a key in.

A run is sorted by (hash, key, order, rest), has its own heap for long strings, and is read by kernels through a line of
addresses. It lies in memory or in a mapped file (`headwater.incremental.run_file`); kernels cannot tell. Because
addition of Z-sets is commutative, any runs of a trace may be merged at any time, without looking at which is older.

Invariants: `rows` is consolidated; long strings are given by their distance in `heap`; nothing is written to after
the constructor.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.base.errors import ConstraintError
from headwater.incremental.zset import Hashes, ZSet
from headwater.kernels.consolidate import LINE, OVERFLOW, weight_bound
from headwater.kernels.hash import hash_rows
from headwater.kernels.merge import NO_BOUND, index_run, long_bytes, merge, own_strings

if TYPE_CHECKING:
    from weakref import finalize

    from headwater.incremental.layout import Layout
    from headwater.incremental.packing import Rows
    from headwater.incremental.run_header import Header

__all__ = [
    "NO_HEAP",
    "NO_RUNS",
    "Bound",
    "Run",
    "RunHandle",
    "address_of",
    "addresses",
    "directory_bits",
    "merge_into",
    "merged",
    "verify",
]

Bytes = npt.NDArray[np.uint8]
Bound = tuple[int, int]
"""A word of the layout, and the least value of it that is still kept."""

NO_RUNS = np.zeros((0, LINE), dtype=np.int64)
_MOST_ROWS = (1 << 31) - 2
_MOST_PARTS = 4
_ALL = slice(None)
NO_HEAP = np.zeros(1, dtype=np.uint8)


class RunHandle:
    """A file that a run is kept in. As long as one of these is alive, its store does not delete the file."""

    __slots__ = ("__weakref__", "_path", "folder", "header", "loose", "name", "synced")

    def __init__(self, path: str, header: Header, *, synced: bool) -> None:
        self.path = path
        self.header = header
        self.synced = synced
        self.loose: finalize[..., RunHandle] | None = None
        """Deletes the file with this object, until a checkpoint names it."""

    @property
    def path(self) -> str:
        """Where the file is: its ``name`` in its ``folder``."""
        return self._path

    @path.setter
    def path(self, path: str) -> None:
        self._path = path
        self.folder, self.name = os.path.split(path)

    def open(self, layout: Layout) -> Run:
        """The run in it: mapped, or read if it is small."""
        raise NotImplementedError

    def verify(self) -> None:
        """Check every byte of the file."""
        raise NotImplementedError


class Origin:
    """Where the rows of a run are kept: in a file, or, while it has none, in those of the runs that it is the sum of.

    So a sum of runs that are kept need not be written at once: a checkpoint may name what it was made of.
    """

    __slots__ = ("file", "parts")

    def __init__(self, file: RunHandle | None) -> None:
        self.file = file
        self.parts: tuple[Origin, ...] = ()

    def files(self) -> tuple[RunHandle, ...]:
        """Files whose sum the run is; none if rows of it are in no file."""
        if self.file is not None:
            return (self.file,)
        found = [part.files() for part in self.parts]
        return tuple(file for some in found for file in some) if all(found) else ()


class Run:
    """A sorted, immutable piece of a trace. Made by `Run.of` and `merged`.

    ``line`` is what kernels read it by; who does not have it yet leaves it out.
    """

    __slots__ = ("bits", "directory", "hashes", "heap", "layout", "line", "mapped", "most", "origin", "rows")

    def __init__(
        self,
        layout: Layout,
        hashes: Hashes,
        rows: Rows,
        heap: Bytes,
        directory: npt.NDArray[np.int32],
        bits: int,
        *,
        file: RunHandle | None = None,
        mapped: bool = False,
        line: npt.NDArray[np.int64] | None = None,
        most: int = -1,
    ) -> None:
        assert len(hashes) <= _MOST_ROWS, "a run counts its rows in 31 bits"
        self.layout = layout
        self.hashes = hashes
        self.rows = rows
        self.heap = heap
        self.directory = directory
        self.bits = bits
        self.origin = Origin(file)
        self.mapped = mapped
        if line is None:
            places = [address_of(hashes), address_of(rows), address_of(heap), address_of(directory)]
            line = np.array([*places, bits, len(hashes), 0, 0], dtype=np.int64)
        self.line = line
        self.most = most if most >= 0 else self.weight_bound()

    @classmethod
    def of(cls, zset: ZSet) -> Run:
        """The run of a Z-set."""
        layout = zset.layout
        if zset.consolidated:
            return cls.sorted(layout, zset.hashes, zset.rows)
        bits = directory_bits(len(zset))
        directory = np.empty((1 << bits) + 1, dtype=np.int32)
        line = np.empty(LINE, dtype=np.int64)
        hashes, rows, most = zset.sorted_into(bits, directory, line)
        return cls.made(layout, hashes, rows, directory, bits, line, most)

    @classmethod
    def made(
        cls,
        layout: Layout,
        hashes: Hashes,
        rows: Rows,
        directory: npt.NDArray[np.int32],
        bits: int,
        line: npt.NDArray[np.int64],
        most: int,
    ) -> Run:
        """The run of what the kernel `headwater.kernels.consolidate.consolidate` made."""
        if bits > directory_bits(len(hashes)) + 2 or (len(layout.slots) and long_bytes(rows, layout.slots)):
            return cls.sorted(layout, hashes, rows)
        line[2] = _NO_HEAP_AT
        # The kernel bounds a weight w by w or, below zero, by -w - 1.
        return cls(layout, hashes, rows, NO_HEAP, directory, bits, line=line, most=most + 1)

    @classmethod
    def sorted(cls, layout: Layout, hashes: Hashes, rows: Rows) -> Run:
        """The run of consolidated rows that flow."""
        heap = NO_HEAP
        if len(layout.slots):
            size = long_bytes(rows, layout.slots)
            if size:
                rows = rows.copy()
                heap = np.empty(size, dtype=np.uint8)
                own_strings(rows, layout.slots, heap)
        bits = directory_bits(len(hashes))
        directory = np.empty((1 << bits) + 1, dtype=np.int32)
        line = np.empty(LINE, dtype=np.int64)
        index_run(hashes, rows, heap, bits, directory, line)
        return cls(layout, hashes, rows, heap, directory, bits, line=line)

    @classmethod
    def stored(cls, layout: Layout, rows: Rows, heap: Bytes, *, file: RunHandle, most: int) -> Run:
        """The run of sorted rows and a heap, as they were stored: hashes and directory are computed."""
        slots = layout.slots if heap is not NO_HEAP else layout.slots[:0]
        for slot in slots:
            rows[_is_long(rows, slot), slot + 1] += address_of(heap)
        hashes = hash_rows(rows, layout.key_parts)
        for slot in slots:
            rows[_is_long(rows, slot), slot + 1] -= address_of(heap)
        bits = directory_bits(len(hashes))
        directory = np.empty((1 << bits) + 1, dtype=np.int32)
        line = np.empty(LINE, dtype=np.int64)
        index_run(hashes, rows, heap, bits, directory, line)
        return cls(layout, hashes, rows, heap, directory, bits, file=file, line=line, most=most)

    @property
    def file(self) -> RunHandle | None:
        """The file that it is kept in."""
        return self.origin.file

    @file.setter
    def file(self, file: RunHandle | None) -> None:
        self.origin.file = file
        self.origin.parts = ()

    @property
    def files(self) -> tuple[RunHandle, ...]:
        """The few files that come to what it is: its own, or those of the runs that it is the sum of;
        none if it has to be written.
        """
        found = self.origin.files()
        return found if len(found) <= _MOST_PARTS else ()

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        """How much memory, or file, it takes."""
        return self.hashes.nbytes + self.rows.nbytes + self.heap.nbytes + self.directory.nbytes

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes that is not a mapped file's."""
        return 0 if self.mapped else self.nbytes

    def weight_bound(self) -> int:
        """What no weight of it exceeds; `most` is that, or after merges something larger."""
        return weight_bound(int(self.line[1]), len(self.hashes), self.layout.width, self.layout.payload) + 1

    def zset(self, part: slice = _ALL) -> ZSet:
        """Its rows, or a part of them, as a Z-set that flows: with addresses for distances,
        and the run as the owner.
        """
        rows = self.rows[part]
        slots = self.layout.slots
        if len(slots) and self.heap is not NO_HEAP:
            rows = rows.copy()
            for slot in slots:
                rows[_is_long(rows, slot), slot + 1] += self.line[2]
        return ZSet(self.layout, rows, (self,), hashes=self.hashes[part], consolidated=True)

    def __repr__(self) -> str:
        return f"Run({len(self)} rows)"


def _is_long(rows: Rows, slot: int) -> npt.NDArray[np.bool_]:
    """Which rows have a string in a slot that is too long for it."""
    found: npt.NDArray[np.bool_] = (rows[:, slot] & 0xFFFFFFFF) > 12
    return found


def directory_bits(rows: int) -> int:
    """How many bits a directory should have for about two rows an entry.

    >>> directory_bits(0), directory_bits(1000)
    (1, 9)
    """
    return max(1, (rows // 2 - 1).bit_length()) if rows > 3 else 1


def merged(runs: Sequence[Run], bound: Bound | None = None) -> Run:
    """The sum of some runs, without rows below the bound."""
    found = _merged(runs, bound)
    found.origin.parts = tuple(run.origin for run in runs)
    return found


def verify(runs: Sequence[Run]) -> None:
    """What is merged loses its checksums, so they are looked at before."""
    for run in runs:
        if run.mapped and run.file is not None:
            run.file.verify()


def _merged(runs: Sequence[Run], bound: Bound | None) -> Run:
    if len(runs) > 2:
        if bound is None and all(run.heap is NO_HEAP for run in runs):
            return _sorted_together(runs)
        return functools.reduce(lambda left, right: _merged([left, right], bound), runs)
    left, right = runs
    layout = left.layout
    size = len(left.hashes) + len(right.hashes)
    hashes = np.empty(size, dtype=np.uint64)
    rows = np.empty((size, layout.width), dtype=np.int64)
    plain = left.heap is NO_HEAP and right.heap is NO_HEAP
    heap = NO_HEAP if plain else np.empty(left.heap.size + right.heap.size, dtype=np.uint8)
    bits = directory_bits(size)
    directory = np.empty((1 << bits) + 1, dtype=np.int32)
    line = np.empty(LINE, dtype=np.int64)
    count, used = merge_into(left, right, bound, bits, hashes, rows, heap, directory, line)
    if count == size and used + 1 >= heap.size:
        return Run(layout, hashes, rows, heap, directory, bits, line=line, most=left.most + right.most)
    if count >= size * 3 // 4 and used >= heap.size * 3 // 4:
        return Run(layout, hashes[:count], rows[:count], heap, directory, bits, line=line, most=left.most + right.most)
    # What cancelled out is given back, where it is worth the copy.
    hashes, rows, heap = hashes[:count].copy(), rows[:count].copy(), heap[:used].copy() if used else NO_HEAP
    bits = directory_bits(count)
    directory = np.empty((1 << bits) + 1, dtype=np.int32)
    index_run(hashes, rows, heap, bits, directory, line)
    return Run(layout, hashes, rows, heap, directory, bits, line=line)


def _sorted_together(runs: Sequence[Run]) -> Run:
    """The sum of several small runs, by sorting all their rows anew: quicker than merging them one after the other."""
    verify(runs)
    hashes = np.concatenate([run.hashes for run in runs])
    return Run.of(ZSet(runs[0].layout, np.concatenate([run.rows for run in runs]), hashes=hashes))


def merge_into(
    left: Run,
    right: Run,
    bound: Bound | None,
    bits: int,
    hashes: Hashes,
    rows: Rows,
    heap: Bytes,
    directory: npt.NDArray[np.int32],
    line: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Merge into arrays that have room for both, wherever they are;
    give how many rows and bytes of heap were filled.
    """
    verify([left, right])
    layout = left.layout
    word, least = bound or (NO_BOUND, 0)
    null_word, null_mask = layout.null_of(word)
    count, used = merge(
        left.line,
        right.line,
        layout.width,
        layout.payload,
        layout.sort_parts,
        layout.slots,
        word,
        least,
        null_word,
        null_mask,
        bits,
        hashes,
        rows,
        heap,
        directory,
        line,
    )
    if count == OVERFLOW:
        raise ConstraintError.weight_overflow()
    return count, used


def addresses(runs: list[Run], *, room: int = 1) -> npt.NDArray[np.int64]:
    """The table by which kernels read several runs, and room for some more lines; the caller keeps the runs."""
    table = np.empty((len(runs) + room, LINE), dtype=np.int64)
    for i, run in enumerate(runs):
        table[i] = run.line
    return table


def address_of(array: npt.NDArray[np.generic]) -> int:
    """Where an array begins."""
    return int(array.__array_interface__["data"][0])


_NO_HEAP_AT = address_of(NO_HEAP)
