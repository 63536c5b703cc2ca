"""Merging two runs into a file, without holding the result in memory.

The file is made as large as the result can become, mapped, and the kernel merges into it: what it writes are pages of
the file, which the system can put away at any time. Where rows cancelled out, the sections behind them move down, and
the file is cut. The rows come first in the file, so that what moves is small.

The space is reserved before anything is written to it: to a mapped page for which the disk has no room the answer would
be the end of the process, and not an error. The format is that of `headwater.incremental.run_file`.
"""

from __future__ import annotations

import mmap
import os
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.base import faults
from headwater.incremental.run import NO_HEAP, NO_RUNS, Bound, Run, directory_bits, merge_into
from headwater.incremental.run_header import Header, aligned, header_of, header_size
from headwater.kernels.filter import WORDS, fill_filter, filter_blocks
from headwater.kernels.merge import index_run

if TYPE_CHECKING:
    import numpy.typing as npt

    from headwater.incremental.layout import Layout

__all__ = ["Sections", "finished", "merge_to_file", "reserve"]

_WORD = 8


def merge_to_file(left: Run, right: Run, bound: Bound | None, fd: int) -> Header:
    """Write the sum of two runs to a file that is open and empty, without flushing it."""
    layout = left.layout
    most = len(left) + len(right)
    heap = sum(run.heap.size for run in (left, right) if run.heap is not NO_HEAP)
    room = Sections(layout, most, heap, directory_bits(most))
    reserve(fd, room.end)
    memory = mmap.mmap(fd, room.end)
    count, used = _merged(memory, room, left, right, bound)
    faults.point("state.merge.merged")
    bits = directory_bits(most) if count >= most * 3 // 4 else directory_bits(count)
    final = Sections(layout, count, used, bits)
    header = finished(memory, layout, room, final, rebuild=bits != room.bits)
    os.ftruncate(fd, header.length)
    return header


class Sections:
    """Where the sections stand in a file of so many rows."""

    def __init__(self, layout: Layout, rows: int, heap: int, bits: int) -> None:
        self.rows = rows
        self.bits = bits
        self.lengths = [
            _WORD * rows * layout.width,
            _WORD * rows,
            heap,
            4 * ((1 << bits) + 1),
            _WORD * WORDS * filter_blocks(rows),
        ]
        self.offsets = []
        self.end = header_size(layout.fingerprint)
        for length in self.lengths:
            self.offsets.append(self.end)
            self.end += aligned(length)

    def array(self, memory: mmap.mmap, section: int, dtype: type[np.generic]) -> Any:
        """A section as numpy sees it."""
        size = np.dtype(dtype).itemsize
        return np.frombuffer(memory, dtype, self.lengths[section] // size, self.offsets[section])


def reserve(fd: int, size: int) -> None:
    """Make a file so long, with room on the disk for all of it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:  # macOS
        os.ftruncate(fd, size)


def _merged(memory: mmap.mmap, room: Sections, left: Run, right: Run, bound: Bound | None) -> tuple[int, int]:
    layout = left.layout
    rows = room.array(memory, 0, np.int64).reshape(room.rows, layout.width)
    heap = room.array(memory, 2, np.uint8) if room.lengths[2] else np.empty(1, dtype=np.uint8)
    directory = room.array(memory, 3, np.int32)
    line: npt.NDArray[np.int64] = np.empty_like(left.line)
    hashes = room.array(memory, 1, np.uint64)
    return merge_into(left, right, bound, room.bits, hashes, rows, heap, directory, line)


def finished(memory: mmap.mmap, layout: Layout, room: Sections, final: Sections, *, rebuild: bool) -> Header:
    """Move the sections to where they belong, add the filter, and write the header."""
    for section in (1, 2) if rebuild else (1, 2, 3):
        if final.offsets[section] != room.offsets[section]:
            memory.move(final.offsets[section], room.offsets[section], final.lengths[section])
    rows = final.array(memory, 0, np.int64).reshape(final.rows, layout.width)
    hashes = final.array(memory, 1, np.uint64)
    if rebuild:
        line = np.empty(NO_RUNS.shape[1], dtype=NO_RUNS.dtype)
        index_run(hashes, rows, NO_HEAP, final.bits, final.array(memory, 3, np.int32), line)
    words = final.array(memory, 4, np.uint64)
    words[:] = 0
    fill_filter(hashes, words)
    checksums = []
    with memoryview(memory) as view:
        for offset, length in zip(final.offsets, final.lengths, strict=True):
            view[offset + length : offset + aligned(length)] = bytes(aligned(length) - length)
            with view[offset : offset + aligned(length)] as piece:
                checksums.append(zlib.crc32(piece))
    header = header_of(layout, rows, hashes, final.bits, final.lengths, checksums)
    memory[: header.size] = header.encode()
    return header
