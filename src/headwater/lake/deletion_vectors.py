"""Deletion vectors: the rows of a data file that are gone, although the file still holds them.

Taking a row out of a Parquet file means writing the file again; marking its position costs a few bytes. A
vector is a set of 64-bit row positions (zero is the file's first row), held as a roaring bitmap. It hangs on
the file's ``add`` action as a small descriptor, and its bytes lie in the log (inline) or in a ``.bin`` file
beside the data, where one file may hold the vectors of many data files.

The bitmap (little endian):

    magic      int32    1681511377: what follows is the portable 64-bit roaring format   (written and read)
                        1681511376: the older layout of delta-spark                      (read only)
    portable   uint64 number of buckets; for each, keys ascending: uint32 key (the positions' upper half),
               then a 32-bit roaring bitmap (their lower halves)
    older      int32 number of bitmaps; for each: int32 size in bytes, then a 32-bit roaring bitmap, whose
               index is the key

The file (big endian), format version 1:

    version    uint8    1
    entry*     int32 size of the bitmap, the bitmap as above, CRC-32 of those bytes

Inline, the bitmap is padded with zeros to a multiple of four bytes and written in Z85 (an 85-letter alphabet
that JSON need not escape). A relative file is named by a UUID in Z85, 20 characters, after an optional prefix
that is a folder: ``ab^-aqEH.-t@S}K{vb[*k^`` lies at ``ab/deletion_vector_<uuid>.bin``.

Invariants: the upper half of a position has its top bit clear (positions are below 2**63); ``size_bytes`` is
the bitmap's length before padding and without size and checksum; ``offset`` points at an entry's size field;
``cardinality`` is the number of positions. A reader trusts nothing: size, checksum, magic and cardinality are
checked, and each mismatch is a `CorruptionError`.
"""

from __future__ import annotations

import base64
import struct
import zlib
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import unquote
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from headwater.base.errors import CorruptionError, InputError

__all__ = [
    "DeletionVector",
    "FileWriter",
    "deserialize",
    "from_positions",
    "inline",
    "mask",
    "positions",
    "read",
    "serialize",
    "z85_decode",
    "z85_encode",
]

_MAGIC = 1681511377
_MAGIC_OLDER = 1681511376
_FILE_VERSION = 1
_UUID_CHARS = 20
_MAX_OFFSET = 2**31 - 1

_PYTHON85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85 = bytes.maketrans(_PYTHON85, _Z85)
# A letter outside Z85 must not slip through as a letter of Python's alphabet, so all others become a blank.
_FROM_Z85 = bytes(_PYTHON85[_Z85.index(c)] if c in _Z85 else 0x20 for c in range(256))


def z85_encode(data: bytes) -> str:
    """Bytes as Z85 text; the length must be a multiple of four.

    >>> z85_encode(bytes.fromhex("864fd26fb559f75b"))
    'HelloWorld'
    """
    if len(data) % 4:
        raise InputError.bad_argument("data", f"{len(data)} bytes", "a multiple of four bytes")
    return base64.b85encode(data).translate(_TO_Z85).decode("ascii")


def z85_decode(text: str) -> bytes:
    """The bytes of a Z85 text.

    >>> z85_decode("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    try:
        letters = text.encode("ascii")
        if len(letters) % 5:
            raise ValueError(f"{len(letters)} characters are not a multiple of five")
        return base64.b85decode(letters.translate(_FROM_Z85))
    except ValueError as e:  # UnicodeEncodeError is one too
        raise InputError.bad_argument("text", text[:40], f"Z85 text ({e})") from e


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Where a vector lies and how big it is: the descriptor in an ``add`` or ``remove`` action.

    Attributes
    ----------
    storage_type
        ``u`` a file named by UUID in the table's folder, ``i`` inline, ``p`` a file with an absolute path.
    path_or_inline
        The UUID, the bitmap or the path, by ``storage_type``.
    offset
        Where the entry begins in its file; None when inline.

    >>> dv = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    >>> dv.relative_path()
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    >>> dv.unique_id
    'uab^-aqEH.-t@S}K{vb[*k^@4'
    """

    storage_type: str
    path_or_inline: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @classmethod
    def from_action(cls, action: Mapping[str, Any]) -> Self:
        """Read the ``deletionVector`` object of an action; `ValueError` if it is not one."""
        try:
            kind, place, offset = action["storageType"], action["pathOrInlineDv"], action.get("offset")
            vector = cls(
                str(kind),
                str(place),
                None if offset is None else int(offset),
                int(action["sizeInBytes"]),
                int(action["cardinality"]),
            )
        except (KeyError, TypeError) as e:
            raise ValueError(f"not a deletion vector descriptor: {e!r}") from e
        if vector.storage_type not in ("u", "i", "p"):
            raise ValueError(f"unknown deletion vector storage type {vector.storage_type!r}")
        return vector

    def to_action(self) -> dict[str, Any]:
        """The JSON object for an action.

        >>> DeletionVector("u", "x" * 20, 1, 34, 1).to_action()["offset"]
        1
        """
        body: dict[str, Any] = {"storageType": self.storage_type, "pathOrInlineDv": self.path_or_inline}
        if self.offset is not None:
            body["offset"] = self.offset
        return body | {"sizeInBytes": self.size_bytes, "cardinality": self.cardinality}

    @property
    def unique_id(self) -> str:
        """What tells two vectors of one data file apart."""
        place = self.storage_type + self.path_or_inline
        return place if self.offset is None else f"{place}@{self.offset}"

    @property
    def is_inline(self) -> bool:
        return self.storage_type == "i"

    @property
    def path(self) -> str | None:
        """Where the vector's file lies, below the table's folder or as a whole path; None when inline.

        >>> DeletionVector("p", "file:///data/my%20table/x.bin", 1, 34, 1).path
        'file:///data/my table/x.bin'
        """
        if self.is_inline:
            return None
        return unquote(self.path_or_inline) if self.storage_type == "p" else self.relative_path()

    def relative_path(self) -> str:
        """The vector's file below the table's folder; only for storage type ``u``."""
        if self.storage_type != "u":
            raise InputError.bad_argument("storage_type", self.storage_type, "`u`, the one with a relative path")
        prefix, name = self.path_or_inline[:-_UUID_CHARS], self.path_or_inline[-_UUID_CHARS:]
        if len(name) < _UUID_CHARS:
            raise InputError.bad_argument("path_or_inline", self.path_or_inline, "at least 20 characters of Z85")
        file = f"deletion_vector_{UUID(bytes=z85_decode(name))}.bin"
        return f"{prefix}/{file}" if prefix else file


def serialize(bitmap: BitMap64) -> bytes:
    """Magic number and portable bitmap, with runs compressed; ``bitmap`` itself is left as it is.

    >>> len(serialize(BitMap64(range(1_000_000)))) < 300
    True
    """
    if bitmap and bitmap.max() >= 1 << 63:
        raise InputError.bad_argument("bitmap", bitmap.max(), "positions below 2**63")
    smaller = bitmap.copy()
    smaller.run_optimize()
    return struct.pack("<i", _MAGIC) + bytes(smaller.serialize())


def deserialize(data: bytes, *, path: str = "(bytes)", where: str = "(memory)") -> BitMap64:
    """The bitmap of `serialize`, or of the older layout; ``path`` and ``where`` are for the error's message.

    >>> list(deserialize(serialize(BitMap64([3, 4, 1 << 40]))))
    [3, 4, 1099511627776]
    """
    if len(data) < 8:
        raise CorruptionError.deletion_vector(path, f"{len(data)} bytes are too few", where)
    (magic,) = struct.unpack_from("<i", data)
    try:
        if magic == _MAGIC:
            return BitMap64.deserialize(data[4:])
        if magic == _MAGIC_OLDER:
            return _deserialize_older(data)
    except (ValueError, IndexError, struct.error) as e:
        raise CorruptionError.deletion_vector(path, f"the bitmap is damaged ({e})", where) from e
    raise CorruptionError.deletion_vector(path, f"magic number {magic} is not {_MAGIC}", where)


def _deserialize_older(data: bytes) -> BitMap64:
    (count,) = struct.unpack_from("<i", data, 4)
    whole, at = BitMap64(), 8
    for key in range(count):
        (size,) = struct.unpack_from("<i", data, at)
        if size <= 0 or at + 4 + size > len(data):
            raise ValueError("an entry reaches over the end")
        low = np.frombuffer(BitMap.deserialize(data[at + 4 : at + 4 + size]).to_array(), dtype=np.uint32)
        whole |= from_positions(low.astype(np.int64) + (key << 32))
        at += 4 + size
    return whole


def inline(bitmap: BitMap64) -> DeletionVector:
    """A vector whose bytes lie in the log itself.

    >>> inline(BitMap64([3, 4, 7, 11, 18, 29])).to_action()["sizeInBytes"]
    44
    """
    data = serialize(bitmap)
    return DeletionVector("i", z85_encode(data + b"\0" * (-len(data) % 4)), None, len(data), len(bitmap))


class FileWriter:
    """Packs the vectors of several data files in one ``.bin`` file.

    The writer makes bytes and descriptors; putting the bytes at ``path`` below the table's folder, before the
    commit that names them, is the caller's part.

    >>> writer = FileWriter(UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61"))
    >>> [writer.add(BitMap64([n])).offset for n in range(3)]
    [1, 43, 85]
    >>> writer.path, len(writer.to_bytes())
    ('deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin', 127)
    """

    def __init__(self, uuid: UUID | None = None, *, prefix: str = "") -> None:
        self._place = prefix + z85_encode((uuid or uuid4()).bytes)
        self._parts = [bytes([_FILE_VERSION])]
        self._size = 1
        self.descriptors: list[DeletionVector] = []

    def add(self, bitmap: BitMap64) -> DeletionVector:
        """Append one vector and say where it will lie."""
        data = serialize(bitmap)
        if self._size + len(data) + 8 > _MAX_OFFSET:
            raise InputError.bad_argument("bitmap", f"{len(data)} bytes", "a vector file of less than 2 GiB")
        vector = DeletionVector("u", self._place, self._size, len(data), len(bitmap))
        entry = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        self._parts.append(entry)
        self._size += len(entry)
        self.descriptors.append(vector)
        return vector

    @property
    def path(self) -> str:
        """The file's name, relative to the table's folder."""
        return DeletionVector("u", self._place, 1, 0, 0).relative_path()

    def to_bytes(self) -> bytes:
        """The whole file."""
        return b"".join(self._parts)


def read(vector: DeletionVector, get_bytes: Callable[[str, int, int], bytes], where: str) -> BitMap64:
    """Fetch and check one vector.

    Parameters
    ----------
    vector
        The descriptor from the action.
    get_bytes
        ``get_bytes(path, start, length)`` reads a range of a file: a path relative to the table for storage
        type ``u``, a whole path or URL (no longer percent-encoded) for ``p``. Not called for inline vectors.
    where
        The table, for messages.

    >>> list(read(inline(BitMap64([1, 5])), lambda path, start, length: b"", "t"))
    [1, 5]
    """
    if vector.is_inline:
        path = "(inline)"
        data = _inline_bytes(vector, where)
    else:
        path, data = _file_bytes(vector, get_bytes, where)
    bitmap = deserialize(data, path=path, where=where)
    if len(bitmap) != vector.cardinality:
        why = f"it marks {len(bitmap)} rows, the log says {vector.cardinality}"
        raise CorruptionError.deletion_vector(path, why, where)
    return bitmap


def _inline_bytes(vector: DeletionVector, where: str) -> bytes:
    try:
        data = z85_decode(vector.path_or_inline)
    except InputError as e:
        raise CorruptionError.deletion_vector("(inline)", "its text is not Z85", where) from e
    if not 0 <= len(data) - vector.size_bytes < 4:
        why = f"it holds {len(data)} bytes, the log says {vector.size_bytes}"
        raise CorruptionError.deletion_vector("(inline)", why, where)
    return data[: vector.size_bytes]


def _file_bytes(vector: DeletionVector, get_bytes: Callable[[str, int, int], bytes], where: str) -> tuple[str, bytes]:
    try:
        path = vector.path
    except InputError as e:
        raise CorruptionError.deletion_vector(vector.path_or_inline, "its name is not a UUID", where) from e
    assert path is not None, "it is not inline"
    # The first entry comes after the version byte, so an absent (or zero) offset can only mean one.
    offset, size = vector.offset or 1, vector.size_bytes
    if offset < 0 or size < 0:
        raise CorruptionError.deletion_vector(path, f"offset {offset} and size {size} make no range", where)
    # The version byte is looked at where it comes for free, that is for the file's first vector.
    lead = 1 if offset == 1 else 0
    raw = get_bytes(path, offset - lead, lead + size + 8)
    if len(raw) != lead + size + 8:
        raise CorruptionError.deletion_vector(path, f"the file ends early, at {offset - lead + len(raw)} bytes", where)
    if lead and raw[0] != _FILE_VERSION:
        raise CorruptionError.deletion_vector(path, f"file version {raw[0]} is not known", where)
    (stored,) = struct.unpack_from(">i", raw, lead)
    if stored != size:
        raise CorruptionError.deletion_vector(path, f"its size is {stored} bytes, the log says {size}", where)
    data = raw[lead + 4 : lead + 4 + size]
    (checksum,) = struct.unpack_from(">I", raw, lead + 4 + size)
    if checksum != zlib.crc32(data):
        raise CorruptionError.deletion_vector(path, "the checksum does not match", where)
    return path, data


def positions(bitmap: BitMap64) -> npt.NDArray[np.int64]:
    """The row positions, ascending.

    >>> positions(BitMap64([7, 3]))
    array([3, 7])
    """
    return np.frombuffer(bitmap.to_array(), dtype=np.int64)


def from_positions(rows: npt.ArrayLike) -> BitMap64:
    """A bitmap of row positions, in any order, repeated or not.

    >>> len(from_positions(np.array([5, 5, 2])))
    2
    """
    flat = np.ascontiguousarray(rows, dtype=np.int64)
    if flat.size and int(flat.min()) < 0:
        raise InputError.bad_argument("rows", int(flat.min()), "positions of zero or more")
    buffer = array("Q")
    buffer.frombytes(flat.tobytes())
    return BitMap64(buffer)


def mask(bitmap: BitMap64, start: int, length: int) -> npt.NDArray[np.bool_]:
    """True for each of the rows ``start … start + length - 1`` that is kept.

    >>> mask(BitMap64([1, 12]), 10, 4)
    array([ True,  True, False,  True])
    """
    gone = bitmap.range_cardinality(start, start + length) if length else 0
    if gone == length:
        return np.zeros(length, dtype=np.bool_)
    kept = np.ones(length, dtype=np.bool_)
    if gone:
        window = BitMap64()
        window.add_range(start, start + length)
        kept[positions(bitmap & window) - start] = False
    return kept
