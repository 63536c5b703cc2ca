"""Consolidation: sort rows, add up the weights of equal ones, drop what comes to nothing.

Hashes are evenly spread, so one pass by their top bits puts every row next to where it belongs, and the few rows of a bucket are then
sorted by comparing them: a sort in linear time. A hot key makes long buckets of one hash, so those are sorted by merging natural runs,
never by insertion: rows that arrive sorted cost one comparison each, and nothing is quadratic.

The buckets are the entries of the run's directory (`headwater.kernels.merge`), which is therefore a by-product.

Invariants of the result: hashes rise; within a hash rows strictly rise in the order; no row has only zero weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.hash import hash_all
from headwater.kernels.memory import address_of, copy_words, load, prefetch_at, store
from headwater.kernels.words import compare, compare_at

__all__ = [
    "LINE",
    "OVERFLOW",
    "add_weights_at",
    "consolidate",
    "is_consolidated",
    "weight_bound",
    "weightless",
    "weightless_at",
    "write_line",
]

OVERFLOW = -1

_FEW = 12
_AHEAD = 8

Hashes = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]


@inlined
def add_weights_at(to: int, source: int, payload: int, width: int) -> bool:
    """Add the weights of one row to those of another; False if one does not fit 64 bits."""
    bad = np.int64(0)
    for k in range(payload, width):
        x = load(to, k)
        y = load(source, k)
        z = x + y
        bad |= (x ^ z) & (y ^ z)
        store(to, k, z)
    return bad >= 0


@inlined
def weightless_at(row: int, payload: int, width: int) -> bool:
    """Are all weights of a row zero?"""
    some = np.int64(0)
    for k in range(payload, width):
        some |= load(row, k)
    return some == 0


LINE = 8
"""How many words the line of a run has."""


@inlined
def _magnitude_at(row: int, payload: int, width: int) -> int:
    """The bits that the weights of a row have, taken positive (less one, if negative)."""
    seen = np.int64(0)
    for k in range(payload, width):
        weight = load(row, k)
        seen |= weight ^ (weight >> 63)
    return seen


@inlined
def weightless(rows: Rows, i: int, payload: int) -> bool:
    """Are all weights of row ``i`` zero?"""
    return weightless_at(address_of(rows) + 8 * rows.shape[1] * i, payload, rows.shape[1])


@inlined
def write_line(hashes: Hashes, rows: Rows, heap: int, directory: int, bits: int, count: int, line: Rows) -> None:
    """The line by which kernels read a run; see `headwater.kernels.probe`."""
    line[0] = address_of(hashes)
    line[1] = address_of(rows)
    line[2] = heap
    line[3] = directory
    line[4] = bits
    line[5] = count
    line[6] = 0
    line[7] = 0


@shared
def _before(rows: int, step: int, parts: int, count: int, x: np.uint64, i: int, y: np.uint64, j: int) -> bool:
    """Does row ``i`` with hash ``x`` come before row ``j`` with hash ``y``?"""
    if x != y:
        return x < y
    return compare_at(rows + step * i, 0, rows + step * j, 0, parts, count) < 0


@shared
def _sort_few(rows: int, step: int, parts: int, count: int, keys: Hashes, perm: Positions, a: int, b: int) -> None:
    """Sort a short stretch by insertion."""
    for k in range(a + 1, b):
        x = keys[k]
        i = perm[k]
        at = k
        while at > a and _before(rows, step, parts, count, x, np.int64(i), keys[at - 1], np.int64(perm[at - 1])):
            keys[at] = keys[at - 1]
            perm[at] = perm[at - 1]
            at -= 1
        keys[at] = x
        perm[at] = i


@shared
def _sort_many(rows: int, step: int, parts: int, count: int, keys: Hashes, perm: Positions, a: int, b: int) -> None:
    """Sort a long stretch: natural runs, merged pair by pair."""
    spare_keys = np.empty(b - a, np.uint64)
    spare = np.empty(b - a, np.int32)
    marks = np.empty(b - a + 1, np.int64)
    runs = 1
    marks[0] = a
    for k in range(a + 1, b):
        if _before(rows, step, parts, count, keys[k], np.int64(perm[k]), keys[k - 1], np.int64(perm[k - 1])):
            marks[runs] = k
            runs += 1
    marks[runs] = b
    while runs > 1:
        made = 0
        for r in range(0, runs, 2):
            start = marks[r]
            if r + 1 < runs:
                middle = marks[r + 1]
                end = marks[r + 2]
                size = middle - start
                for k in range(size):
                    spare_keys[k] = keys[start + k]
                    spare[k] = perm[start + k]
                i = np.int64(0)
                j = middle
                to = start
                while i < size:
                    if j < end and _before(
                        rows, step, parts, count, keys[j], np.int64(perm[j]), spare_keys[i], np.int64(spare[i])
                    ):
                        keys[to] = keys[j]
                        perm[to] = perm[j]
                        j += 1
                    else:
                        keys[to] = spare_keys[i]
                        perm[to] = spare[i]
                        i += 1
                    to += 1
            marks[made] = start
            made += 1
        marks[made] = b
        runs = made


@kernel
def consolidate(  # noqa: C901
    hashed: bool,
    hashes: Hashes,
    key_parts: Rows,
    rows: Rows,
    order: Rows,
    payload: int,
    bits: int,
    out_hashes: Hashes,
    out: Rows,
    directory: npt.NDArray[np.int32],
    line: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Write the consolidated rows to ``out``, and their directory; give (their number or OVERFLOW, `weight_bound`).

    ``hashes`` is filled if it is not ``hashed`` yet. ``payload`` is the number of words before the weights. ``line`` becomes the
    line of the run without a heap.
    """
    n = rows.shape[0]
    width = rows.shape[1]
    if not hashed:
        hash_all(rows, key_parts, hashes)
    shift = np.uint64(64 - bits)
    buckets = 1 << bits
    for b in range(buckets + 1):
        directory[b] = 0
    for i in range(n):
        directory[np.int64(hashes[i] >> shift)] += 1
    total = np.int32(0)
    for b in range(buckets):
        here = directory[b]
        directory[b] = total
        total += here
    keys = np.empty(n, np.uint64)
    perm = np.empty(n, np.int32)
    for i in range(n):
        top = np.int64(hashes[i] >> shift)
        at = directory[top]
        directory[top] = at + 1
        keys[at] = hashes[i]
        perm[at] = i
    source = address_of(rows)
    step = np.int64(8 * width)
    parts = address_of(order)
    count = order.shape[0]
    to = address_of(out)
    m = np.int64(0)
    a = np.int64(0)
    seen = np.int64(0)
    for bucket in range(buckets):
        b = np.int64(directory[bucket])
        directory[bucket] = m
        if b - a > 1:
            if b - a <= _FEW:
                _sort_few(source, step, parts, count, keys, perm, a, b)
            else:
                _sort_many(source, step, parts, count, keys, perm, a, b)
        k = a
        while k < b:
            if k + _AHEAD < n:
                prefetch_at(source + step * np.int64(perm[k + _AHEAD]))
            h = keys[k]
            first = source + step * np.int64(perm[k])
            copy_words(to, first, width)
            k += 1
            while k < b and keys[k] == h:
                again = source + step * np.int64(perm[k])
                if compare_at(again, 0, first, 0, parts, count) != 0:
                    break
                if not add_weights_at(to, again, payload, width):
                    return OVERFLOW, seen
                k += 1
            out_hashes[m] = h
            if not weightless_at(to, payload, width):
                seen |= _magnitude_at(to, payload, width)
                m += 1
                to += step
        a = b
    directory[buckets] = m
    write_line(out_hashes, out, 0, address_of(directory), bits, m, line)
    return m, seen


@kernel
def weight_bound(rows: int, count: int, width: int, payload: int) -> int:
    """A number that is not less than any weight of these rows, taken positive, less one; they are given by address."""
    seen = np.int64(0)
    for i in range(count):
        seen |= _magnitude_at(rows + 8 * width * i, payload, width)
    return seen


@kernel
def is_consolidated(hashes: Hashes, rows: Rows, base: int, order: Rows, payload: int) -> bool:
    """Do the invariants of a consolidated set of rows hold? For assertions and for checking files."""
    for i in range(hashes.size):
        if weightless(rows, i, payload):
            return False
        if i > 0:
            if hashes[i - 1] > hashes[i]:
                return False
            if hashes[i - 1] == hashes[i] and compare(rows, i - 1, base, rows, i, base, order) >= 0:
                return False
    return True
