"""Merging up to four runs into one, copying each row once.

Merging two by two copies a row twice as often as merging four at once, and copying is what merging costs. So the runs are walked together,
a stretch of hashes at a time that fits the cache: the rows of the first two are put in order by their hashes and addresses alone,
those of the others too, and then rows are copied in the order of both lists, adding up what is equal. A row's address has three bits to spare,
which say what run it is of.

The result is that of `headwater.kernels.merge.merge`: sorted, consolidated, without rows below the bound, with a heap of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.consolidate import OVERFLOW, add_weights_at, weightless_at, write_line
from headwater.kernels.memory import address_of, copy_words, load, store
from headwater.kernels.merge import close_directory, own_row
from headwater.kernels.words import compare_at

__all__ = ["MOST_AT_ONCE", "merge_many"]

MOST_AT_ONCE = 4
"""How many runs can be merged by one call."""

_STRETCH = 1024
_RUN = np.int64(7)

Hashes = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@inlined
def _end_of(hashes: int, a: int, n: int, limit: np.uint64) -> int:
    """The first position from ``a`` on whose hash is greater than the limit."""
    step = np.int64(32)
    e = a
    while e + step < n and np.uint64(load(hashes, e + step)) <= limit:
        e += step
        step *= 2
    b = min(n, e + step)
    while e < b:
        middle = (e + b) >> 1
        if np.uint64(load(hashes, middle)) <= limit:
            e = middle + 1
        else:
            b = middle
    return e


@shared
def _order_two(
    runs: Rows, r: int, at: Words, ends: Words, step: int, parts: int, count: int, hashes: Hashes, places: Words
) -> int:
    """List the hashes and addresses of stretches of the runs ``r`` and ``r + 1`` in their common order; give how many."""
    h1 = runs[r, 0] + 8 * at[r]
    h2 = runs[r + 1, 0] + 8 * at[r + 1]
    end1 = runs[r, 0] + 8 * ends[r]
    end2 = runs[r + 1, 0] + 8 * ends[r + 1]
    row1 = runs[r, 1] + step * at[r] + r
    row2 = runs[r + 1, 1] + step * at[r + 1] + r + 1
    base1 = runs[r, 2]
    base2 = runs[r + 1, 2]
    m = np.int64(0)
    while h1 < end1 and h2 < end2:
        x = np.uint64(load(h1, 0))
        y = np.uint64(load(h2, 0))
        first = x < y
        if x == y:
            first = compare_at(row1 & ~_RUN, base1, row2 & ~_RUN, base2, parts, count) <= 0
        one = -np.int64(first)
        hashes[m] = np.uint64(np.int64(y) + ((np.int64(x) - np.int64(y)) & one))
        places[m] = row2 + ((row1 - row2) & one)
        m += 1
        row1 += step & one
        h1 += 8 & one
        row2 += step & ~one
        h2 += 8 & ~one
    if h1 == end1:
        h1, end1, row1 = h2, end2, row2
    while h1 < end1:
        hashes[m] = np.uint64(load(h1, 0))
        places[m] = row1
        m += 1
        h1 += 8
        row1 += step
    return m


@shared
def _order_lists(
    runs: Rows,
    parts: int,
    count: int,
    lefts: int,
    left_hashes: Hashes,
    left: Words,
    rights: int,
    right_hashes: Hashes,
    right: Words,
    hashes: Hashes,
    places: Words,
) -> int:
    """Put two lists into one, in order; give how long it is."""
    i = np.int64(0)
    j = np.int64(0)
    m = np.int64(0)
    h1 = address_of(left_hashes)
    h2 = address_of(right_hashes)
    p1 = address_of(left)
    p2 = address_of(right)
    to = address_of(hashes)
    place = address_of(places)
    while i < lefts and j < rights:
        x = np.uint64(load(h1, i))
        y = np.uint64(load(h2, j))
        a = load(p1, i)
        b = load(p2, j)
        first = x < y
        if x == y:
            first = compare_at(a & ~_RUN, runs[a & _RUN, 2], b & ~_RUN, runs[b & _RUN, 2], parts, count) <= 0
        one = -np.int64(first)
        store(to, m, np.int64(y) + ((np.int64(x) - np.int64(y)) & one))
        store(place, m, b + ((a - b) & one))
        m += 1
        i += 1 & one
        j += 1 & ~one
    copy_words(to + 8 * m, h1 + 8 * i, lefts - i)
    copy_words(place + 8 * m, p1 + 8 * i, lefts - i)
    m += lefts - i
    copy_words(to + 8 * m, h2 + 8 * j, rights - j)
    copy_words(place + 8 * m, p2 + 8 * j, rights - j)
    return m + rights - j


@kernel
def merge_many(  # noqa: C901
    runs: Rows,
    width: int,
    payload: int,
    order: Rows,
    slots: npt.NDArray[np.int64],
    bound_word: int,
    bound: int,
    bits: int,
    out_hashes: Hashes,
    out: Rows,
    heap: Bytes,
    directory: npt.NDArray[np.int32],
    line: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Merge the runs of four lines, of which the last may be without rows; see `headwater.kernels.merge.merge`."""
    plain = slots.size == 0 and bound_word < 0
    step = np.int64(8 * width)
    parts = address_of(order)
    count = order.shape[0]
    shift = np.uint64(64 - bits)
    for b in range(directory.size):
        directory[b] = 0
    at = np.zeros(MOST_AT_ONCE, np.int64)
    ends = np.zeros(MOST_AT_ONCE, np.int64)
    total = np.int64(0)
    for r in range(MOST_AT_ONCE):
        total += runs[r, 5]
    pieces = np.int64(0)
    while (total >> pieces) > _STRETCH:
        pieces += 1
    room = 2 * _STRETCH
    hashes = np.empty((3, room), np.uint64)
    places = np.empty((3, room), np.int64)
    to = address_of(out)
    m = np.int64(0)
    used = np.int64(0)
    for piece in range(1 << pieces):
        limit = np.uint64(0xFFFFFFFFFFFFFFFF)
        if pieces > 0:
            limit = (np.uint64(piece) << np.uint64(64 - pieces)) | (limit >> np.uint64(pieces))
        here = np.int64(0)
        for r in range(MOST_AT_ONCE):
            ends[r] = _end_of(runs[r, 0], at[r], runs[r, 5], limit)
            here += ends[r] - at[r]
        if here > room:
            room = here
            hashes = np.empty((3, room), np.uint64)
            places = np.empty((3, room), np.int64)
        lefts = _order_two(runs, 0, at, ends, step, parts, count, hashes[0], places[0])
        rights = _order_two(runs, 2, at, ends, step, parts, count, hashes[1], places[1])
        here = _order_lists(
            runs,
            parts,
            count,
            lefts,
            hashes[0],
            places[0],
            rights,
            hashes[1],
            places[1],
            hashes[2],
            places[2],
        )
        for r in range(MOST_AT_ONCE):
            at[r] = ends[r]
        k = np.int64(0)
        while k < here:
            h = hashes[2, k]
            row = places[2, k] & ~_RUN
            base = runs[places[2, k] & _RUN, 2]
            copy_words(to, row, width)
            k += 1
            while k < here and hashes[2, k] == h:
                again = places[2, k] & ~_RUN
                if compare_at(row, base, again, runs[places[2, k] & _RUN, 2], parts, count) != 0:
                    break
                if not add_weights_at(to, again, payload, width):
                    return OVERFLOW, used
                k += 1
            if weightless_at(to, payload, width):
                continue
            if not plain:
                if bound_word >= 0 and load(to, bound_word) < bound:
                    continue
                used = own_row(to, base, slots, heap, used)
            out_hashes[m] = h
            m += 1
            directory[np.int64(h >> shift) + 1] = m
            to += step
    close_directory(directory)
    write_line(out_hashes, out, address_of(heap), address_of(directory), bits, m, line)
    return m, used
