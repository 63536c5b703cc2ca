"""Partitions: a run made of many rows that come in pieces, without ever holding them twice.

A step sorts what it is given at once. Of a whole table that would be a matrix of all rows, another one that is divided
by hash, and a third that is sorted. Here rows go to one of up to 1,024 partitions by the top bits of their hash, as
they come, and each partition is sorted while it lies in the cache (`headwater.kernels.partition`), on as many threads
as there are. Partitions are ranges of hashes: one after the other they are the run. With a store it is written to a
file as it is made, and mapped.

What lies in partitions is memory of the process up to a budget, and beyond that a file without a name, whose pages the
system can put away. The blocks of a partition are given back when it is sorted.

Invariant: the run is that of `Run.of` of all rows together, byte for byte.
"""

from __future__ import annotations

import itertools
import mmap
import os
import tempfile
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from headwater.base import settings
from headwater.base.errors import ConstraintError
from headwater.base.pools import pool
from headwater.base.storage.local import translated
from headwater.incremental import spill
from headwater.incremental.run import NO_HEAP, Run, directory_bits
from headwater.incremental.run_merge import Sections, finished, reserve
from headwater.incremental.run_narrow import is_narrowed
from headwater.incremental.zset import ZSet, concatenate
from headwater.kernels.arrays import Directory
from headwater.kernels.consolidate import LINE, OVERFLOW
from headwater.kernels.merge import index_run, long_bytes, own_strings
from headwater.kernels.partition import scatter, sort_partition

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.run_header import Header

__all__ = ["Partitions", "RunMaker"]

_BLOCK = 1 << 16
_SLAB = 64  # blocks
_MOST_BLOCKS = 1 << 14  # of a slab: a gigabyte
_PIECE = 1 << 17  # words of a partition: it and its copy stay in the cache of a core
_FEWEST_BITS, _MOST_BITS = 4, 10
_SHARE = 2  # of the budget of state
_FEW_ROWS = 65_536
"""So many rows are sorted at once."""

Words = npt.NDArray[np.int64]


class RunMaker(Protocol):
    """Where runs are made in files: a store."""

    def make(self, layout: Layout, how: Callable[[int], Header]) -> Run:
        """The run in a new file, which ``how`` fills."""


class _Arena:
    """Blocks in memory that does not move, each of which belongs to a partition."""

    def __init__(self, partitions: int, per_block: int) -> None:
        self._slabs: list[mmap.mmap] = []
        self._firsts = [0]
        """The number of the first block of each slab, and of the next one."""
        self.blocks = np.zeros(0, dtype=np.int64)
        self.owner = np.zeros(0, dtype=np.int32)
        self.current = np.zeros(partitions, dtype=np.int64)
        self.fill = np.full(partitions, per_block, dtype=np.int64)
        self.used = np.zeros(2, dtype=np.int64)
        self._budget = spill.budget_bytes() // _SHARE

    def grow(self) -> None:
        """Have room for more blocks."""
        held = self._firsts[-1]
        count = _SLAB
        if held * _BLOCK < self._budget:
            slab = mmap.mmap(-1, count * _BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:  # a mapping keeps a file open: there are few, and large ones
            count = min(max(_SLAB, held), _MOST_BLOCKS)
            slab = _filed(count * _BLOCK)
        first = np.frombuffer(slab, dtype=np.int64).__array_interface__["data"][0]
        self._slabs.append(slab)
        self._firsts.append(held + count)
        self.blocks = np.concatenate([self.blocks, first + _BLOCK * np.arange(count, dtype=np.int64)])
        self.owner = np.concatenate([self.owner, np.zeros(count, dtype=np.int32)])
        self.used[1] += count

    def release(self, own: npt.NDArray[np.int64]) -> None:
        """Give blocks back to the system that were read."""
        advice = getattr(mmap, "MADV_DONTNEED", None)
        if advice is None:
            return
        for number in own.tolist():
            slab = bisect_right(self._firsts, number) - 1
            with suppress(OSError, ValueError):
                self._slabs[slab].madvise(advice, (number - self._firsts[slab]) * _BLOCK, _BLOCK)


def _filed(size: int) -> mmap.mmap:
    """Memory that is a file's, so that the system can put it away."""
    folder = spill.spill_folder()
    with translated(folder, "rows of a state that is being built"), tempfile.TemporaryFile(dir=folder) as file:
        reserve(file.fileno(), size)
        return mmap.mmap(file.fileno(), size)


class Partitions:
    """The rows of a run that is to be.

    Parameters
    ----------
    layout : Layout
    expected : int
        about how many rows come
    fitting : bool
        is the directory for the rows that are left, however many came? So is that of a run of consolidated rows

    >>> import pyarrow as pa
    >>> from headwater.incremental.layout import Layout
    >>> layout = Layout(pa.schema([("id", pa.int64())]), keys=1)
    >>> partitions = Partitions(layout, 3)
    >>> for ids in ([3, 1], [3]):
    ...     partitions.feed(ZSet.packed(layout, pa.table({"id": ids})))
    >>> len(partitions), len(partitions.finish())
    (3, 2)
    """

    def __init__(self, layout: Layout, expected: int, *, fitting: bool = False) -> None:
        self.layout = layout
        self._fitting = fitting
        words = max(1, expected) * (layout.width + 1)
        self._bits = max(_FEWEST_BITS, min(_MOST_BITS, (words // _PIECE).bit_length()))
        self._per_block = _BLOCK // (8 * (layout.width + 1))
        self._few: list[ZSet] = []
        self._arena: _Arena | None = None
        self._owners: dict[int, object] = {}
        self._rows = self._long = 0

    def __len__(self) -> int:
        """How many rows came."""
        return self._rows

    def feed(self, rows: ZSet) -> None:
        """Take rows in."""
        n = len(rows.rows)
        if not n:
            return
        self._rows += n
        if self._arena is None and (self._rows <= _FEW_ROWS or not self._per_block):
            self._few.append(rows)
            return
        if self._arena is None:
            self._bits = min(self._bits, directory_bits(self._rows))  # a partition is some entries of the directory
            self._arena = _Arena(1 << self._bits, self._per_block)
            few, self._few = self._few, []
            for some in few:
                self._scatter(self._arena, some)
        self._scatter(self._arena, rows)

    def _scatter(self, arena: _Arena, rows: ZSet) -> None:
        if len(self.layout.slots):
            size = long_bytes(rows.rows, self.layout.slots)
            if size:
                self._long += size
                self._owners |= {id(o): o for o in rows.owners}
        at, n = 0, len(rows.rows)
        hashes = rows.hashes
        while at < n:
            at = scatter(
                rows.rows,
                hashes,
                self._bits,
                self._per_block,
                arena.blocks,
                arena.current,
                arena.fill,
                arena.owner,
                arena.used,
                at,
            )
            if at < n:
                arena.grow()

    def finish(self, store: RunMaker | None = None) -> Run:
        """The run of all rows: in a file of the store, or in memory if there is none or there are few. Nothing is
        here afterwards.
        """
        if self._arena is None:
            few, self._few = self._few, []
            hashes = np.concatenate([z.hashes for z in few]) if few else None
            whole = concatenate(few, self.layout)
            rows = ZSet(self.layout, whole.rows, whole.owners, hashes=hashes)
            return Run.of(rows.consolidate() if self._fitting else rows)
        # What a checkpoint will write in fewer bytes, and later refreshes have in memory, is not left in a file.
        if store is None or is_narrowed(self._rows):
            return self._in_memory()
        run = store.make(self.layout, self._to_file)
        return _copied(run) if is_narrowed(len(run)) else run

    def _in_memory(self) -> Run:
        bits = directory_bits(self._rows)
        hashes = np.empty(self._rows, dtype=np.uint64)
        rows = np.empty((self._rows, self.layout.width), dtype=np.int64)
        heap = np.empty(self._long, dtype=np.uint8) if self._long else NO_HEAP
        directory = np.empty((1 << bits) + 1, dtype=np.int32)
        count, used = self._sorted_into(bits, hashes, rows, heap, directory)
        if count < len(hashes):
            hashes, rows = hashes[:count].copy(), rows[:count].copy()
        if used < heap.size and self._long:
            heap = heap[:used].copy()
        final = self._final_bits(bits, count, used)
        if final != bits:
            directory = np.empty((1 << final) + 1, dtype=np.int32)
            index_run(hashes, rows, heap, final, directory, np.empty(LINE, dtype=np.int64))
        return Run(self.layout, hashes, rows, heap, directory, final)

    def _to_file(self, fd: int) -> Header:
        layout = self.layout
        room = Sections(layout, self._rows, self._long, directory_bits(self._rows))
        reserve(fd, room.end)
        memory = mmap.mmap(fd, room.end)
        rows = room.array(memory, 0, np.int64).reshape(room.rows, layout.width)
        heap = room.array(memory, 2, np.uint8) if self._long else NO_HEAP
        hashes, directory = room.array(memory, 1, np.uint64), room.array(memory, 3, np.int32)
        count, used = self._sorted_into(room.bits, hashes, rows, heap, directory)
        bits = self._final_bits(room.bits, count, used)
        header = finished(memory, layout, room, Sections(layout, count, used, bits), rebuild=bits != room.bits)
        os.ftruncate(fd, header.length)
        return header

    def _sorted_into(
        self, bits: int, hashes: npt.NDArray[np.uint64], rows: Words, heap: npt.NDArray[np.uint8], directory: Directory
    ) -> tuple[int, int]:
        """Write the consolidated rows of all partitions; give how many they are, and how many bytes of heap."""
        each = 1 << (bits - self._bits)
        count = used = 0
        for p, (own_hashes, own, seen) in enumerate(self._pieces(bits, directory)):
            if seen == OVERFLOW:
                raise ConstraintError.weight_overflow()
            n = len(own)
            if self._long:
                used = self._with_strings(own, heap, used)
            hashes[count : count + n] = own_hashes
            rows[count : count + n] = own
            directory[each * p : each * (p + 1)] += count
            count += n
        directory[1 << bits] = count
        self._arena = None
        self._owners = {}
        return count, used

    def _final_bits(self, bits: int, count: int, used: int) -> int:
        """How large the directory is, as `Run.made` has it: made anew where much cancelled out, or where there is a
        heap.
        """
        right = directory_bits(count)
        return right if used or self._fitting or bits > right + 2 else bits

    def _with_strings(self, rows: Words, heap: npt.NDArray[np.uint8], used: int) -> int:
        """Copy long strings behind those that the heap has; rows have their distances from its beginning."""
        slots = self.layout.slots
        size = long_bytes(rows, slots)
        if not size:
            return used
        own_strings(rows, slots, heap[used : used + size])
        for slot in slots if used else ():
            rows[(rows[:, slot] & 0xFFFFFFFF) > 12, slot + 1] += used
        return used + size

    def _pieces(self, bits: int, directory: Directory) -> Iterator[tuple[npt.NDArray[np.uint64], Words, int]]:
        """The sorted rows of each partition, in the order of the partitions, made by several threads a little ahead."""
        arena = self._arena
        assert arena is not None
        partitions = 1 << self._bits
        owner = arena.owner[: arena.used[0]]
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(partitions + 1))
        layout, each = self.layout, 1 << (bits - self._bits)

        def sorted_piece(p: int) -> tuple[npt.NDArray[np.uint64], Words, int]:
            own = order[starts[p] : starts[p + 1]]
            n = (len(own) - 1) * self._per_block + int(arena.fill[p]) if len(own) else 0
            out_hashes, out = np.empty(n, dtype=np.uint64), np.empty((n, layout.width), dtype=np.int64)
            count, _ = sort_partition(
                arena.blocks[own],
                self._per_block,
                int(arena.fill[p]) if n else 0,
                layout.sort_parts,
                layout.payload,
                bits,
                each * p,
                each * (p + 1),
                np.empty(n, dtype=np.uint64),
                np.empty((n, layout.width), dtype=np.int64),
                out_hashes,
                out,
                directory,
            )
            arena.release(own)
            return (out_hashes, out, OVERFLOW) if count == OVERFLOW else (out_hashes[:count], out[:count], 0)

        threads = settings.current().worker_threads
        if threads < 2:
            yield from map(sorted_piece, range(partitions))
            return
        workers = pool("partitions", threads)
        ahead: deque[Future[tuple[npt.NDArray[np.uint64], Words, int]]] = deque()
        numbers = iter(range(partitions))
        try:
            for p in itertools.islice(numbers, threads + 1):
                ahead.append(workers.submit(sorted_piece, p))
            while ahead:
                found = ahead.popleft().result()
                for p in itertools.islice(numbers, 1):
                    ahead.append(workers.submit(sorted_piece, p))
                yield found
        finally:
            for future in ahead:
                future.cancel()


def _copied(run: Run) -> Run:
    """The same run in memory."""
    heap = run.heap if run.heap is NO_HEAP else run.heap.copy()
    return Run(run.layout, run.hashes.copy(), run.rows.copy(), heap, run.directory.copy(), run.bits, most=run.most)
