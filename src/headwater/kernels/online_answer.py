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

That the places lie inside of ``body`` has been checked by whoever remembers them; what the offsets say is checked here.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Bytes, GivenBytes, Positions, Rows
from headwater.kernels.compiled import kernel, shared
from headwater.kernels.memory import address_of, byte, half, put_word, word
from headwater.kernels.online_find import locate
from headwater.kernels.online_gather import gather
from headwater.kernels.online_record import NULLS

__all__ = ["DAMAGED", "UNREAD", "answer_request"]

DAMAGED = -1
"""The record file is damaged."""
UNREAD = -2
"""The keys need a closer look: they are not plain ASCII, or their offsets are wrong."""

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
