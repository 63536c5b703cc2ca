"""Writing a file of records (`record_file`) from Arrow batches, in bounded memory.

Records are packed batch by batch and appended. What has no fixed width goes to a second file, which is appended at the
end; then the index is built over the mapped records. In memory at any time are one batch and the index, which takes
16 bytes a row. A key that occurs twice is found while the index is built.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from headwater.base import faults, settings
from headwater.base.errors import InputError
from headwater.serving.dtypes import FLAG, LIST, STRING
from headwater.serving.keys import KeyBatch, KeyCodec
from headwater.serving.layout import Layout, StoredColumn
from headwater.serving.origins import Origins
from headwater.serving.record_file import BEGIN, Section, encode_header

__all__ = ["RecordWriter", "Written", "order_words"]

_FULL = 0.5
"""How full an index is; fuller takes less memory and more steps from entry to entry."""
_BATCH = 65_536
_SLOT_INLINE = 12
_STEP = 4 << 20
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written: its records, those of them for deleted keys, and its bytes."""

    path: str
    rows: int
    tombstones: int
    bytes: int


class RecordWriter:
    """Writes one file. Call `append` and `delete` with rows, then `finish`; or `abandon`."""

    def __init__(self, path: str, layout: Layout, seed: int, *, order_by: str | None = None, where: str = "") -> None:
        self.path, self.layout, self.seed = path, layout, seed
        self._order_by, self._where = order_by, where
        self._codec = KeyCodec(layout.key)
        self._rows = self._tombstones = self._heap_bytes = 0
        self._records_crc = self._heap_crc = 0
        faults.point("online.file.before_write", path)
        self._file: BinaryIO = open(path, "w+b")  # noqa: SIM115  it is closed by finish or abandon
        self._file.seek(BEGIN)
        self._heap: BinaryIO | None = None

    @property
    def rows(self) -> int:
        """Records so far."""
        return self._rows

    # -- rows ------------------------------------------------------------------------------------------------------

    def append(self, batch: pa.RecordBatch) -> None:
        """Add rows: a batch with the columns of the layout's schema, of its types."""
        for begin in range(0, batch.num_rows, _BATCH):
            self._append(batch.slice(begin, _BATCH))

    def _append(self, batch: pa.RecordBatch) -> None:
        layout, count = self.layout, batch.num_rows
        records = np.zeros((count, layout.width), np.uint8)
        heap = _Heap(self._heap_bytes)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = self._codec.encode([columns[p.name] for p in layout.key])
        if keys.nulls is not None:
            raise InputError.null_keys([p.name for p in layout.key], self._where)
        self._pack_keys(records, keys, heap)
        for column in layout.columns:
            if column.sparse < 0:
                self._pack(records, columns[column.name], column, heap)
        sparse = [c for c in layout.columns if c.sparse >= 0]
        if sparse:
            _pack_sparse(records, layout, sparse, columns, heap)
        if layout.order_word >= 0:
            assert self._order_by is not None, "a layout with an order word has a column that it is made of"
            words = order_words(columns[self._order_by], self._order_by, self._where)
            records[:, layout.order_word : layout.order_word + 8] = words.view(np.uint8).reshape(count, 8)
        self._write(records, heap)
        self._rows += count

    def delete(self, keys: KeyBatch) -> None:
        """Add keys as deleted."""
        for begin in range(0, len(keys), _BATCH):
            some = KeyBatch(keys.data, keys.offsets[begin : begin + _BATCH + 1])
            records = np.zeros((len(some), self.layout.width), np.uint8)
            heap = _Heap(self._heap_bytes)
            self._pack_keys(records, some, heap)
            records[:, self.layout.nulls] = 1
            self._write(records, heap)
            self._rows += len(some)
            self._tombstones += len(some)

    def copy(self, records: Any, heaps: Any, layers: Any, *, tombstones: int = 0) -> None:
        """Add records of other files, by their addresses."""
        from headwater.kernels.online_pack import copy_records, heap_bytes

        layout = self.layout
        for begin in range(0, len(records), _BATCH):
            some, of = records[begin : begin + _BATCH], heaps[begin : begin + _BATCH]
            shape = (layout.shape, layout.slots, layout.sparse_word, layout.sparse_kinds)
            out = np.empty((len(some), layout.width), np.uint8)
            heap = _Heap(self._heap_bytes)
            heap.reserve(heap_bytes(some, of, layers, *shape))
            place = self._heap_bytes
            heap.used = copy_records(some, of, layers, *shape, out.reshape(-1), heap.bytes, place)
            self._write(out, heap)
            self._rows += len(some)
        self._tombstones += tombstones

    # -- packing ---------------------------------------------------------------------------------------------------

    def _pack_keys(self, records: Bytes, keys: KeyBatch, heap: _Heap) -> None:
        layout, count = self.layout, len(keys)
        if layout.key_bytes:
            begin = int(keys.offsets[0])
            given = keys.data[begin : begin + count * layout.key_bytes]
            records[:, : layout.key_bytes] = given.reshape(count, layout.key_bytes)
            return
        heap.reserve(_outside(keys.offsets, layout.inline))
        heap.pack_strings(records, 0, layout.inline, keys.data, keys.offsets)

    def _pack(self, records: Bytes, array: pa.Array, column: StoredColumn, heap: _Heap) -> None:
        value = column.value
        if array.null_count:
            if column.bit < 0:
                raise InputError.bad_argument(column.name, "null", "a value: the column is declared without nulls")
            is_null = array.is_null().to_numpy(zero_copy_only=False)
            at = self.layout.nulls + column.bit // 8
            records[:, at] |= is_null.astype(np.uint8) << np.uint8(column.bit % 8)
        if value.is_slot:
            heap.pack_slots(records, column.offset, array, value.kind, value.item)
        else:
            packed = _fixed(array, value.kind, value.width)
            records[:, column.offset : column.offset + value.width] = packed

    def _write(self, records: Bytes, heap: _Heap) -> None:
        raw = records.reshape(-1).data
        self._records_crc = zlib.crc32(raw, self._records_crc)
        self._file.write(raw)
        if heap.used:
            if self._heap is None:
                self._heap = open(f"{self.path}.heap", "w+b")  # noqa: SIM115
            piece = heap.bytes[: heap.used].data
            self._heap_crc = zlib.crc32(piece, self._heap_crc)
            self._heap.write(piece)
            self._heap_bytes += heap.used

    # -- the end ---------------------------------------------------------------------------------------------------

    def finish(self, origins: Origins | None = None) -> Written:
        """Build the index and close the file; an error, and no file, if a key occurs twice."""
        try:
            return self._finish(origins)
        except BaseException:
            self.abandon()
            raise

    def _finish(self, origins: Origins | None) -> Written:
        records = Section(BEGIN, self._rows * self.layout.width, self._records_crc)
        heap = Section(_aligned(records.at + records.bytes), self._heap_bytes, self._heap_crc)
        if self._heap is not None:
            self._heap.seek(0)
            self._file.seek(heap.at)
            shutil.copyfileobj(self._heap, self._file, _STEP)
        entries = max(8, int(self._rows / _FULL) + 1)
        index_at = _aligned(heap.at + heap.bytes)
        self._file.truncate(index_at + entries * 8)
        self._file.flush()
        index = self._index(entries, records, heap)
        raw = index.view(np.uint8).data
        self._file.seek(index_at)
        self._file.write(raw)
        size = index_at + entries * 8
        sections = {"records": records, "heap": heap, "index": Section(index_at, entries * 8, zlib.crc32(raw))}
        if origins is not None:
            packed = origins.to_buffer()
            sections["origins"] = Section(_aligned(size), packed.size, zlib.crc32(packed))
            self._file.seek(_aligned(size))
            self._file.write(packed)
            size = _aligned(size) + packed.size
        description = {
            "layout": self.layout.to_json(),
            "seed": self.seed,
            "rows": self._rows,
            "tombstones": self._tombstones,
        }
        description |= {name: one.to_json() for name, one in sections.items()}
        text = json.dumps(description, ensure_ascii=False).encode()
        self._file.write(text)
        faults.point("online.file.before_header", self.path)
        self._file.seek(0)
        self._file.write(encode_header(size, text))
        self._file.flush()
        if settings.current().fsync:
            os.fsync(self._file.fileno())
        self._close()
        return Written(self.path, self._rows, self._tombstones, size + len(text))

    def _index(self, entries: int, records: Section, heap: Section) -> np.ndarray[Any, np.dtype[np.uint64]]:
        from headwater.kernels.online_find import build_index

        index = np.zeros(entries, np.uint64)
        if not self._rows:
            return index
        mapped = np.memmap(self._file, np.uint8, "r")
        base, twice = mapped.ctypes.data, np.zeros(2, np.int64)
        layout = self.layout
        found = build_index(
            index,
            base + records.at,
            self._rows,
            base + heap.at,
            layout.shape,
            _signed(self.seed),
            layout.order_word,
            twice,
        )
        if found:
            record = base + records.at + int(twice[0]) * layout.width
            raise InputError.duplicate_keys(
                int(found), self._key_at(record, base + heap.at), self._where, ordered=self._order_by
            )
        return index

    def _key_at(self, record: int, heap: int) -> str:
        from headwater.kernels.online_pack import copy_keys, measure_keys

        records, offsets = np.array([record]), np.zeros(2, np.int64)
        out = np.zeros(max(1, measure_keys(records, self.layout.shape, offsets)), np.uint8)
        layers = np.array([[0, 0, 0, 0, heap, 0]], np.int64)
        copy_keys(records, np.zeros(1, np.int64), layers, self.layout.shape, offsets, out)
        return self._codec.shown(KeyBatch(out, offsets), 0)

    def abandon(self) -> None:
        """Delete the file."""
        self._close()
        with suppress(OSError):
            os.unlink(self.path)

    def _close(self) -> None:
        self._file.close()
        if self._heap is not None:
            self._heap.close()
            with suppress(OSError):
                os.unlink(f"{self.path}.heap")
            self._heap = None


class _Heap:
    """A piece of the heap of a file, which begins at ``place`` there."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.used = 0
        self.bytes: Bytes = np.empty(0, np.uint8)

    def reserve(self, count: int) -> None:
        """Have room for ``count`` more bytes."""
        need = self.used + count
        if need > self.bytes.size:
            grown = np.empty(max(need, 2 * self.bytes.size), np.uint8)
            grown[: self.used] = self.bytes[: self.used]
            self.bytes = grown

    def pack_strings(self, out: Bytes, at: int, inline: int, data: Any, offsets: Any) -> None:
        """Write a slot for each string into the rows of ``out``; there must be room."""
        from headwater.kernels.arrays import read_only
        from headwater.kernels.online_pack import pack_strings

        self.used = pack_strings(
            read_only(data),
            read_only(offsets),
            out.reshape(-1),
            out.shape[1],
            at,
            inline,
            self.bytes,
            self.used,
            self.place,
        )

    def pack_slots(self, out: Bytes, at: int, array: pa.Array, kind: int, item: int) -> None:
        """Write a slot for each value of a column of strings or lists."""
        from headwater.kernels.arrays import read_only
        from headwater.kernels.online_pack import pack_lists

        offsets = _offsets(array)
        if kind == STRING:
            buffer = array.buffers()[2]
            data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
            self.reserve(_outside(offsets, _SLOT_INLINE))
            self.pack_strings(out, at, _SLOT_INLINE, data, offsets)
            return
        assert kind == LIST
        items = array.values
        buffer = items.buffers()[1]
        data = np.frombuffer(buffer, np.uint8)[items.offset * item :] if buffer is not None else np.zeros(1, np.uint8)
        valid = np.zeros(0, np.uint8)
        if items.null_count:
            valid = items.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
        count = int(offsets[-1] - offsets[0])
        self.reserve(count * item + (count + 8 * len(array)) // 8 + len(array))
        self.used = pack_lists(
            read_only(data), item, read_only(offsets), read_only(valid), out.reshape(-1), out.shape[1], at,
            self.bytes, self.used, self.place,
        )  # fmt: skip


def _pack_sparse(
    records: Bytes, layout: Layout, sparse: Sequence[StoredColumn], columns: dict[str, pa.Array], heap: _Heap
) -> None:
    """Write the sparse columns: first a matrix of sixteen bytes for each value,
    then the lists of those that are there.
    """
    from headwater.kernels.arrays import read_only
    from headwater.kernels.online_pack import pack_sparse

    count, number = len(records), len(sparse)
    values, present = np.zeros((count, number * 16), np.uint8), np.zeros((count, number), np.uint8)
    for c in sparse:
        array, value = columns[c.name], c.value
        present[:, c.sparse] = array.is_valid().to_numpy(zero_copy_only=False)
        if value.is_slot:
            heap.pack_slots(values, 16 * c.sparse, array, value.kind, value.item)
        else:
            values[:, 16 * c.sparse : 16 * c.sparse + value.width] = _fixed(array, value.kind, value.width)
    heap.reserve(int(present.sum()) * 18 + 16 * count)
    heap.used = pack_sparse(
        read_only(values.reshape(-1)), read_only(present.reshape(-1)), number, records.reshape(-1), layout.width,
        layout.sparse_word, heap.bytes, heap.used, heap.place,
    )  # fmt: skip


def _fixed(array: pa.Array, kind: int, width: int) -> Bytes:
    """The values of a column as rows of bytes; nulls as zeros."""
    if kind == FLAG:
        filled = array.fill_null(False) if array.null_count else array
        flags: Bytes = filled.to_numpy(zero_copy_only=False).astype(np.uint8).reshape(-1, 1)
        return flags
    buffer = array.buffers()[1]
    raw = np.frombuffer(buffer, np.uint8, len(array) * width, array.offset * width).reshape(-1, width)
    if array.null_count:
        raw = raw.copy()
        raw[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return raw


def _offsets(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Where the values of strings or lists begin and end."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array) + 1, np.int64)
    return np.frombuffer(buffer, np.int32, len(array) + 1, array.offset * 4).astype(np.int64)


def order_words(array: pa.Array, column: str, where: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Whole numbers in the order of the values of a column."""
    if array.null_count:
        raise InputError.null_order(column, where)
    kind = array.type
    words: np.ndarray[Any, np.dtype[np.int64]]
    if pa.types.is_date32(kind):
        words = array.cast(pa.int32()).to_numpy().astype(np.int64)
    elif pa.types.is_timestamp(kind):
        words = array.cast(pa.int64()).to_numpy().copy()
    elif pa.types.is_uint64(kind):
        words = (array.to_numpy() ^ np.uint64(1 << 63)).view(np.int64)
    elif pa.types.is_integer(kind):
        words = array.to_numpy(zero_copy_only=False).astype(np.int64)
    elif pa.types.is_floating(kind):
        numbers = array.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        words = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    else:
        raise InputError.bad_order(column, str(kind), where)
    return words


def _outside(offsets: Any, inline: int) -> int:
    lengths = np.diff(offsets)
    return int(lengths[lengths > inline].sum())


def _aligned(at: int) -> int:
    return -(-at // 64) * 64


def _signed(seed: int) -> int:
    return seed - (1 << 64) if seed >= 1 << 63 else seed
