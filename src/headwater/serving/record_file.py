"""The file of records: the format, and reading it by mapping it into memory.

A file holds rows of one layout, each under its key, with an index. It is written once (`record_writer`) and never
changed. Version 1, all numbers little-endian::

    0        8 bytes   b"HWRECORD"
    8        u32       version of the format: 1
    12       u32       CRC-32 of the description
    16       u64       where the description begins: it is the end of the file
    24       u64       its length
    4096               the records, one after the other
    heap               what has no fixed width
    index              u64 entries: 0, or fingerprint << 32 | number of the record + 1
    origins            from where the records come (`origins`), in bases that know it
    description        JSON in UTF-8

The description::

    {"layout": {…},                 `layout.Layout.to_json`
     "seed": <u64>,                 of the hashes in the index
     "rows": <n>,                   records, with those of deleted keys
     "tombstones": <n>,             records of deleted keys
     "records"|"heap"|"index": {"at": <offset>, "bytes": <n>, "crc": <CRC-32>},
     "origins": the same; absent where they are not known, and passed over by whoever only looks keys up}

A record (`layout`) is a key, values, and null bits; its bytes are what kernels work on
(`headwater.kernels.online_record`). A slot, for what has no fixed width, is 16 bytes (a key's slot has 16, 24 or 32)::

    u32 length | the bytes themselves, if they fit
    u32 length | u32 note | u64 place in the heap             if they do not; and always for lists

The length of a list is its number of items; its note is 1 if some are null, and then one bit per item (1: it is there)
follows the items. The word of sparse columns is 0, or a place in the heap plus one: u16 how many there are, their
numbers as u16 each, filled up to a multiple of 8, then 16 bytes for each: the value, or a slot.

Where the search for a key begins, and what a fingerprint is, says `headwater.kernels.online_find`.

What is checked: the description and all lengths when a file is opened; each place when it is read, by the kernels; the
check sum of the origins before they are used; all check sums by `RecordFile.check`, which whoever fetches a file from
another machine calls once.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from headwater.base.errors import CorruptionError
from headwater.serving.layout import Layout
from headwater.serving.origins import Origins

__all__ = ["BEGIN", "MAGIC", "VERSION", "RecordFile", "Section", "encode_header"]

MAGIC = b"HWRECORD"
VERSION = 1
BEGIN = 4096
_HEAD = 32
_POPULATE_READ = 22
"""Linux's MADV_POPULATE_READ: map the pages now, not at the first access to each."""
_STEP = 4 << 20
_SECTIONS = ("records", "heap", "index")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file: where it begins, how long it is, and its CRC-32."""

    at: int
    bytes: int
    crc: int

    def to_json(self) -> dict[str, int]:
        """As a JSON object."""
        return {"at": self.at, "bytes": self.bytes, "crc": self.crc}


def encode_header(at: int, description: bytes) -> bytes:
    """The first bytes of a file whose description begins at ``at``."""
    crc = zlib.crc32(description).to_bytes(4, "little")
    return (
        MAGIC + VERSION.to_bytes(4, "little") + crc + at.to_bytes(8, "little") + len(description).to_bytes(8, "little")
    )


class RecordFile:
    """A file of records, mapped into memory. It stays mapped while anything refers to it."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as f:
                size = os.fstat(f.fileno()).st_size
                if size < BEGIN:
                    raise ValueError(f"it has {size} bytes")
                self._map = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
            self._read_header(size)
        except (KeyError, TypeError, ValueError) as e:
            raise CorruptionError.record_file(path, str(e)) from e

    def _read_header(self, size: int) -> None:
        head = self._map[:_HEAD]
        if head[:8] != MAGIC:
            raise ValueError("it is no record file")
        version, crc = (int.from_bytes(head[i : i + 4], "little") for i in (8, 12))
        at, length = (int.from_bytes(head[i : i + 8], "little") for i in (16, 24))
        if version != VERSION:
            raise ValueError(f"it has version {version}, and this Headwater knows {VERSION}")
        if at + length != size:
            raise ValueError(f"it has {size} bytes instead of {at + length}")
        text = self._map[at:]
        if zlib.crc32(text) != crc:
            raise ValueError("its description is damaged")
        found = json.loads(text)
        self.layout = Layout.from_json(found["layout"])
        self.seed = int(found["seed"])
        self.rows = int(found["rows"])
        self.tombstones = int(found["tombstones"])
        self.bytes = size
        self.sections = {name: Section(**found[name]) for name in (*_SECTIONS, "origins") if name in found}
        if lacks := [name for name in _SECTIONS if name not in self.sections]:
            raise KeyError(lacks[0])
        for name, one in self.sections.items():
            if one.at < BEGIN or one.bytes < 0 or one.at + one.bytes > size:
                raise ValueError(f"its {name} lie outside of it")
        if self.sections["records"].bytes != self.rows * self.layout.width or self.sections["index"].bytes % 8:
            raise ValueError("its records do not fit its layout")

    @property
    def buffer(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """All its bytes."""
        return np.frombuffer(self._map, np.uint8)

    def addresses(self) -> list[int]:
        """What kernels have to know: index, entries, records, how many, heap, bytes of it."""
        begin = self.buffer.ctypes.data
        records, heap, index = (self.sections[n] for n in ("records", "heap", "index"))
        return [begin + index.at, index.bytes // 8, begin + records.at, self.rows, begin + heap.at, heap.bytes]

    @cached_property
    def origins(self) -> Origins | None:
        """From where its records come; None where that is not known."""
        one = self.sections.get("origins")
        if one is None:
            return None
        self._check("origins")
        return Origins.read(pa.py_buffer(self._map).slice(one.at, one.bytes))

    def check(self) -> None:
        """Compare all check sums; an error if one is wrong."""
        for name in self.sections:
            self._check(name)

    def _check(self, name: str) -> None:
        one, crc = self.sections[name], 0
        for at in range(one.at, one.at + one.bytes, _STEP):
            crc = zlib.crc32(self._map[at : min(at + _STEP, one.at + one.bytes)], crc)
        if crc != one.crc:
            raise CorruptionError.record_file(self.path, f"the check sum of its {name} is wrong")

    def populate(self) -> None:
        """Map the pages of index and records ahead of the first access, as far as the system can."""
        try:
            for at in range(0, self.bytes, _STEP):  # a few at a time: the GIL is not released meanwhile
                self._map.madvise(_POPULATE_READ, at, min(_STEP, self.bytes - at))
        except (OSError, ValueError):
            return

    def __repr__(self) -> str:
        return f"RecordFile({self.path!r}, {self.rows:,} rows)"
