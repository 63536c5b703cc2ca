"""Digests: is one multiset of rows another, found out in one pass over each and a few kilobytes?

The problem: to prove that an artefact of 50 million rows equals its recomputation, sorting or hashing all rows of both
sides into one table takes gigabytes. The idea: hash every row to 128 bits, and add the hashes up. Sums do not depend on
the order of rows, and of a whole stream only its sums are kept. Rows are spread over *partitions* by a hash of their
own, with sums for each, so that where two streams differ, it is known which few rows have to be looked at.

**Floats.** A recomputation may differ in the last digits of floats, so they must not decide into which partition a row
falls: the partition is a hash of the other columns (of nothing where all columns are floats: then there is one
partition). In the sums a float counts as the *cell* that it lies in: numbers whose first 30 bits of the significand
agree, so that two numbers of one cell differ by less than 2^-30 < 1e-9 of either. Zeros of both signs are one cell, all
NaNs are one, infinities and subnormal numbers stand for themselves. Equal sums therefore mean that the rows can be
paired so that all floats agree within 1e-9. The reverse does not hold: two numbers that differ in the last digit may
lie on both sides of a border between cells. Such a pair is rare (one in a million values whose last 10 bits differ by
chance), but among fifty million rows there are some. So there are two *grids* of cells, the second moved by half a
cell, and a partition is equal if its sums agree in either. Only a partition with such a pair on a border of each grid
has to be compared in another way (`comparison`).

**Equality.** Values are hashed by their bits, as in `headwater.base.rowkey`: null is null and nothing else, all NaNs
are one NaN, and inside of lists and structs 0.0 is not -0.0. Encodings (dictionaries, views, large offsets) make no
difference. Lists are hashed with their lengths, structs and lists with their own validity.

**How sure is it?** The keys of the hash are drawn from the system's random numbers for every comparison, so no rows can
be prepared to collide. With the mixing taken for a random function, two partitions that differ have the same sums in a
grid with a probability of 2^-128. With 4,096 partitions and two grids that is less than 2^-114 for a comparison,
whatever the number of rows: there is no birthday bound, since no two rows are compared, only two sums. 64 bits would
give 2^-51, which is also enough against chance; but a fixed and public 64-bit hash such as DuckDB's gives nothing
against rows that were made to collide.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import UnsupportedError
from headwater.kernels import digest as kernels
from headwater.kernels.arrays import Flags, Hashes, Lanes, Positions, read_only

__all__ = ["Digest", "RowHash", "partition_bits", "partition_of"]

_GRIDS = (0, 1 << (kernels.CELL_BITS - 1))
"""How far the borders of each grid of cells are moved, in units of the last place."""

_ROWS_PER_PARTITION = 16_384
_MOST_BITS = 12
_NO_NULLS: Flags = np.zeros(0, dtype=np.bool_)
_WORDS = (1, 2, 4, 8)


def partition_bits(rows: int) -> int:
    """How many bits of a hash name the partition of a row: partitions of some thousand rows, and at most 4,096.

    >>> [partition_bits(rows) for rows in (0, 20_000, 1_000_000, 50_000_000)]
    [0, 1, 6, 12]
    """
    return min(_MOST_BITS, max(0, (rows - 1) // _ROWS_PER_PARTITION).bit_length())


def partition_of(lanes: Lanes, bits: int) -> Positions:
    """The partition of each row, by the hash of its columns that are not floats."""
    return (lanes[:, 0] >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(len(lanes), dtype=np.int64)


class RowHash:
    """Hashes rows of one schema under one random key: the same rows get the same lanes, in whatever batches they come.

    Parameters
    ----------
    schema
        the columns; floats at the top level are those that may differ in their last digits
    key
        drawn at random where none is given
    """

    def __init__(self, schema: pa.Schema, key: bytes | None = None) -> None:
        self.schema = schema
        self.floats = [i for i, f in enumerate(schema) if pa.types.is_floating(f.type)]
        self.plain = [i for i in range(len(schema)) if i not in self.floats]
        self.grids = _GRIDS if self.floats else _GRIDS[:1]
        self._key = os.urandom(32) if key is None else key
        self._keys: dict[str, Hashes] = {}

    def plain_lanes(self, batch: pa.RecordBatch) -> Lanes:
        """The hash of each row's columns that are not floats."""
        lanes = np.empty((batch.num_rows, 2), dtype=np.uint64)
        lanes[:] = self._keys_of("row")[:2]
        for i in self.plain:
            self._fold(batch.column(i), lanes, f"{i}", self.schema.field(i).name)
        return lanes

    def cell_lanes(self, batch: pa.RecordBatch, plain: Lanes) -> list[Lanes]:
        """The hash of each row with its floats rounded, for each grid."""
        if not self.floats:
            return [plain]
        found = [plain.copy() for _ in self.grids]
        for i in self.floats:
            column = batch.column(i).cast(pa.float64())
            words, nulls = read_only(_words(column, 8)), _nulls(column)
            for lanes, offset in zip(found, self.grids, strict=True):
                kernels.fold_cells(words, nulls, lanes, self._keys_of(f"{i}"), offset)
        return found

    def exact_lanes(self, batch: pa.RecordBatch, plain: Lanes) -> Lanes:
        """The hash of each row, bit for bit."""
        if not self.floats:
            return plain
        lanes = plain.copy()
        for i in self.floats:
            self._fold(batch.column(i), lanes, f"{i}", self.schema.field(i).name)
        return lanes

    def _keys_of(self, path: str) -> Hashes:
        """The keys of a column, or of a field inside of one."""
        if path not in self._keys:
            drawn = hashlib.blake2b(path.encode(), key=self._key, digest_size=32).digest()
            self._keys[path] = np.frombuffer(drawn, dtype=np.uint64).copy()
        return self._keys[path]

    def _fold(self, array: pa.Array, lanes: Lanes, path: str, label: str) -> None:
        types, kind, keys = pa.types, array.type, self._keys_of(path)
        if len(array) == 0 or types.is_null(kind):
            return
        if isinstance(kind, pa.BaseExtensionType):
            self._fold(array.storage, lanes, path, label)
        elif types.is_dictionary(kind):
            self._fold(array.dictionary_decode(), lanes, path, label)
        elif types.is_struct(kind):
            self._fold_struct(array, lanes, path, label)
        elif types.is_map(kind):
            entries = pa.list_(pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False))
            self._fold_list(array.cast(entries), lanes, path, label)
        elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            self._fold_list(array, lanes, path, label)
        elif types.is_union(kind) or types.is_run_end_encoded(kind):
            raise UnsupportedError.column_type(label, str(kind), "cast the column to a plain type first")
        elif types.is_floating(kind):
            kernels.fold_words(read_only(_float_words(array)), _nulls(array), lanes, keys)
        elif types.is_boolean(kind):
            kernels.fold_words(read_only(_words(array.cast(pa.uint8()), 1)), _nulls(array), lanes, keys)
        elif types.is_fixed_size_binary(kind):
            self._fold_fixed(array, kind.byte_width, lanes, path)
        elif types.is_primitive(kind) or types.is_decimal(kind):
            width = kind.bit_width // 8
            if width in _WORDS:
                kernels.fold_words(read_only(_words(array, width)), _nulls(array), lanes, keys)
            else:
                self._fold_fixed(array, width, lanes, path)
        else:
            offsets, data = _strings(array)
            kernels.fold_bytes(read_only(offsets), read_only(data), _nulls(array), lanes, keys)

    def _fold_fixed(self, array: pa.Array, width: int, lanes: Lanes, path: str) -> None:
        """Values of ``width`` bytes, other than 1, 2, 4 and 8."""
        buffer = array.buffers()[1]
        data = np.zeros(0, dtype=np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)
        offsets = (np.arange(len(array) + 1, dtype=np.int64) + array.offset) * (width if len(data) else 0)
        kernels.fold_bytes(read_only(offsets), read_only(data), _nulls(array), lanes, self._keys_of(path))

    def _fold_struct(self, array: pa.Array, lanes: Lanes, path: str, label: str) -> None:
        present = np.zeros(len(array), dtype=np.uint64)
        kernels.fold_words(read_only(present), _nulls(array), lanes, self._keys_of(path))
        for number, child in enumerate(array.flatten()):  # a null struct makes its children null
            self._fold(child, lanes, f"{path}.{number}", f"{label}.{array.type.field(number).name}")

    def _fold_list(self, array: pa.Array, lanes: Lanes, path: str, label: str) -> None:
        items = array.flatten()  # leaves out what lies below null lists
        inside = np.empty((len(items), 2), dtype=np.uint64)
        inside[:] = self._keys_of(f"{path}[]")[:2]
        self._fold(items, inside, f"{path}[].", f"{label}[]")
        offsets = np.zeros(len(array) + 1, dtype=np.int64)
        np.cumsum(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False), out=offsets[1:])
        kernels.fold_lists(read_only(offsets), inside, _nulls(array), lanes, self._keys_of(path))


@dataclass
class Digest:
    """How many rows a stream has in each partition, and the sums of their hashes."""

    hash: RowHash
    bits: int
    rows: int = 0
    nbytes: int = 0
    counts: Positions = field(init=False)
    sums: list[Lanes] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(1 << self.bits, dtype=np.int64)
        self.sums = [np.zeros((1 << self.bits, 2), dtype=np.uint64) for _ in self.hash.grids]

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch in."""
        plain = self.hash.plain_lanes(batch)
        counts: Sequence[Positions] = [self.counts, *(np.empty_like(self.counts) for _ in self.sums[1:])]
        for lanes, sums, counted in zip(self.hash.cell_lanes(batch, plain), self.sums, counts, strict=True):
            kernels.add_lanes(plain, lanes, self.bits, counted, sums)
        self.rows += batch.num_rows
        self.nbytes += batch.nbytes

    def differs(self, other: Digest) -> Flags:
        """The partitions that cannot be said to be equal: by their counts, or by their sums in every grid."""
        assert self.hash is other.hash and self.bits == other.bits, "digests of one key and one number of partitions"
        agree = np.zeros(len(self.counts), dtype=np.bool_)
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            agree |= (mine == theirs).all(axis=1)
        found: Flags = ~agree | (self.counts != other.counts)
        return found


def _nulls(array: pa.Array) -> Flags:
    if not array.null_count:
        return read_only(_NO_NULLS)
    found: Flags = array.is_null().to_numpy(zero_copy_only=False)
    return read_only(np.ascontiguousarray(found))


def _words(array: pa.Array, width: int) -> Hashes:
    """The bits of values of 1, 2, 4 or 8 bytes; what is under a null is anything."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype=np.uint64)
    raw = np.frombuffer(buffer, dtype=f"u{width}", count=len(array), offset=array.offset * width)
    return np.require(raw.astype(np.uint64, copy=False), requirements="A")


def _float_words(array: pa.Array) -> Hashes:
    """The bits of floats, with all NaNs made one."""
    width = array.type.bit_width // 8
    infinity = {2: 0x7C00, 4: 0x7F80_0000, 8: 0x7FF0_0000_0000_0000}[width]
    magnitude = (1 << (8 * width - 1)) - 1
    words = _words(array, width)
    is_nan = (words & np.uint64(magnitude)) > np.uint64(infinity)
    return np.where(is_nan, np.uint64(magnitude), words) if is_nan.any() else words


def _strings(array: pa.Array) -> tuple[Positions, npt.NDArray[np.uint8]]:
    """Where each string begins and ends, and the bytes."""
    types, kind = pa.types, array.type
    if not (
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    ):
        array = array.cast(pa.large_binary())
        kind = array.type
    wide = types.is_large_string(kind) or types.is_large_binary(kind)
    _, places, bytes_ = array.buffers()
    dtype = np.int64 if wide else np.int32
    offset = array.offset * np.dtype(dtype).itemsize
    offsets = np.frombuffer(places, dtype=dtype, count=len(array) + 1, offset=offset).astype(np.int64, copy=False)
    offsets = np.require(offsets, requirements="A")
    data = np.zeros(0, dtype=np.uint8) if bytes_ is None else np.frombuffer(bytes_, dtype=np.uint8)
    return offsets, data
