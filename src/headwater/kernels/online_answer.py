"""From the body of a request to the body of its answer, in one call.

The problem: a request of 100 keys spends a few microseconds in the kernels that find and copy records, and several
times that in making the arrays between them and in calling them. The idea: where the key is one plain column and all
columns that are asked for have a fixed width, one kernel reads the keys where they lie in the request and writes the
values where they lie in the answer. It is made of the same parts as the separate kernels.

``request`` says where the keys are, as distances from the beginning of ``body``::

    [number of keys, place of their offsets (32 bits each) or -1, place of their data, bytes of their data,
     bytes of a key that has no offsets, 1 if the data has to be UTF-8]

``table`` describes the version::

    [parts, seed, bytes of null bits in a record, shape of a record (`online_record`)...]

Where columns have no fixed width, the size of the answer is known only after the records were found, so there it takes
two calls: `find_request`, and `fill_answer`, which lays out the frame as well. ``frame`` says where its numbers are::

    [place of the buffers, place of the length of all buffers, place of the description of the buffers,
     place of the null count of the first node]

That the places lie inside of ``body`` has been checked by whoever remembers them; what the offsets say is checked here.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Bytes, GivenBytes, Positions, Ranges, Rows
from headwater.kernels.compiled import kernel, shared
from headwater.kernels.memory import address_of, byte, copy_bytes, half, put_byte, put_word, word
from headwater.kernels.online_find import locate
from headwater.kernels.online_gather import LIST, TOO_LARGE, copy_measured, gather, measure
from headwater.kernels.online_record import NULLS

__all__ = ["DAMAGED", "LARGE", "UNREAD", "answer_request", "fill_answer", "find_request"]

DAMAGED = -1
"""The record file is damaged."""
UNREAD = -2
"""The keys need a closer look: they are not plain ASCII, or their offsets are wrong."""

LARGE = -3
"""A column of the answer has more than fits in 32 bits."""

_SHAPE = 3
_HIGH_BITS = np.uint64(0x8080808080808080)


@shared
def _is_ascii(at: int, length: int) -> bool:
    seen = np.uint64(0)
    k = np.int64(0)
    while k + 8 <= length:
        seen |= word(at + k)
        k += 8
    while k < length:
        seen |= byte(at + k)
        k += 1
    return seen & _HIGH_BITS == np.uint64(0)


@shared
def _read_offsets(base: int, request: Positions, offsets: Positions) -> bool:
    """Where each key begins and ends in the data; whether that is in order, and inside of it."""
    n, place, most, width = request[0], request[1], request[3], request[4]
    if place < 0:
        for i in range(n + 1):
            offsets[i] = i * width
        return True
    before = np.int64(0)
    is_sound = most <= np.int64(0x7FFFFFFF)  # so a negative offset, read without its sign, is beyond the end
    for i in range(n + 1):
        at = np.int64(half(base + place + 4 * i))
        is_sound &= at >= before
        offsets[i] = at
        before = at
    return is_sound and before <= most


@kernel
def answer_request(
    body: GivenBytes, request: Positions, layers: Rows, table: Positions, columns: Rows, out: Bytes
) -> int:
    """Fill the frame in ``out`` with the values of the keys in ``body``; give how many were not found, or why it is not
    filled.

    ``layers`` is that of `online_find`, ``columns`` that of `online_gather` for columns of fixed width, without status.
    """
    n = request[0]
    base = address_of(body)
    offsets = np.empty(n + 1, np.int64)
    if not _read_offsets(base, request, offsets):
        return UNREAD
    if request[5] != 0 and not _is_ascii(base + request[2], request[3]):
        return UNREAD
    records = np.empty(n, np.int64)
    heaps = np.zeros(n, np.int64)
    shape = table[_SHAPE:]
    missing = locate(base + request[2], offsets, layers, table[0], shape, table[1], records, heaps)
    counts = np.empty(columns.shape[0], np.int64)
    to = address_of(out)
    status = np.empty(0, np.uint8)
    if gather(records, heaps, layers, columns, shape[NULLS], table[2], status, to, counts) < 0:
        return DAMAGED
    for c in range(columns.shape[0]):
        put_word(to + columns[c, 6], np.uint64(counts[c]))
    return missing


@kernel
def find_request(
    body: GivenBytes,
    request: Positions,
    layers: Rows,
    table: Positions,
    slots: Rows,
    found: Positions,
    offsets: Ranges,
    totals: Positions,
) -> int:
    """Find the records of the keys in ``body``; give how many there are not, or why it was not done.

    ``found`` gets the address of each record and then the row of ``layers`` of each. ``slots`` are the columns without
    a fixed width, which are measured as by `measure_strings`. The last of ``totals`` is by how much they lengthen a
    frame.
    """
    n = request[0]
    base = address_of(body)
    places = np.empty(n + 1, np.int64)
    if not _read_offsets(base, request, places):
        return UNREAD
    if request[5] != 0 and not _is_ascii(base + request[2], request[3]):
        return UNREAD
    records = found[:n]
    heaps = found[n:]
    heaps[:] = 0
    shape = table[_SHAPE:]
    missing = locate(base + request[2], places, layers, table[0], shape, table[1], records, heaps)
    code = measure(records, heaps, layers, slots, shape[NULLS], offsets, totals)
    if code < 0:
        return LARGE if code == TOO_LARGE else DAMAGED
    more = np.int64(0)
    for c in range(slots.shape[0]):
        if slots[c, 0] == LIST:
            more += _padded((totals[c] + 7) // 8) + _padded(totals[c] * slots[c, 2])
        else:
            more += _padded(totals[c])
    totals[slots.shape[0]] = more
    return missing


@shared
def _padded(size: int) -> int:
    return (size + 7) // 8 * 8


@shared
def _lay_out(
    slots: Rows,
    slots_at: Rows,
    totals: Positions,
    frame: Positions,
    image: int,
    image_bytes: int,
    empty: Rows,
    to: int,
    buffers: Rows,
) -> None:
    """Write everything of a frame but values, and where its buffers are to ``buffers``."""
    copy_bytes(to, image, frame[0])
    for b in range(buffers.shape[0]):
        buffers[b, 1] = empty[b, 1]
    for c in range(slots.shape[0]):
        first = slots_at[c, 0]
        if slots[c, 0] == LIST:
            buffers[first + 2, 1] = (totals[c] + 7) // 8
            buffers[first + 3, 1] = totals[c] * slots[c, 2]
            put_word(to + frame[3] - 8 + 16 * (slots_at[c, 1] + 1), np.uint64(totals[c]))
        else:
            buffers[first + 2, 1] = totals[c]
    at = np.int64(0)
    for b in range(buffers.shape[0]):
        put_word(to + frame[2] + 16 * b, np.uint64(at))
        put_word(to + frame[2] + 16 * b + 8, np.uint64(buffers[b, 1]))
        buffers[b, 0] = frame[0] + at
        at += _padded(buffers[b, 1])
    put_word(to + frame[1], np.uint64(at))
    put_word(to + frame[0] + at, word(image + image_bytes - 8))
    for c in range(slots.shape[0]):
        if slots[c, 0] == LIST:
            validity = to + buffers[slots_at[c, 0] + 2, 0]
            for k in range(totals[c] // 8):
                put_byte(validity + k, np.uint64(0xFF))
            if totals[c] % 8:
                put_byte(validity + totals[c] // 8, (np.uint64(1) << np.uint64(totals[c] % 8)) - np.uint64(1))


@shared
def _placed(columns: Rows, columns_at: Rows, frame: Positions, image: int, empty: Rows, to: int, buffers: Rows) -> Rows:
    """The columns with their places in a frame that was laid out; their validity is copied from an empty one."""
    mine = columns.copy()
    for c in range(columns.shape[0]):
        first = columns_at[c, 0]
        copy_bytes(to + buffers[first, 0], image + empty[first, 0], empty[first, 1])
        mine[c, 5] = buffers[first, 0]
        mine[c, 7] = buffers[first + 1, 0]
        mine[c, 6] = frame[3] + 16 * columns_at[c, 1]
    return mine


@kernel
def fill_answer(
    found: Positions,
    layers: Rows,
    table: Positions,
    columns: Rows,
    columns_at: Rows,
    slots: Rows,
    slots_at: Rows,
    offsets: Ranges,
    totals: Positions,
    frame: Positions,
    image: GivenBytes,
    empty: Rows,
    out: Bytes,
    buffers: Rows,
) -> int:
    """Make the frame in ``out`` of the records that `find_request` has found; give 0, or -1 for a damaged file.

    ``columns_at`` and ``slots_at`` have for each column its first buffer and its node. ``image`` is the frame of as
    many rows with nothing of variable size in it, and ``empty`` where its buffers are, and how long; ``buffers`` gets
    that of the new one.
    """
    n = found.size // 2
    records = found[:n]
    heaps = found[n:]
    to = address_of(out)
    of = address_of(image)
    nulls = table[_SHAPE + NULLS]
    _lay_out(slots, slots_at, totals, frame, of, image.size, empty, to, buffers)
    mine = _placed(columns, columns_at, frame, of, empty, to, buffers)
    counts = np.empty(columns.shape[0], np.int64)
    status = np.empty(0, np.uint8)
    if gather(records, heaps, layers, mine, nulls, table[2], status, to, counts) < 0:
        return DAMAGED
    for c in range(columns.shape[0]):
        put_word(to + mine[c, 6], np.uint64(counts[c]))
    theirs = _placed(slots, slots_at, frame, of, empty, to, buffers)
    for c in range(slots.shape[0]):
        first = slots_at[c, 0]
        is_list = slots[c, 0] == LIST
        theirs[c, 6] = buffers[first + 1, 0]
        theirs[c, 7] = buffers[first + 2 + (1 if is_list else 0), 0]
        theirs[c, 9] = buffers[first + 2, 0]
    pairs = np.empty(2 * slots.shape[0], np.int64)
    copy_measured(records, heaps, layers, theirs, nulls, offsets, to, pairs)
    for c in range(slots.shape[0]):
        at = to + frame[3] + 16 * slots_at[c, 1]
        put_word(at, np.uint64(pairs[2 * c]))
        if slots[c, 0] == LIST:
            put_word(at + 16, np.uint64(pairs[2 * c + 1]))
    return 0
