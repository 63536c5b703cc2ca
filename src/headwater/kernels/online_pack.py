"""Putting values without a fixed width into records, and moving records from one file to another.

A slot is sixteen bytes (`online_record`), or more for a key: the length, then the bytes themselves where they fit, else
a note of four bytes, and the place in the heap. Whoever packs records hands in a heap that is large enough; the heap
is written to the file behind the records, so places count from where this piece of it will lie.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Bytes, GivenBytes, GivenPositions, Positions, Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.memory import address_of, byte, copy_bytes, half, put_byte, put_half, put_word, quarter, word
from headwater.kernels.online_gather import LIST
from headwater.kernels.online_record import INLINE, KEY, SLOT_INLINE, WIDTH, key_address, key_length

__all__ = ["copy_keys", "copy_records", "heap_bytes", "measure_keys", "pack_lists", "pack_sparse", "pack_strings"]

_HEAP = 4


@inlined
def _put_slot(slot: int, at: int, length: int, inline: int, note: int, to: int, place: int) -> int:
    """Write a slot for the bytes at ``at``; gives how many bytes of the heap, at ``to``, it took."""
    put_half(slot, np.uint64(length))
    if length <= inline:
        copy_bytes(slot + 4, at, length)
        return 0
    put_half(slot + 4, np.uint64(note))
    put_word(slot + 8, np.uint64(place))
    copy_bytes(to, at, length)
    return length


@kernel
def pack_strings(
    data: GivenBytes,
    offsets: GivenPositions,
    out: Bytes,
    stride: int,
    at: int,
    inline: int,
    heap: Bytes,
    used: int,
    place: int,
) -> int:
    """Write a slot for each string, ``stride`` bytes apart, the first one at ``at``; gives how much of ``heap`` is used
    then.

    The heap's first byte will lie at ``place`` of the file's heap, and ``used`` bytes of it are taken.
    """
    source = address_of(data)
    to = address_of(out) + at
    pool = address_of(heap)
    for i in range(offsets.size - 1):
        begin = offsets[i]
        used += _put_slot(to + i * stride, source + begin, offsets[i + 1] - begin, inline, 0, pool + used, place + used)
    return used


@kernel
def pack_lists(
    items: GivenBytes,
    width: int,
    offsets: GivenPositions,
    valid: GivenBytes,
    out: Bytes,
    stride: int,
    at: int,
    heap: Bytes,
    used: int,
    place: int,
) -> int:
    """The same for lists of items of ``width`` bytes; ``valid`` has a byte per item, or none if no item is null."""
    source = address_of(items)
    to = address_of(out) + at
    pool = address_of(heap)
    for i in range(offsets.size - 1):
        begin = offsets[i]
        length = offsets[i + 1] - begin
        slot = to + i * stride
        put_half(slot, np.uint64(length))
        put_half(slot + 4, np.uint64(0))
        put_word(slot + 8, np.uint64(place + used))
        copy_bytes(pool + used, source + begin * width, length * width)
        used += length * width
        if valid.size:
            whole = True
            for k in range(length):
                if valid[begin + k] == 0:
                    whole = False
            if not whole:
                put_half(slot + 4, np.uint64(1))
                for k in range(length):
                    if k & 7 == 0:
                        put_byte(pool + used + (k >> 3), np.uint64(0))
                    if valid[begin + k] != 0:
                        bits = byte(pool + used + (k >> 3))
                        put_byte(pool + used + (k >> 3), bits | (np.uint64(1) << np.uint64(k & 7)))
                used += (length + 7) // 8
    return used


@kernel
def pack_sparse(
    values: GivenBytes,
    present: GivenBytes,
    columns: int,
    out: Bytes,
    stride: int,
    at: int,
    heap: Bytes,
    used: int,
    place: int,
) -> int:
    """Write the sparse values of each record to the heap, and where they lie to the record.

    ``values`` has sixteen bytes for each record and column, and ``present`` a byte; the format is
    `online_gather.sparse_value`.
    """
    source = address_of(values)
    to = address_of(out) + at
    pool = address_of(heap)
    for i in range(present.size // columns):
        count = 0
        for c in range(columns):
            if present[i * columns + c] != 0:
                count += 1
        if count == 0:
            put_word(to + i * stride, np.uint64(0))
            continue
        head = ((2 + 2 * count + 7) // 8) * 8
        list_at = pool + used
        put_word(to + i * stride, np.uint64(place + used + 1))
        put_byte(list_at, np.uint64(count & 255))
        put_byte(list_at + 1, np.uint64(count >> 8))
        k = 0
        for c in range(columns):
            if present[i * columns + c] != 0:
                put_byte(list_at + 2 + 2 * k, np.uint64(c & 255))
                put_byte(list_at + 3 + 2 * k, np.uint64(c >> 8))
                copy_bytes(list_at + head + 16 * k, source + 16 * (i * columns + c), 16)
                k += 1
        used += head + 16 * count
    return used


# ---------------------------------------------------------------------- records that move


@inlined
def _outside(slot: int, what: int, width: int) -> int:
    """How many bytes of the heap a slot refers to."""
    length = np.int64(half(slot))
    if what == LIST:
        return length * width + ((length + 7) // 8 if half(slot + 4) != np.uint64(0) else 0)
    return length if length > SLOT_INLINE else 0


@inlined
def _move_slot(slot: int, what: int, width: int, heap: int, to: int, place: int) -> int:
    """Copy what a slot refers to, and let the slot refer to the copy."""
    size = _outside(slot, what, width)
    if size > 0:
        copy_bytes(to, heap + np.int64(word(slot + 8)), size)
    if size > 0 or what == LIST:  # an empty list has a place, too
        put_word(slot + 8, np.uint64(place))
    return size


@inlined
def _sparse_head(count: int) -> int:
    return ((2 + 2 * count + 7) // 8) * 8


@kernel
def heap_bytes(
    records: Positions, heaps: Positions, layers: Rows, shape: Positions, slots: Rows, sparse: int, kinds: Rows
) -> int:
    """How much heap the records need that `copy_records` would copy."""
    total = 0
    for i in range(records.size):
        record = records[i]
        if shape[KEY] == 0 and key_length(record, shape) > shape[INLINE]:
            total += key_length(record, shape)
        for s in range(slots.shape[0]):
            total += _outside(record + slots[s, 0], slots[s, 1], slots[s, 2])
        if sparse >= 0:
            place = np.int64(word(record + sparse)) - 1
            if place >= 0:
                blob = layers[heaps[i], _HEAP] + place
                count = np.int64(quarter(blob))
                total += _sparse_head(count) + 16 * count
                for k in range(count):
                    column = np.int64(quarter(blob + 2 + 2 * k))
                    if kinds[column, 0] != 0:
                        total += _outside(blob + _sparse_head(count) + 16 * k, kinds[column, 0], kinds[column, 1])
    return total


@kernel
def copy_records(
    records: Positions,
    heaps: Positions,
    layers: Rows,
    shape: Positions,
    slots: Rows,
    sparse: int,
    kinds: Rows,
    out: Bytes,
    heap: Bytes,
    place: int,
) -> int:
    """Copy records one after the other to ``out``, and what they refer to, to ``heap``; gives how much of it is used.

    ``slots`` has offset, kind and width of each column that is a slot; ``sparse`` is where the word of sparse values
    is, or -1, and ``kinds`` has kind (0: it is no slot) and width of each sparse column. The heap's first byte will lie
    at ``place``.
    """
    width = shape[WIDTH]
    to = address_of(out)
    pool = address_of(heap)
    used = 0
    for i in range(records.size):
        record = to + i * width
        copy_bytes(record, records[i], width)
        old = layers[heaps[i], _HEAP]
        if shape[KEY] == 0:
            length = key_length(record, shape)
            if length > shape[INLINE]:
                copy_bytes(pool + used, old + np.int64(word(record + 8)), length)
                put_word(record + 8, np.uint64(place + used))
                used += length
        for s in range(slots.shape[0]):
            used += _move_slot(record + slots[s, 0], slots[s, 1], slots[s, 2], old, pool + used, place + used)
        if sparse >= 0:
            at = np.int64(word(record + sparse)) - 1
            if at >= 0:
                count = np.int64(quarter(old + at))
                head = _sparse_head(count)
                blob = pool + used
                copy_bytes(blob, old + at, head + 16 * count)
                put_word(record + sparse, np.uint64(place + used + 1))
                used += head + 16 * count
                for k in range(count):
                    column = np.int64(quarter(blob + 2 + 2 * k))
                    if kinds[column, 0] != 0:
                        slot = blob + head + 16 * k
                        used += _move_slot(slot, kinds[column, 0], kinds[column, 1], old, pool + used, place + used)
    return used


@kernel
def measure_keys(records: Positions, shape: Positions, offsets: Positions) -> int:
    """The offsets of the keys of records, and their sum."""
    total = 0
    for i in range(records.size):
        offsets[i] = total
        total += key_length(records[i], shape)
    offsets[records.size] = total
    return total


@kernel
def copy_keys(
    records: Positions, heaps: Positions, layers: Rows, shape: Positions, offsets: Positions, out: Bytes
) -> None:
    """The bytes of the keys of records, one after the other."""
    to = address_of(out)
    for i in range(records.size):
        at = key_address(records[i], shape, layers[heaps[i], _HEAP])
        copy_bytes(to + offsets[i], at, offsets[i + 1] - offsets[i])
