"""Looking up keys in all runs of a trace, with one call.

For each key and run `ranges` finds the stretch of rows with the key's hash: one access to the directory, then a short
scan. What belongs to the key is then used, having compared the keys themselves: hashes may collide. `find` and `join`
know the number of rows before they write the first, so that outputs never grow; who gave them too little room is told
how much they need and asks again. The memory of later keys is asked for ahead of time.

A trace is a table with one line for each run: (hashes, rows, heap, directory, bits, length, filter, blocks), of which
hashes, rows, heap, directory and filter are addresses. Runs in memory have no filter, and 0 blocks: it pays only where
an access may be a page to be fetched.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Hashes, Positions, Ranges, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.filter import WORDS, block_of, in_filter
from headwater.kernels.memory import address_of, copy_words, load, prefetch_at, store, view_i32, view_u64
from headwater.kernels.words import INLINE, equal_at

__all__ = ["find", "hash_range", "join", "sums"]

_AHEAD = 12
_LENGTH = np.int64(0xFFFFFFFF)

_SMALL = 1 << 31
_LEAST = np.int64(-(1 << 63))
_GREATEST = np.int64((1 << 63) - 1)


@inlined
def _stretch(hashes: Hashes, a: int, end: int, x: np.uint64) -> tuple[int, int]:
    """Where a hash stands in ``hashes[a:end]``, which has all of them; most often that is a row or two."""
    e = end
    while e - a > 8:
        middle = (a + e) >> 1
        if hashes[middle] < x:
            a = middle + 1
        else:
            e = middle
    while a < end and hashes[a] < x:
        a += 1
    b = a
    if b < end and hashes[end - 1] == x:  # the last of its entry, as a hot key is
        return a, end
    step = np.int64(1)
    while b < end and hashes[b] == x:
        if b + step < end and hashes[b + step] == x:  # a hot key: gallop
            b += step
            step *= 2
        elif step > 1:
            step = np.int64(1)
            b += 1
        else:
            b += 1
    return a, b


@inlined
def hash_range(runs: Rows, r: int, x: np.uint64) -> tuple[int, int]:
    """Where the rows of a hash stand in run ``r``."""
    blocks = runs[r, 7]
    if blocks > 0 and not in_filter(view_u64(runs[r, 6], blocks * WORDS), blocks, x):
        return np.int64(0), np.int64(0)
    bits = runs[r, 4]
    directory = view_i32(runs[r, 3], (1 << bits) + 1)
    top = np.int64(x >> np.uint64(64 - bits))
    a = np.int64(directory[top])
    end = np.int64(directory[top + 1])
    if a == end:
        return a, a
    return _stretch(view_u64(runs[r, 0], runs[r, 5]), a, end, x)


@shared
def _sifted_ranges(runs: Rows, r: int, probes: Hashes, begin: Ranges, count: Ranges) -> int:
    """The same as `ranges` for a run with a filter: what that does not let through touches no other page of the run."""
    n = probes.size
    blocks = runs[r, 7]
    words = view_u64(runs[r, 6], blocks * WORDS)
    hashes = view_u64(runs[r, 0], runs[r, 5])
    bits = runs[r, 4]
    shift = np.uint64(64 - bits)
    directory = view_i32(runs[r, 3], (1 << bits) + 1)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch_at(runs[r, 6] + 8 * WORDS * block_of(probes[i + _AHEAD], blocks))
        count[i] = 0
        begin[i] = 0
        if in_filter(words, blocks, probes[i]):
            count[i] = 1
            prefetch_at(runs[r, 3] + 4 * np.int64(probes[i] >> shift))
    total = np.int64(0)
    for i in range(n):
        if i + _AHEAD < n and count[i + _AHEAD] > 0:
            prefetch_at(runs[r, 0] + 8 * np.int64(directory[np.int64(probes[i + _AHEAD] >> shift)]))
        if count[i] > 0:
            top = np.int64(probes[i] >> shift)
            a, b = _stretch(hashes, np.int64(directory[top]), np.int64(directory[top + 1]), probes[i])
            begin[i] = a
            count[i] = b - a
            total += b - a
    return total


@shared
def ranges(runs: Rows, r: int, probes: Hashes, begin: Ranges, count: Ranges) -> int:
    """Fill ``begin`` and ``count``: where the hash of each probe stands in run ``r``; give the sum of the counts."""
    if runs[r, 7] > 0:
        return _sifted_ranges(runs, r, probes, begin, count)
    n = probes.size
    total = np.int64(0)
    length = runs[r, 5]
    hashes = view_u64(runs[r, 0], length)
    bits = runs[r, 4]
    shift = np.uint64(64 - bits)
    directory = view_i32(runs[r, 3], (1 << bits) + 1)
    for i in range(n):
        if i + 2 * _AHEAD < n:
            prefetch_at(runs[r, 3] + 4 * np.int64(probes[i + 2 * _AHEAD] >> shift))
        if i + _AHEAD < n:
            prefetch_at(runs[r, 0] + 8 * np.int64(directory[np.int64(probes[i + _AHEAD] >> shift)]))
        x = probes[i]
        top = np.int64(x >> shift)
        a = np.int64(directory[top])
        end = np.int64(directory[top + 1])
        b = a
        if a < end:
            a, b = _stretch(hashes, a, end, x)
        begin[i] = a
        count[i] = b - a
        total += b - a
    return total


@kernel
def find(
    runs: Rows,
    hashes: Hashes,
    probes: Rows,
    probe_parts: Rows,
    parts: Rows,
    width: int,
    slots: Positions,
    which: Positions,
    out: Rows,
) -> tuple[int, int]:
    """Copy the rows that have the probes' keys to ``out``, and to ``which`` the position of the probe.

    Gives (the number of rows, the room that is needed): nothing is written if there is less room.
    """
    n = probes.shape[0]
    begin = np.empty((runs.shape[0], n), np.int32)
    count = np.empty((runs.shape[0], n), np.int32)
    total = np.int64(0)
    for r in range(runs.shape[0]):
        total += ranges(runs, r, hashes, begin[r], count[r])
    if total > out.shape[0]:
        return 0, total
    probe = address_of(probes)
    probe_step = 8 * probes.shape[1]
    step = 8 * width
    to = address_of(out)
    m = np.int64(0)
    for r in range(runs.shape[0]):
        rows = runs[r, 1]
        base = runs[r, 2]
        for i in range(n):
            if i + _AHEAD < n and count[r, i + _AHEAD] > 0:
                prefetch_at(rows + step * np.int64(begin[r, i + _AHEAD]))
            row = rows + step * np.int64(begin[r, i])
            for _ in range(count[r, i]):
                if equal_at(
                    probe + probe_step * i, 0, address_of(probe_parts), row, base, address_of(parts), parts.shape[0]
                ):
                    copy_words(to, row, width)
                    for s in range(slots.size):
                        if (load(row, slots[s]) & _LENGTH) > INLINE:
                            store(to, slots[s] + 1, load(row, slots[s] + 1) + base)
                    which[m] = i
                    m += 1
                    to += step
                row += step
    return m, total


@kernel
def sums(
    runs: Rows,
    hashes: Hashes,
    probes: Rows,
    probe_parts: Rows,
    parts: Rows,
    width: int,
    payload: int,
    out: Rows,
) -> None:
    """The sum, for each probe, of the weights of the rows that have its key, to ``out[i]``."""
    n = probes.shape[0]
    for k in range(n * out.shape[1]):
        store(address_of(out), k, 0)
    begin = np.empty(n, np.int32)
    count = np.empty(n, np.int32)
    probe = address_of(probes)
    probe_step = 8 * probes.shape[1]
    step = 8 * width
    weights = width - payload
    for r in range(runs.shape[0]):
        if ranges(runs, r, hashes, begin, count) == 0:
            continue
        rows = runs[r, 1]
        base = runs[r, 2]
        for i in range(n):
            if i + _AHEAD < n and count[i + _AHEAD] > 0:
                prefetch_at(rows + step * np.int64(begin[i + _AHEAD]))
            row = rows + step * np.int64(begin[i])
            for _ in range(count[i]):
                if equal_at(
                    probe + probe_step * i, 0, address_of(probe_parts), row, base, address_of(parts), parts.shape[0]
                ):
                    to = address_of(out) + 8 * weights * i
                    for k in range(weights):
                        store(to, k, load(to, k) + load(row, payload + k))
                row += step


@inlined
def _product_fits(x: int, y: int) -> bool:
    if x == 0 or y == 0:
        return True
    if x == _LEAST or y == _LEAST:  # noqa: PLR1714
        return x == 1 or y == 1
    return abs(y) <= _GREATEST // abs(x)


@kernel
def join(  # noqa: C901
    runs: Rows,
    hashes: Hashes,
    probes: Rows,
    probe_parts: Rows,
    probe_moves: Rows,
    parts: Rows,
    moves: Rows,
    slots: Positions,
    bits: Rows,
    barred: int,
    width: int,
    out: Rows,
) -> tuple[int, int]:
    """Write the rows of a join, each made of a probe and a row of the trace; give (their number, the room that is
    needed).

    ``probe_moves`` and ``moves`` are (from, to) pairs of words; ``slots`` are the words of ``out`` whose long strings
    come from the trace. ``bits`` carries null bits over: (side, word, bit, to word, to bit), side 0 being the probe.
    The weight of a row, its last word, is the product of the two; the number of rows is -1 if one does not fit. Probes
    that have a bit of ``barred`` in their first word find nobody. Nothing is written if there is too little room.
    """
    n = probes.shape[0]
    begin = np.empty((runs.shape[0], n), np.int32)
    count = np.empty((runs.shape[0], n), np.int32)
    total = np.int64(0)
    for r in range(runs.shape[0]):
        total += ranges(runs, r, hashes, begin[r], count[r])
    if total > out.shape[0]:
        return 0, total
    probe_step = 8 * probes.shape[1]
    step = 8 * width
    out_width = out.shape[1]
    mine = address_of(probe_moves)
    theirs = address_of(moves)
    carried = address_of(bits)
    to = address_of(out)
    m = np.int64(0)
    for r in range(runs.shape[0]):
        rows = runs[r, 1]
        base = runs[r, 2]
        for i in range(n):
            if i + _AHEAD < n and count[r, i + _AHEAD] > 0:
                prefetch_at(rows + step * np.int64(begin[r, i + _AHEAD]))
            if count[r, i] == 0:
                continue
            probe = address_of(probes) + probe_step * i
            if load(probe, 0) & barred:
                continue
            x = load(probe, probes.shape[1] - 1)
            row = rows + step * np.int64(begin[r, i])
            for _ in range(count[r, i]):
                if not equal_at(probe, 0, address_of(probe_parts), row, base, address_of(parts), parts.shape[0]):
                    row += step
                    continue
                for k in range(out_width):
                    store(to, k, 0)
                for k in range(probe_moves.shape[0]):
                    store(to, load(mine, 2 * k + 1), load(probe, load(mine, 2 * k)))
                for k in range(moves.shape[0]):
                    store(to, load(theirs, 2 * k + 1), load(row, load(theirs, 2 * k)))
                for s in range(slots.size):
                    if (load(to, slots[s]) & _LENGTH) > INLINE:
                        store(to, slots[s] + 1, load(to, slots[s] + 1) + base)
                for k in range(bits.shape[0]):
                    side = probe if load(carried, 5 * k) == 0 else row
                    bit = (load(side, load(carried, 5 * k + 1)) >> load(carried, 5 * k + 2)) & 1
                    at = load(carried, 5 * k + 3)
                    store(to, at, load(to, at) | (bit << load(carried, 5 * k + 4)))
                y = load(row, width - 1)
                w = x * y
                if not (-_SMALL < x < _SMALL and -_SMALL < y < _SMALL) and not _product_fits(x, y):
                    return -1, total
                store(to, out_width - 1, w)
                m += 1
                to += 8 * out_width
                row += step
    return m, total
