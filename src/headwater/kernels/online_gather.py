"""Taking values out of records into the buffers of an Arrow record batch.

`columns` has one row per column of the answer::

    [what, offset in the record, width, null bit or -1, sparse number or -1, place of validity, place of offsets,
     place of values, value where there is none, place of the validity of items]

A column of fixed width has no offsets; there the place is that of its null count in the message. Places are distances
from the beginning of ``out``; ``what`` is one of the numbers below. The width of a string is how many bytes of it fit
into its slot. ``records`` has the address of
the record of each row, or 0, and ``heaps`` the row of ``layers`` that it belongs to (`online_find`).

Every length and place that is read from a record is held against the bounds of the heap: of a damaged file kernels make
an error (a negative result), never an access outside.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Bytes, GivenBytes, Positions, Ranges, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.memory import (
    address_of,
    byte,
    copy_bytes,
    half,
    prefetch_at,
    put_byte,
    put_half,
    put_quarter,
    put_word,
    quarter,
    word,
)

__all__ = [
    "FIXED",
    "FLAG",
    "FOUND",
    "LIST",
    "STATUS",
    "STRING",
    "TOO_LARGE",
    "copy_measured",
    "copy_strings",
    "gather",
    "gather_columns",
    "measure",
    "measure_strings",
]

FIXED = 0
FLAG = 1
STRING = 2
LIST = 3
FOUND = 4
STATUS = 5

TOO_LARGE = -2
"""A column has more than fits in 32 bits."""

_HEAP = 4
_HEAP_BYTES = 5
_DAMAGED = -1


@inlined
def _is_null(record: int, nulls: int, bit: int) -> bool:
    return (byte(record + nulls + (bit >> 3)) >> np.uint64(bit & 7)) & np.uint64(1) != np.uint64(0)


@shared
def sparse_value(record: int, offset: int, number: int, heap: int, heap_bytes: int) -> int:
    """Where the value of a sparse column lies, 0 if the record has none; -1 for a damaged heap.

    The word of sparse values is the place of a list in the heap, plus one: how many there are, and their column
    numbers, as 16 bits each, filled up to a multiple of eight bytes; then sixteen bytes for each.
    """
    place = np.int64(word(record + offset)) - 1
    if place < 0:
        return 0
    if place + 2 > heap_bytes:
        return _DAMAGED
    count = np.int64(quarter(heap + place))
    values = place + ((2 + 2 * count + 7) // 8) * 8
    if values + 16 * count > heap_bytes:
        return _DAMAGED
    for k in range(count):
        if np.int64(quarter(heap + place + 2 + 2 * k)) == number:
            return heap + values + 16 * k
    return 0


@inlined
def _value_of(record: int, heap: int, offset: int, bit: int, number: int, layers: Rows, nulls: int) -> int:
    """Where the value of a column lies, 0 if it is null; -1 for a damaged heap."""
    if number >= 0:
        return sparse_value(record, offset, number, layers[heap, _HEAP], layers[heap, _HEAP_BYTES])
    if bit >= 0 and _is_null(record, nulls, bit):
        return 0
    return record + offset


@inlined
def _put(to: int, at: int, width: int, i: int) -> None:
    if width == 4:
        put_half(to + 4 * i, half(at))
    elif width == 8:
        put_word(to + 8 * i, word(at))
    elif width == 1:
        put_byte(to + i, byte(at))
    elif width == 2:
        put_quarter(to + 2 * i, quarter(at))
    else:
        put_word(to + 16 * i, word(at))
        put_word(to + 16 * i + 8, word(at + 8))


@inlined
def _put_number(to: int, value: np.uint64, width: int, i: int) -> None:
    if width == 4:
        put_half(to + 4 * i, value)
    elif width == 8:
        put_word(to + 8 * i, value)
    elif width == 1:
        put_byte(to + i, value)
    elif width == 2:
        put_quarter(to + 2 * i, value)
    else:
        put_word(to + 16 * i, value)
        put_word(to + 16 * i + 8, np.uint64(0))


@inlined
def _clear_bit(to: int, i: int) -> None:
    put_byte(to + (i >> 3), byte(to + (i >> 3)) & ~(np.uint64(1) << np.uint64(i & 7)))


@inlined
def _set_bit(to: int, i: int) -> None:
    put_byte(to + (i >> 3), byte(to + (i >> 3)) | (np.uint64(1) << np.uint64(i & 7)))


@shared
def _all_there(records: Positions, nulls: int, null_bytes: int) -> bool:
    """Whether there is a record for each row, and none of their values is null."""
    n = records.size
    for i in range(n):
        record = records[i]
        if i + 8 < n and records[i + 8] != 0:
            prefetch_at(records[i + 8])
        if record == 0:
            return False
        for k in range(null_bytes):
            if byte(record + nulls + k) != np.uint64(0):
                return False
    return True


@shared
def _copy_fixed(records: Positions, offset: int, width: int, values: int) -> None:
    """Copy the values of a column where all are there."""
    if width == 4:
        for i in range(records.size):
            put_half(values + 4 * i, half(records[i] + offset))
    elif width == 8:
        for i in range(records.size):
            put_word(values + 8 * i, word(records[i] + offset))
    else:
        for i in range(records.size):
            _put(values, records[i] + offset, width, i)


@shared
def _copy_checked(records: Positions, heaps: Positions, layers: Rows, column: Positions, nulls: int, base: int) -> int:
    """Copy the values of a column where some may be null; gives how many are, -1 for a damaged heap."""
    validity = base + column[5]
    values = base + column[7]
    fill = np.uint64(column[8])
    offset, bit, number = column[1], column[3], column[4]
    missing = 0
    for i in range(records.size):
        at = np.int64(0)
        if records[i] != 0:
            at = _value_of(records[i], heaps[i], offset, bit, number, layers, nulls)
        if at == _DAMAGED:
            return _DAMAGED
        if at == 0:
            _clear_bit(validity, i)
            missing += 1
            if column[0] == FIXED:
                _put_number(values, fill, column[2], i)
        elif column[0] == FIXED:
            _put(values, at, column[2], i)
        elif byte(at) != np.uint64(0):
            _set_bit(values, i)
    return missing


@shared
def gather(
    records: Positions,
    heaps: Positions,
    layers: Rows,
    columns: Rows,
    nulls: int,
    null_bytes: int,
    status: GivenBytes,
    base: int,
    counts: Positions,
) -> int:
    """What `gather_columns` does, into memory that begins at an address."""
    plain = _all_there(records, nulls, null_bytes)
    for c in range(columns.shape[0]):
        what = columns[c, 0]
        counts[c] = 0
        if what == FIXED and plain and columns[c, 4] < 0:
            _copy_fixed(records, columns[c, 1], columns[c, 2], base + columns[c, 7])
        elif what in (FIXED, FLAG):
            missing = _copy_checked(records, heaps, layers, columns[c], nulls, base)
            if missing == _DAMAGED:
                return _DAMAGED
            counts[c] = missing
        elif what == FOUND:
            for i in range(records.size):
                if records[i] != 0:
                    _set_bit(base + columns[c, 7], i)
        elif what == STATUS:
            for i in range(records.size):
                put_byte(base + columns[c, 7] + i, np.uint64(status[i]))
    return 0


@kernel
def gather_columns(
    records: Positions,
    heaps: Positions,
    layers: Rows,
    columns: Rows,
    nulls: int,
    null_bytes: int,
    status: GivenBytes,
    out: Bytes,
    counts: Positions,
) -> int:
    """Fill the buffers of all columns of fixed width, and of found and status; the nulls of each go to ``counts``.

    ``nulls`` is where the null bits of a record begin, ``null_bytes`` how many bytes they are. Gives -1 for a damaged
    file.
    """
    return gather(records, heaps, layers, columns, nulls, null_bytes, status, address_of(out), counts)


@inlined
def _list_bytes(at: int, width: int) -> int:
    """How many bytes of the heap the list behind a slot takes: its items, then their bits of nulls."""
    length = np.int64(half(at))
    return length * width + ((length + 7) // 8 if half(at + 4) != np.uint64(0) else 0)


@shared
def measure(
    records: Positions, heaps: Positions, layers: Rows, columns: Rows, nulls: int, offsets: Ranges, totals: Positions
) -> int:
    """What `measure_strings` does."""
    n = records.size
    for c in range(columns.shape[0]):
        is_list, offset, width = columns[c, 0] == LIST, columns[c, 1], columns[c, 2]
        bit, number = columns[c, 3], columns[c, 4]
        total = np.int64(0)
        for i in range(n):
            offsets[c, i] = total
            if records[i] == 0:
                continue
            at = _value_of(records[i], heaps[i], offset, bit, number, layers, nulls)
            if at == _DAMAGED:
                return _DAMAGED
            if at == 0:
                continue
            length = np.int64(half(at))
            if is_list or length > width:
                place = np.int64(word(at + 8))
                size = _list_bytes(at, width) if is_list else length
                if place < 0 or place + size > layers[heaps[i], _HEAP_BYTES]:
                    return _DAMAGED
                prefetch_at(layers[heaps[i], _HEAP] + place)
            total += length
            if total > np.int64(0x7FFFFFFF):
                return TOO_LARGE
        offsets[c, n] = total
        totals[c] = total
    return 0


@kernel
def measure_strings(
    records: Positions, heaps: Positions, layers: Rows, columns: Rows, nulls: int, offsets: Ranges, totals: Positions
) -> int:
    """The offsets of the values of columns without a fixed width, and their sums; in items for lists, else in bytes.

    ``columns`` has only such columns. Gives -1 for a damaged file, and -2 if one of them has more than fits in 32 bits.
    """
    return measure(records, heaps, layers, columns, nulls, offsets, totals)


@inlined
def _copy_short(to: int, source: int, length: int) -> None:
    """Copy bytes, the last eight of them at once: of short strings the rest behind whole words is what takes long."""
    if length < 8:
        copy_bytes(to, source, length)
        return
    k = np.int64(0)
    while k + 8 < length:
        put_word(to + k, word(source + k))
        k += 8
    put_word(to + length - 8, word(source + length - 8))


@shared
def copy_measured(
    records: Positions,
    heaps: Positions,
    layers: Rows,
    columns: Rows,
    nulls: int,
    offsets: Ranges,
    base: int,
    counts: Positions,
) -> None:
    """What `copy_strings` does, into memory that begins at an address."""
    n = records.size
    for c in range(columns.shape[0]):
        is_list, offset, width = columns[c, 0] == LIST, columns[c, 1], columns[c, 2]
        bit, number = columns[c, 3], columns[c, 4]
        validity, values = base + columns[c, 5], base + columns[c, 7]
        items = base + columns[c, 9]
        copy_bytes(base + columns[c, 6], address_of(offsets) + 4 * c * (n + 1), 4 * (n + 1))
        missing = 0
        missing_items = 0
        for i in range(n):
            at = np.int64(0)
            if records[i] != 0:
                at = _value_of(records[i], heaps[i], offset, bit, number, layers, nulls)
            if at <= 0:
                _clear_bit(validity, i)
                missing += 1
                continue
            length = np.int64(half(at))
            begin = np.int64(offsets[c, i])
            if not is_list:
                source = at + 4 if length <= width else layers[heaps[i], _HEAP] + np.int64(word(at + 8))
                _copy_short(values + begin, source, length)
            else:
                source = layers[heaps[i], _HEAP] + np.int64(word(at + 8))
                copy_bytes(values + begin * width, source, length * width)
                if half(at + 4) != np.uint64(0):
                    bits = source + length * width
                    for k in range(length):
                        if (byte(bits + (k >> 3)) >> np.uint64(k & 7)) & np.uint64(1) == np.uint64(0):
                            _clear_bit(items, begin + k)
                            missing_items += 1
        counts[2 * c] = missing
        counts[2 * c + 1] = missing_items


@kernel
def copy_strings(
    records: Positions,
    heaps: Positions,
    layers: Rows,
    columns: Rows,
    nulls: int,
    offsets: Ranges,
    out: Bytes,
    counts: Positions,
) -> None:
    """Fill the buffers of the columns that `measure_strings` has measured; the nulls of each, and of the items of
    lists, go to ``counts``, in pairs.
    """
    copy_measured(records, heaps, layers, columns, nulls, offsets, address_of(out), counts)
