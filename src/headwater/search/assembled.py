"""Assembled indexes: many splits in one folder, as one index of the library.

The library's index is a folder of immutable segments and one ``meta.json`` that lists them. A split holds segments
whose names are random, so segments of any splits of one spec can be laid into one folder, by links, under a
``meta.json`` that lists them all. One searcher over all of them then has one set of statistics: scores do not depend on
how splits are cut.

Rows that are not alive are left out the way the library leaves out deleted documents: by a file
``<segment>.<opstamp>.del`` that holds a bit per document. Version 7 of the library's format::

    u32 number of documents, little-endian; then the bits, lowest first, in little-endian 64-bit words
    footer: JSON {"version": …, "crc": …}, u32 length of the JSON, u32 1337

The footer is that of another file of the segment: readers look at its version, and not at the checksum.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.search.split_file import META, read_meta, segment_files

__all__ = ["Segment", "assemble", "link"]

Bits = np.ndarray[Any, np.dtype[np.bool_]]
_OPSTAMP = 1
_FOOTER_MAGIC = 1337


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a split: where its files lie, and which of its documents are alive (None: all)."""

    folder: str
    id: str
    documents: int
    alive: Bits | None = None
    claimed: int | None = None
    """How many documents ``meta.json`` says it has; by default those that are alive."""


def link(source: str, to: str) -> None:
    """A second name of a file, or a copy where that cannot be."""
    try:
        os.link(os.path.realpath(source), to)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, to)


def assemble(segments: Sequence[Segment], folder: str) -> None:
    """Lay segments into an empty folder as one index, in this order."""
    assert segments, "there is at least one segment"
    listed, managed = [], [META]
    for one in segments:
        for name in segment_files(one.folder, one.id):
            link(os.path.join(one.folder, name), os.path.join(folder, name))
            managed.append(name)
        deletes = None
        if one.alive is not None:
            name = f"{one.id.replace('-', '')}.{_OPSTAMP}.del"
            _write_alive(one, os.path.join(folder, name))
            managed.append(name)
            left = int(one.alive.sum()) if one.claimed is None else one.claimed
            deletes = {"num_deleted_docs": one.documents - left, "opstamp": _OPSTAMP}
        listed.append({"segment_id": one.id, "max_doc": one.documents, "deletes": deletes})
    meta = read_meta(segments[0].folder)
    meta.update(segments=listed, opstamp=_OPSTAMP + 1)
    meta.pop("payload", None)
    with open(os.path.join(folder, META), "w", encoding="utf-8") as f:
        json.dump(meta, f)
    with open(os.path.join(folder, ".managed.json"), "w", encoding="utf-8") as f:
        json.dump(managed, f)


def _write_alive(one: Segment, to: str) -> None:
    assert one.alive is not None and len(one.alive) == one.documents
    words = -(-one.documents // 64)
    bits = np.zeros(words * 64, np.bool_)
    bits[: one.documents] = one.alive
    with open(to, "wb") as f:
        f.write(struct.pack("<I", one.documents))
        f.write(np.packbits(bits, bitorder="little").tobytes())
        f.write(_footer(one))


def _footer(one: Segment) -> bytes:
    """The footer of a file of the segment, which says by which version it was written."""
    path = os.path.join(one.folder, f"{one.id.replace('-', '')}.fast")
    with open(path, "rb") as f:
        f.seek(-8, os.SEEK_END)
        length, magic = struct.unpack("<II", f.read(8))
        if magic != _FOOTER_MAGIC or length > 4096:
            raise ValueError("a segment has no footer that is known")
        f.seek(-8 - length, os.SEEK_END)
        return f.read()
