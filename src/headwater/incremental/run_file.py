"""Run files: a run on disk, mapped into memory as it is.

One file holds one run, and never changes. Opening it reads the header and maps the rest, so that it takes the same time
whatever the size; kernels read the sections where the system has them. The format, little-endian::

    offset  bytes
    0       8     magic: "HWRUN" CR LF SUB
    8       4     format version: 1, or 2 or 3 for a run whose rows are narrow
    12      4     version of the hash (`headwater.kernels.hash`)
    16      8     length of the file
    24      8     number of rows
    32      4     words in a row
    36      4     words of its payload
    40      4     bits of the directory
    44      4     length of the header: a multiple of 64
    48      16    least and greatest hash
    64      16    least and greatest value of the first part of the order, signed
    80      8     a number that no weight exceeds, taken positive
    88      4     1 if the range of the order is known: it begins with a word, and there are rows
    92      4     number of sections: 5
    96      24 each  sections: offset (8), length (8), CRC-32 (4), zero (4)
    216     4     length of the fingerprint
    220     ...   the layout's fingerprint as UTF-8, then zeros
    last 4        CRC-32 of the header before it

The sections follow in this order, each at a multiple of 64 and filled up with zeros to one, without other gaps:

1. rows: `words in a row` signed 64-bit words each, sorted by (hash, key, order, rest);
2. hashes: an unsigned 64-bit word a row;
3. heap: the bytes of strings of more than 12 bytes, which rows refer to by their distance from its beginning;
4. directory: 2^bits + 1 signed 32-bit positions (`headwater.kernels.merge`);
5. filter: blocks of 64 bytes (`headwater.kernels.filter`).

In versions 2 and 3 the rows are stored as `headwater.incremental.run_narrow` says, and the other sections are empty:
such a run is read into memory, and they are computed from its rows. Version 3 may also have a heap, which is
compressed.

A file is valid iff magic, versions and the header's checksum are right, its length is the one stated, and the checksum
of each section, taken with its filling, is right. So every byte counts. The header and the length are checked when a
file is opened, the sections by `verify`, which happens when it is first merged: kernels trust what they read, so who
doubts a file verifies it first.
"""

from __future__ import annotations

import mmap
import os
import sys
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwater.base.errors import CorruptionError
from headwater.incremental.run import NO_HEAP, Run, RunHandle
from headwater.incremental.run_header import ALIGNMENT, NAMES, Header, aligned, damaged, header_of, read_header
from headwater.incremental.run_narrow import compressed, decompressed, is_narrowed, narrowed, widened
from headwater.kernels.filter import WORDS, fill_filter, filter_blocks

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout

__all__ = ["RunFile", "write_narrow", "write_run"]

_SMALL = 1 << 18
_ONE_CALL = 1 << 24
_ZEROS = b"\0" * ALIGNMENT


def write_run(run: Run, fd: int) -> Header:
    """Write a run to a file that is open and empty, without flushing it."""
    words = np.zeros(filter_blocks(len(run)) * WORDS, dtype=np.uint64)
    fill_filter(run.hashes, words)
    heap = run.heap if run.heap.size > NO_HEAP.size else NO_HEAP[:0]
    return _written(run, fd, [_bytes(a) for a in (run.rows, run.hashes, heap, run.directory, words)], 1)


def write_narrow(run: Run, fd: int) -> Header:
    """The same, in fewer bytes if it is a run for that."""
    if not is_narrowed(len(run)):
        return write_run(run, fd)
    heap = compressed(run.heap) if run.heap.size > NO_HEAP.size else b""
    pieces = [narrowed(run.rows), b"", heap, b"", b""]
    return _written(run, fd, [memoryview(piece) for piece in pieces], 3)


def _written(run: Run, fd: int, pieces: Sequence[memoryview], version: int) -> Header:
    checksums = [zlib.crc32(_filling(p), zlib.crc32(p)) for p in pieces]
    lengths = [len(p) for p in pieces]
    header = header_of(run.layout, run.rows, run.hashes, run.bits, lengths, checksums, version=version)
    everything = [header.encode(), *(part for piece in pieces for part in (piece, _filling(piece)))]
    if header.length > _ONE_CALL or os.writev(fd, everything) != header.length:
        os.lseek(fd, 0, os.SEEK_SET)
        for part in everything:
            _write(fd, part)
    return header


def _bytes(array: npt.NDArray[np.generic]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _filling(piece: memoryview) -> bytes:
    return _ZEROS[: aligned(len(piece)) - len(piece)]


def _write(fd: int, piece: bytes | memoryview) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(fd, left) :]  # one call writes at most 2 GiB


class RunFile(RunHandle):
    """A run file that was opened: its header, and its name."""

    __slots__ = ("_verified",)

    def __init__(self, path: str, header: Header, *, synced: bool = True) -> None:
        super().__init__(path, header, synced=synced)
        self._verified = False

    @classmethod
    def read(cls, path: str) -> RunFile:
        """Read and check the header."""
        with _opened(path) as f:
            return cls(path, read_header(f.fileno(), path))

    def open(self, layout: Layout) -> Run:
        """The run in it: mapped, or read if it is small."""
        header = self.header
        if header.fingerprint != layout.fingerprint or (header.width, header.payload) != (layout.width, layout.payload):
            raise CorruptionError.other_layout(self.name, header.fingerprint, layout.fingerprint, self.folder)
        with _opened(self.path) as f:
            if os.fstat(f.fileno()).st_size != header.length:
                raise damaged(self.path, "its length has changed")
            if header.version > 1:
                return self._opened_narrow(f.read(), layout)
            small = header.length <= _SMALL
            # On Python 3.13 a mapping need not keep a file descriptor.
            options = {"trackfd": False} if sys.version_info >= (3, 13) else {}
            memory: Any = (
                bytearray(f.read())
                if small
                else mmap.mmap(f.fileno(), header.length, access=mmap.ACCESS_READ, **options)
            )
        if small:
            self._check(memory)
        rows, hashes, heap, directory, words = (
            _window(memory, s.offset, s.length // size, dtype)
            for s, size, dtype in zip(
                header.sections, (8, 8, 1, 4, 8), ("<i8", "<u8", "|u1", "<i4", "<u8"), strict=True
            )
        )
        if not small and hasattr(memory, "madvise") and hasattr(mmap, "MADV_WILLNEED"):
            first = header.sections[-1].offset // mmap.PAGESIZE * mmap.PAGESIZE
            memory.madvise(mmap.MADV_WILLNEED, first, header.length - first)
        run = Run(
            layout,
            hashes,
            rows.reshape(header.rows, header.width),
            heap if heap.size else NO_HEAP,
            directory,
            header.bits,
            file=self,
            mapped=not small,
            most=header.most,
        )
        if not small:
            run.line[6:8] = (words.__array_interface__["data"][0], words.size // WORDS)
        return run

    def _opened_narrow(self, data: bytes, layout: Layout) -> Run:
        self._check(data)
        header = self.header
        stored, packed = (data[s.offset : s.offset + s.length] for s in (header.sections[0], header.sections[2]))
        rows = widened(stored, header.rows, header.width)
        heap = decompressed(packed) if packed else NO_HEAP
        if rows is None or heap is None:
            raise damaged(self.path, "its rows do not fit")
        return Run.stored(layout, rows, heap, file=self, most=header.most)

    def verify(self) -> None:
        """Check every byte of the file; only the first time, unless it fails."""
        if self._verified:
            return
        with _opened(self.path) as f:
            if read_header(f.fileno(), self.path) != self.header:
                raise damaged(self.path, "its header has changed")
            with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                self._check(memory)

    def _check(self, memory: Any) -> None:
        view = memoryview(memory)
        try:
            for name, section in zip(NAMES, self.header.sections, strict=True):
                with view[section.offset : section.offset + aligned(section.length)] as piece:
                    if zlib.crc32(piece) != section.checksum:
                        raise damaged(self.path, f"the checksum of its {name} is wrong")
        finally:
            view.release()
        self._verified = True

    def __repr__(self) -> str:
        return f"RunFile({self.name}, {self.header.rows} rows)"


def _opened(path: str) -> Any:
    try:
        return open(path, "rb")
    except (FileNotFoundError, IsADirectoryError) as e:
        raise damaged(path, "it is missing") from e


class _Window:
    """An array over mapped memory that says it may be written to, although the system would not let it.

    numba compiles kernels for arrays that may be written to; for others it would compile all of them once more.
    """

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: Any, offset: int, length: int, dtype: str) -> None:
        address = np.frombuffer(memory, dtype=np.uint8).__array_interface__["data"][0]
        self.memory = memory
        self.__array_interface__ = {
            "shape": (length,),
            "typestr": dtype,
            "data": (address + offset, False),
            "version": 3,
        }


def _window(memory: Any, offset: int, length: int, dtype: str) -> Any:
    return np.asarray(_Window(memory, offset, length, dtype))
