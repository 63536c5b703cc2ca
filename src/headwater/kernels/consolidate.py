"""Consolidation: sort rows, add up the weights of equal ones, drop what comes to nothing.

Hashes are evenly spread, so one pass by their top bits puts every row next to where it belongs, and the few rows of a
bucket are then sorted by themselves (`headwater.kernels.sort`): a sort in linear time. What does not fit the cache is
first divided into pieces that do, by the topmost bits.

The buckets are the entries of the run's directory (`headwater.kernels.merge`), which is therefore a by-product.

Invariants of the result: hashes rise; within a hash rows strictly rise in the order; no row has only zero weights.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Directory, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.hash import hash_all
from headwater.kernels.memory import address_of, copy_words, load, prefetch_at, store
from headwater.kernels.sort import sort_bucket
from headwater.kernels.words import compare, compare_at

__all__ = [
    "LINE",
    "OVERFLOW",
    "add_weights_at",
    "consolidate",
    "consolidate_piece",
    "is_consolidated",
    "weight_bound",
    "weight_bound_of",
    "weightless",
    "weightless_at",
    "write_line",
]

OVERFLOW = -1

_AHEAD = 8
_PIECE = 1 << 22
_MOST_PIECES = 10


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
def consolidate_piece(
    hashes: Hashes,
    source: int,
    width: int,
    order: Rows,
    payload: int,
    bits: int,
    begin: int,
    end: int,
    m: int,
    seen: int,
    out_hashes: Hashes,
    to: int,
    directory: Directory,
) -> tuple[int, int]:
    """Consolidate rows whose hashes belong to the entries ``begin`` to ``end`` of the directory;
    ``m`` rows are there already.
    """
    n = hashes.size
    shift = np.uint64(64 - bits)
    for b in range(begin, end):
        directory[b] = 0
    for i in range(n):
        directory[np.int64(hashes[i] >> shift)] += 1
    total = np.int32(0)
    for b in range(begin, end):
        here = directory[b]
        directory[b] = total
        total += here
    keys = np.empty(n, np.uint64)
    words = np.empty(n, np.int64)
    perm = np.empty(n, np.int32)
    for i in range(n):
        top = np.int64(hashes[i] >> shift)
        at = directory[top]
        directory[top] = at + 1
        keys[at] = hashes[i]
        perm[at] = i
    step = np.int64(8 * width)
    parts = address_of(order)
    count = order.shape[0]
    to += step * m
    a = np.int64(0)
    for bucket in range(begin, end):
        b = np.int64(directory[bucket])
        directory[bucket] = m
        if b - a > 1:
            sort_bucket(source, step, parts, count, keys, words, perm, a, b)
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
    return m, seen


@shared
def _divide(hashes: Hashes, rows: Rows, bits: int, starts: Rows, to_hashes: Hashes, to: Rows) -> None:
    """Copy rows to where those of the same top bits of the hash are; ``starts`` says where each of them begins."""
    n = rows.shape[0]
    step = np.int64(8 * rows.shape[1])
    shift = np.uint64(64 - bits)
    number = starts.size - 1
    for b in range(number + 1):
        starts[b] = 0
    for i in range(n):
        starts[np.int64(hashes[i] >> shift) + 1] += 1
    for b in range(number):
        starts[b + 1] += starts[b]
    at = starts.copy()
    for i in range(n):
        b = np.int64(hashes[i] >> shift)
        place = at[b]
        at[b] = place + 1
        to_hashes[place] = hashes[i]
        copy_words(address_of(to) + step * place, address_of(rows) + step * i, rows.shape[1])


@kernel
def consolidate(
    hashed: bool,
    hashes: Hashes,
    key_parts: Rows,
    rows: Rows,
    order: Rows,
    payload: int,
    bits: int,
    out_hashes: Hashes,
    out: Rows,
    directory: Directory,
    line: Positions,
) -> tuple[int, int]:
    """Write the consolidated rows to ``out``, and their directory; give (their number or OVERFLOW, `weight_bound`).

    ``hashes`` is filled if it is not ``hashed`` yet. ``payload`` is the number of words before the weights. ``line``
    becomes the line of the run without a heap.
    """
    n = rows.shape[0]
    width = rows.shape[1]
    if not hashed:
        hash_all(rows, key_parts, hashes)
    buckets = 1 << bits
    to = address_of(out)
    m = np.int64(0)
    seen = np.int64(0)
    pieces = np.int64(0)
    while pieces < bits and pieces < _MOST_PIECES and ((n * (width + 3)) >> pieces) > _PIECE:
        pieces += 1
    if pieces < 2:
        m, seen = consolidate_piece(
            hashes, address_of(rows), width, order, payload, bits, 0, buckets, m, seen, out_hashes, to, directory
        )
    else:
        starts = np.empty((1 << pieces) + 1, np.int64)
        near_hashes = np.empty(n, np.uint64)
        near = np.empty((n, width), np.int64)
        _divide(hashes, rows, pieces, starts, near_hashes, near)
        each = buckets >> pieces
        for piece in range(1 << pieces):
            a = starts[piece]
            m, seen = consolidate_piece(
                near_hashes[a : starts[piece + 1]],
                address_of(near) + 8 * width * a,
                width,
                order,
                payload,
                bits,
                each * piece,
                each * (piece + 1),
                m,
                seen,
                out_hashes,
                to,
                directory,
            )
            if m == OVERFLOW:
                break
    if m == OVERFLOW:
        return m, seen
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
def weight_bound_of(rows: Rows, payload: int) -> int:
    """The same for rows that are given as such, which is quicker than to find their address."""
    seen = np.int64(0)
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        seen |= _magnitude_at(address_of(rows) + 8 * width * i, payload, width)
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
