"""Merging two runs into one, and the directory that finds a hash in a run.

Both runs are sorted by (hash, order) and consolidated; so is the result. Long strings are copied into the heap of the
new run, so that the old ones can go. Rows below a bound are left out: that is how state is given back (garbage
collection by watermark).

The **directory** has one entry for each value of the top bits of a hash: where those rows begin. A look-up is one
access to it and a short scan. It is filled without branches: each row notes itself as the last of its entry, and
afterwards entries without rows take over from the entry before.

Which of two rows comes first is as good as random, so the loop computes with the answer instead of branching on it.

Runs are passed by address (`headwater.kernels.memory`), because mapped files are read-only and numba would compile
everything twice.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Bytes, Directory, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.consolidate import OVERFLOW, add_weights_at, weightless_at, write_line
from headwater.kernels.memory import address_of, copy_words, load, store, view_bytes
from headwater.kernels.words import INLINE, compare_at

__all__ = [
    "NO_BOUND",
    "fill_directory",
    "index_run",
    "long_bytes",
    "merge",
    "own_strings",
]

NO_BOUND = -1
"""For the word of a bound: there is none."""

_MUCH = 2


@shared
def _own(row: int, base: int, slots: Positions, heap: Bytes, used: int) -> int:
    """Copy the long strings of a row into ``heap``, let the row refer to them there, and give the bytes used now."""
    for s in range(slots.size):
        at = slots[s]
        length = load(row, at) & np.int64(0xFFFFFFFF)
        if length > INLINE:
            source = view_bytes(load(row, at + 1) + base, length)
            for k in range(length):
                heap[used + k] = source[k]
            store(row, at + 1, used)
            used += length
    return used


@kernel
def long_bytes(rows: Rows, slots: Positions) -> int:
    """How many bytes the long strings of these rows have."""
    total = np.int64(0)
    for i in range(rows.shape[0]):
        for s in range(slots.size):
            length = rows[i, slots[s]] & np.int64(0xFFFFFFFF)
            if length > INLINE:
                total += length
    return total


@kernel
def own_strings(rows: Rows, slots: Positions, heap: Bytes) -> int:
    """Copy the long strings of rows that flow into a heap, and let the rows refer to them by their distance."""
    used = np.int64(0)
    for i in range(rows.shape[0]):
        used = _own(address_of(rows) + 8 * rows.shape[1] * i, 0, slots, heap, used)
    return used


@inlined
def _close(directory: Directory) -> None:
    """Let entries without rows take over from the entry before."""
    last = np.int32(0)
    for b in range(directory.size):
        last = max(last, directory[b])
        directory[b] = last


@shared
def _fill(hashes: Hashes, count: int, bits: int, directory: Directory) -> None:
    shift = np.uint64(64 - bits)
    for b in range(directory.size):
        directory[b] = 0
    for i in range(count):
        directory[np.int64(hashes[i] >> shift) + 1] = i + 1
    _close(directory)


@shared
def _merge_few(
    left: Positions,
    right: Positions,
    width: int,
    payload: int,
    order: Rows,
    out_hashes: Hashes,
    out: Rows,
) -> int:
    """Merge a run with a much smaller one, both without long strings:
    what lies between two rows of the small one is copied at once.
    """
    h1 = left[0]
    h2 = right[0]
    n1 = left[5]
    n2 = right[5]
    step = np.int64(8 * width)
    row1 = left[1]
    row2 = right[1]
    parts = address_of(order)
    count = order.shape[0]
    hashes = address_of(out_hashes)
    rows = address_of(out)
    m = np.int64(0)
    i = np.int64(0)
    for j in range(n2):
        y = np.uint64(load(h2, j))
        other = row2 + step * j
        k = i
        while k < n1 and np.uint64(load(h1, k)) < y:
            k += 1
        both = False
        if k < n1 and np.uint64(load(h1, k)) == y:  # gallop: a hot key has many rows
            jump = np.int64(1)
            end = k
            while end < n1 and np.uint64(load(h1, end)) == y:
                if compare_at(row1 + step * end, 0, other, 0, parts, count) >= 0:
                    break
                k = end + 1
                end += jump
                jump *= 2
            end = min(end, n1)
            while k < end:
                middle = (k + end) >> 1
                if np.uint64(load(h1, middle)) == y and compare_at(row1 + step * middle, 0, other, 0, parts, count) < 0:
                    k = middle + 1
                else:
                    end = middle
            if k < n1 and np.uint64(load(h1, k)) == y:
                both = compare_at(row1 + step * k, 0, other, 0, parts, count) == 0
        copy_words(hashes + 8 * m, h1 + 8 * i, k - i)
        copy_words(rows + step * m, row1 + step * i, width * (k - i))
        m += k - i
        i = k
        to = rows + step * m
        copy_words(to, other, width)
        store(hashes, m, np.int64(y))
        m += 1
        if both:
            if not add_weights_at(to, row1 + step * i, payload, width):
                return OVERFLOW
            i += 1
            if weightless_at(to, payload, width):
                m -= 1
    copy_words(hashes + 8 * m, h1 + 8 * i, n1 - i)
    copy_words(rows + step * m, row1 + step * i, width * (n1 - i))
    return m + n1 - i


@kernel
def merge(  # noqa: C901
    left: Positions,
    right: Positions,
    width: int,
    payload: int,
    order: Rows,
    slots: Positions,
    bound_word: int,
    bound: int,
    null_word: int,
    null_mask: int,
    bits: int,
    out_hashes: Hashes,
    out: Rows,
    heap: Bytes,
    directory: Directory,
    line: Positions,
) -> tuple[int, int]:
    """Merge two runs, given by their lines; fill the directory and the line of the result; give (rows, bytes of heap).

    Rows whose ``bound_word`` is less than ``bound`` are dropped, unless ``null_mask`` says that it is the word of a
    null. The number of rows is OVERFLOW if a weight does not fit.
    """
    plain = slots.size == 0 and bound_word < 0
    if plain and max(left[5], right[5]) > _MUCH * min(left[5], right[5]):
        if left[5] < right[5]:
            left, right = right, left
        m = _merge_few(left, right, width, payload, order, out_hashes, out)
        if m != OVERFLOW:
            _fill(out_hashes, m, bits, directory)
            write_line(out_hashes, out, address_of(heap), address_of(directory), bits, m, line)
        return m, np.int64(0)
    h1 = left[0]
    h2 = right[0]
    end1 = h1 + 8 * left[5]
    end2 = h2 + 8 * right[5]
    row1 = left[1]
    row2 = right[1]
    base1 = left[2]
    base2 = right[2]
    step = np.int64(8 * width)
    parts = address_of(order)
    count = order.shape[0]
    shift = np.uint64(64 - bits)
    for b in range(directory.size):
        directory[b] = 0
    to = address_of(out)
    m = np.int64(0)
    used = np.int64(0)
    while h1 < end1 and h2 < end2:
        x = np.uint64(load(h1, 0))
        y = np.uint64(load(h2, 0))
        first = x < y
        if x == y:
            found = compare_at(row1, base1, row2, base2, parts, count)
            first = found < 0
            if found == 0:
                copy_words(to, row1, width)
                if not add_weights_at(to, row2, payload, width):
                    return OVERFLOW, used
                row1 += step
                h1 += 8
                row2 += step
                h2 += 8
                if weightless_at(to, payload, width):
                    continue
                if not plain:
                    if bound_word >= 0 and load(to, bound_word) < bound and load(to, null_word) & null_mask == 0:
                        continue
                    used = _own(to, base1, slots, heap, used)
                out_hashes[m] = x
                m += 1
                directory[np.int64(x >> shift) + 1] = m
                to += step
                continue
        one = -np.int64(first)  # all bits if the left comes first, else none
        copy_words(to, row2 + ((row1 - row2) & one), width)
        h = np.uint64(np.int64(y) + ((np.int64(x) - np.int64(y)) & one))
        row1 += step & one
        h1 += 8 & one
        row2 += step & ~one
        h2 += 8 & ~one
        if not plain:
            if bound_word >= 0 and load(to, bound_word) < bound and load(to, null_word) & null_mask == 0:
                continue
            used = _own(to, base2 + ((base1 - base2) & one), slots, heap, used)
        out_hashes[m] = h
        m += 1
        directory[np.int64(h >> shift) + 1] = m
        to += step
    if h1 == end1:
        h1, end1, row1, base1 = h2, end2, row2, base2
    while h1 < end1:
        h = np.uint64(load(h1, 0))
        copy_words(to, row1, width)
        h1 += 8
        row1 += step
        if not plain:
            if bound_word >= 0 and load(to, bound_word) < bound and load(to, null_word) & null_mask == 0:
                continue
            used = _own(to, base1, slots, heap, used)
        out_hashes[m] = h
        m += 1
        directory[np.int64(h >> shift) + 1] = m
        to += step
    _close(directory)
    write_line(out_hashes, out, address_of(heap), address_of(directory), bits, m, line)
    return m, used


@kernel
def fill_directory(hashes: Hashes, bits: int, directory: Directory) -> None:
    """``directory[b]`` becomes the first position whose hash has top ``bits`` of at least ``b``."""
    _fill(hashes, hashes.size, bits, directory)


@kernel
def index_run(
    hashes: Hashes,
    rows: Rows,
    heap: Bytes,
    bits: int,
    directory: Directory,
    line: Positions,
) -> None:
    """Fill the directory and the line of a run whose rows are there already."""
    _fill(hashes, hashes.size, bits, directory)
    write_line(hashes, rows, address_of(heap), address_of(directory), bits, hashes.size, line)
