"""The header of run files: what a file says of itself, and whether that can be true.

The bytes are specified in `headwater.incremental.run_file`. A header is checked when a file is opened, and if it is
consistent kernels stay within the file, whatever else is wrong with it.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headwater.base.errors import CorruptionError
from headwater.incremental.run_narrow import shortest
from headwater.kernels.consolidate import weight_bound
from headwater.kernels.filter import WORDS, filter_blocks
from headwater.kernels.hash import HASH_VERSION

if TYPE_CHECKING:
    from headwater.incremental.layout import Layout
    from headwater.incremental.packing import Rows
    from headwater.incremental.zset import Hashes

__all__ = [
    "ALIGNMENT",
    "NAMES",
    "VERSION",
    "Header",
    "Section",
    "aligned",
    "damaged",
    "header_of",
    "header_size",
    "read_header",
]

VERSION = 3
ALIGNMENT = 64
NAMES = ("rows", "hashes", "heap", "directory", "filter")
"""The sections of a file."""

_MAGIC = b"HWRUN\r\n\x1a"
_FIXED = struct.Struct("<8sIIQQIIIIQQqqQII")
_SECTION = struct.Struct("<QQII")
_TEXT = _FIXED.size + len(NAMES) * _SECTION.size
_FIRST_READ = 4096
_LONGEST_HEADER = 1 << 24


def aligned(size: int) -> int:
    """The next multiple of the alignment.

    >>> aligned(0), aligned(1), aligned(64)
    (0, 64, 64)
    """
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class Section:
    """Where a section stands, and its checksum."""

    offset: int
    length: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Header:
    """What the beginning of a run file says."""

    rows: int
    width: int
    payload: int
    bits: int
    least_hash: int
    greatest_hash: int
    order: tuple[int, int] | None
    most: int
    fingerprint: str
    sections: tuple[Section, ...]
    hash_version: int = HASH_VERSION
    version: int = 1

    @property
    def size(self) -> int:
        """The length of the header."""
        return header_size(self.fingerprint)

    @property
    def length(self) -> int:
        """The length of the file."""
        last = self.sections[-1]
        return last.offset + aligned(last.length)

    def encode(self) -> bytes:
        """The bytes of it."""
        text = self.fingerprint.encode()
        least, greatest = self.order or (0, 0)
        out = bytearray(self.size)
        _FIXED.pack_into(
            out,
            0,
            _MAGIC,
            self.version,
            self.hash_version,
            self.length,
            self.rows,
            self.width,
            self.payload,
            self.bits,
            self.size,
            self.least_hash,
            self.greatest_hash,
            least,
            greatest,
            self.most,
            int(self.order is not None),
            len(self.sections),
        )
        for i, section in enumerate(self.sections):
            _SECTION.pack_into(
                out, _FIXED.size + i * _SECTION.size, section.offset, section.length, section.checksum, 0
            )
        struct.pack_into("<I", out, _TEXT, len(text))
        out[_TEXT + 4 : _TEXT + 4 + len(text)] = text
        struct.pack_into("<I", out, self.size - 4, zlib.crc32(memoryview(out)[:-4]))
        return bytes(out)


def header_size(fingerprint: str) -> int:
    """How long the header of a file with this fingerprint is."""
    return aligned(_TEXT + 4 + len(fingerprint.encode()) + 4)


def header_of(
    layout: Layout,
    rows: Rows,
    hashes: Hashes,
    bits: int,
    lengths: Sequence[int],
    checksums: Sequence[int],
    *,
    version: int = 1,
) -> Header:
    """The header for rows in this layout whose sections have these lengths and checksums."""
    order = None
    parts = layout.order_parts
    if len(rows) and len(parts) and parts[0, 1] == 0:
        words = rows[:, parts[0, 0]]
        order = (int(words.min()), int(words.max()))
    sections = []
    at = header_size(layout.fingerprint)
    for length, checksum in zip(lengths, checksums, strict=True):
        sections.append(Section(at, length, checksum))
        at += aligned(length)
    return Header(
        rows=len(rows),
        width=layout.width,
        payload=layout.payload,
        bits=bits,
        least_hash=int(hashes[0]) if len(rows) else 0,
        greatest_hash=int(hashes[-1]) if len(rows) else 0,
        order=order,
        most=weight_bound(rows.ctypes.data, len(rows), layout.width, layout.payload) + 1,
        fingerprint=layout.fingerprint,
        sections=tuple(sections),
        version=version,
    )


def damaged(path: str, why: str) -> CorruptionError:
    """The error for a file that cannot be used."""
    return CorruptionError.run_file(os.path.basename(path), why, os.path.dirname(path))


def read_header(fd: int, path: str) -> Header:
    """Read a header of any version, or say what is wrong."""
    start = os.pread(fd, _FIRST_READ, 0)
    if start[: len(_MAGIC)] != _MAGIC[: len(start)] or not start:
        raise damaged(path, "it is not a run file")
    if len(start) < _TEXT + 4:
        raise damaged(path, "it ends within its header")
    fixed = _FIXED.unpack_from(start)
    version, size, length = fixed[1], fixed[8], fixed[3]
    if version > VERSION:
        raise CorruptionError.newer_state(os.path.basename(path), version, VERSION, os.path.dirname(path))
    if not _TEXT + 8 <= size <= _LONGEST_HEADER or size % ALIGNMENT or version < 1:
        raise damaged(path, "its header is damaged")
    start = start[:size] if len(start) >= size else os.pread(fd, size, 0)
    if len(start) < size:
        raise damaged(path, "it ends within its header")
    if zlib.crc32(memoryview(start)[:-4]) != struct.unpack_from("<I", start, size - 4)[0]:
        raise damaged(path, "the checksum of its header is wrong")
    actual = os.fstat(fd).st_size
    if actual != length:
        raise damaged(path, f"it has {actual} bytes instead of {length}")
    header = replace(_decoded(fixed, start), version=version)
    if header.hash_version > HASH_VERSION:
        raise CorruptionError.newer_state(
            os.path.basename(path), header.hash_version, HASH_VERSION, os.path.dirname(path)
        )
    if not _consistent(header, length):
        raise damaged(path, "its sections do not fit")
    return header


def _decoded(fixed: tuple[Any, ...], start: bytes) -> Header:
    (_, _, hashed, _, rows, width, payload, bits, _, least, greatest, low, high, most, known, _) = fixed
    sections = [Section(*_SECTION.unpack_from(start, _FIXED.size + i * _SECTION.size)[:3]) for i in range(len(NAMES))]
    text = struct.unpack_from("<I", start, _TEXT)[0]
    fingerprint = start[_TEXT + 4 : _TEXT + 4 + text].decode(errors="replace")
    order = (low, high) if known else None
    return Header(rows, width, payload, bits, least, greatest, order, most, fingerprint, tuple(sections), hashed)


def _consistent(header: Header, length: int) -> bool:
    """Would kernels stay within the file?"""
    rows, hashes, heap, directory, words = header.sections
    at = header.size
    for section in header.sections:
        if section.offset != at:
            return False
        at += aligned(section.length)
    if header.version > 1:
        others = hashes.length + directory.length + words.length + (heap.length if header.version == 2 else 0)
        return (
            at == length and not others and 0 <= rows.length - shortest(header.width) <= 8 * header.rows * header.width
        )
    return (
        at == length
        and 0 < header.bits < 32
        and rows.length == 8 * header.rows * header.width
        and hashes.length == 8 * header.rows
        and directory.length == 4 * ((1 << header.bits) + 1)
        and words.length == 8 * WORDS * filter_blocks(header.rows)
    )
