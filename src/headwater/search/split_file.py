"""Splits: immutable pieces of an index, one file each.

A split is a zip archive whose entries are stored as they are, so that they can be copied out at the speed of a disk.
Version 1 has

- ``meta.json`` of the library, with the segments of the split
- the files of each segment, ``<32 hex digits>.<ext>``
- ``terms.arrow``: an Arrow IPC stream of one batch per text field, ``field: string, term: large_string``, each term
  once and sorted, for patterns such as ``*data*`` (`patterns`); behind it the CRC-32 of the stream, 4 bytes,
  little-endian
- ``hot.arrow``, where the index keeps hot columns: an Arrow IPC file of these columns, a row per document, in the order
  of the documents

The CRC-32 that a zip archive has for every entry is its checksum; it is compared when a split is unpacked, which
happens once per machine. The name of a split is random: it is never written again.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headwater.base.errors import CorruptionError

__all__ = [
    "HOT",
    "META",
    "TERMS",
    "check_folder",
    "pack",
    "read_meta",
    "segment_files",
    "terms_of",
    "unpack",
    "write_terms",
]

META, TERMS, HOT = "meta.json", "terms.arrow", "hot.arrow"
_FOOTER_MAGIC = 1337
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, KeyError, TypeError, EOFError, RuntimeError,
    OverflowError,
)  # fmt: skip
_OWN = re.compile(r"[0-9a-f]{32}\.[a-z]+|meta\.json|terms\.arrow|hot\.arrow")


def segment_files(folder: str, segment_id: str) -> list[str]:
    """The names of the files of a segment."""
    stem = segment_id.replace("-", "")
    return sorted(name for name in os.listdir(folder) if name.startswith(f"{stem}.") and not name.endswith(".del"))


def read_meta(folder: str) -> dict[str, Any]:
    """The library's description of an index in a folder."""
    with open(os.path.join(folder, META), encoding="utf-8") as f:
        found: dict[str, Any] = json.load(f)
    return found


def pack(folder: str, to: str) -> int:
    """Write the split of an index in a folder, and give its size."""
    meta = read_meta(folder)
    names = [META] + [n for one in meta["segments"] for n in segment_files(folder, one["segment_id"])]
    names += [name for name in (TERMS, HOT) if os.path.exists(os.path.join(folder, name))]
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in names:
            archive.write(os.path.join(folder, name), name)
    return os.path.getsize(to)


def unpack(source: Any, folder: str, name: str, where: str) -> None:
    """Copy the entries of a split into a folder; CorruptionError if it is not what was written."""
    try:
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            if META not in archive.namelist():
                raise ValueError("it has no meta.json")
            for entry in entries:
                if not _OWN.fullmatch(entry.filename) or entry.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"it has an entry that is not of a split: {entry.filename[:80]!r}")
                with archive.open(entry) as f, open(os.path.join(folder, entry.filename), "wb") as to:
                    shutil.copyfileobj(f, to, 1 << 20)
        _check_meta(read_meta(folder))
    except _UNREADABLE as e:
        raise CorruptionError.state_file(name, str(e), where) from e


def _check_meta(meta: dict[str, Any]) -> None:
    for one in meta["segments"]:
        if not re.fullmatch(r"[0-9a-f-]{36}", one["segment_id"]) or int(one["max_doc"]) < 0:
            raise ValueError("its meta.json names no segment")
    if not isinstance(meta["schema"], list):
        raise ValueError("its meta.json has no schema")


def check_folder(folder: str, where: str) -> None:
    """Raise CorruptionError if a file of an unpacked split is not what was written.

    Every file of a segment ends as `assembled` says, with the CRC-32 of what comes before. This reads all of them, so
    it is done only after the library has failed.
    """
    try:
        meta = read_meta(folder)
        _check_meta(meta)
        for one in meta["segments"]:
            for name in segment_files(folder, one["segment_id"]):
                _check_file(os.path.join(folder, name))
        for _ in terms_of(folder):
            pass
        if os.path.exists(hot := os.path.join(folder, HOT)):
            with pa.memory_map(hot) as source, pa.ipc.open_file(source) as batches:
                for number in range(batches.num_record_batches):
                    batches.get_batch(number).validate(full=True)
    except (*_UNREADABLE, OSError, pa.ArrowException) as e:
        raise CorruptionError.state_file(folder, str(e), where) from e


def _check_file(path: str) -> None:
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
        length, magic = struct.unpack("<II", view[-8:])
        if magic != _FOOTER_MAGIC or length > 4096:
            raise ValueError(f"{os.path.basename(path)} has no footer that is known")
        if zlib.crc32(view[: -8 - length]) != json.loads(bytes(view[-8 - length : -8]))["crc"]:
            raise ValueError(f"the checksum of {os.path.basename(path)} is another one")


def write_terms(folder: str, terms: dict[str, list[str]]) -> None:
    """Write the sorted terms of each text field."""
    schema = pa.schema([("field", pa.string()), ("term", pa.large_string())])
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as to:
        for field, listed in terms.items():
            array = pa.array(sorted(listed), pa.large_string())
            to.write_batch(pa.record_batch([pa.repeat(pa.scalar(field), len(array)), array], schema=schema))
    stream = sink.getvalue()
    with open(os.path.join(folder, TERMS), "wb") as file:
        file.write(stream)
        file.write(struct.pack("<I", zlib.crc32(stream)))


def terms_of(folder: str) -> Iterator[tuple[str, pa.Array]]:
    """The sorted terms of each text field that has any; ValueError if they are not what was written."""
    with pa.memory_map(os.path.join(folder, TERMS)) as source:
        data = source.read_buffer()
        if len(data) < 4 or zlib.crc32(memoryview(data)[:-4]) != struct.unpack("<I", memoryview(data)[-4:])[0]:
            raise ValueError(f"the checksum of {TERMS} is another one")
        for batch in pa.ipc.open_stream(data.slice(0, len(data) - 4)):
            if batch.num_rows:
                yield batch.column(0)[0].as_py(), batch.column(1)
