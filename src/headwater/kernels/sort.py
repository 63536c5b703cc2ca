"""Sorting the rows of a bucket: by hash, and within a hash by comparing as few bytes of rows as it takes.

A bucket holds the rows of a few hashes. They are put in order by hash first, which touches no row. Rows of one hash are
nearly always rows of one key: then the parts of the key are all alike, and the first part in which the rows differ is
most often one word. That word is fetched once for each row and sorted as a number, by counting digits where the numbers
lie close together. Only what is still undecided is compared row by row, by merging natural runs, so that rows that
arrive sorted cost one comparison each, and nothing is quadratic.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Directory, Hashes, Positions
from headwater.kernels.compiled import inlined, shared
from headwater.kernels.memory import load
from headwater.kernels.words import compare_at, equal_slots

__all__ = ["sort_bucket"]

_FEW = 16
_WORTH_DIGITS = 24
_TOP = np.uint64(1 << 63)


@inlined
def _insert_hashes(keys: Hashes, perm: Directory, a: int, b: int) -> None:
    for k in range(a + 1, b):
        x = keys[k]
        i = perm[k]
        at = k
        while at > a and x < keys[at - 1]:
            keys[at] = keys[at - 1]
            perm[at] = perm[at - 1]
            at -= 1
        keys[at] = x
        perm[at] = i


@shared
def _sort_by_comparing(rows: int, step: int, parts: int, count: int, perm: Directory, a: int, b: int) -> None:
    """Sort positions by the parts of their rows: natural runs, merged pair by pair."""
    if b - a <= _FEW:
        for k in range(a + 1, b):
            i = perm[k]
            row = rows + step * np.int64(i)
            at = k
            while at > a and compare_at(row, 0, rows + step * np.int64(perm[at - 1]), 0, parts, count) < 0:
                perm[at] = perm[at - 1]
                at -= 1
            perm[at] = i
        return
    spare = np.empty(b - a, np.int32)
    marks = np.empty(b - a + 1, np.int64)
    runs = 1
    marks[0] = a
    for k in range(a + 1, b):
        if compare_at(rows + step * np.int64(perm[k]), 0, rows + step * np.int64(perm[k - 1]), 0, parts, count) < 0:
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
                    spare[k] = perm[start + k]
                i = np.int64(0)
                j = middle
                to = start
                while i < size:
                    mine = rows + step * np.int64(spare[i])
                    if j < end and compare_at(rows + step * np.int64(perm[j]), 0, mine, 0, parts, count) < 0:
                        perm[to] = perm[j]
                        j += 1
                    else:
                        perm[to] = spare[i]
                        i += 1
                    to += 1
            marks[made] = start
            made += 1
        marks[made] = b
        runs = made


@shared
def _sort_digits(words: Positions, perm: Directory, a: int, b: int, least: int, passes: int, bits: int) -> None:
    """Sort by words that are below the least of them and ``passes`` digits of so many bits: a digit at a time,
    the lowest first.
    """
    n = b - a
    other_words = np.empty(n, np.int64)
    other = np.empty(n, np.int32)
    counts = np.empty(1 << bits, np.int32)
    digit = np.uint64((1 << bits) - 1)
    for k in range(passes):
        shift = np.uint64(bits * k)
        for c in range(1 << bits):
            counts[c] = 0
        for i in range(a, b):
            counts[np.int64((np.uint64(words[i] - least) >> shift) & digit)] += 1
        total = np.int32(0)
        for c in range(1 << bits):
            here = counts[c]
            counts[c] = total
            total += here
        for i in range(a, b):
            c = np.int64((np.uint64(words[i] - least) >> shift) & digit)
            at = counts[c]
            counts[c] = at + 1
            other_words[at] = words[i]
            other[at] = perm[i]
        for i in range(n):
            words[a + i] = other_words[i]
            perm[a + i] = other[i]


@shared
def _sorted_by_digits(words: Positions, perm: Directory, a: int, b: int) -> bool:
    """Sort ``words[a:b]`` by digits, if there are few for so many words; was it so?"""
    least = words[a]
    most = words[a]
    for i in range(a + 1, b):
        least = min(least, words[i])
        most = max(most, words[i])
    spread = np.uint64(most) - np.uint64(least)
    bits = np.int64(0)
    while bits < 64 and (spread >> np.uint64(bits)) != 0:
        bits += 1
    if bits == 0:
        return True
    passes = (bits + 7) // 8
    bits = (bits + passes - 1) // passes
    if (passes << bits) > 4 * (b - a) or most - least < 0:
        return False
    _sort_digits(words, perm, a, b, least, passes, bits)
    return True


@shared
def _sort_words(words: Positions, perm: Directory, a: int, b: int) -> None:
    """Sort ``words[a:b]`` and the positions beside them."""
    n = b - a
    if n > _WORTH_DIGITS and _sorted_by_digits(words, perm, a, b):
        return
    for start in range(a, b, _FEW):
        for k in range(start + 1, min(start + _FEW, b)):
            x = words[k]
            i = perm[k]
            at = k
            while at > start and x < words[at - 1]:
                words[at] = words[at - 1]
                perm[at] = perm[at - 1]
                at -= 1
            words[at] = x
            perm[at] = i
    if n <= _FEW:
        return
    other_words = np.empty(n, np.int64)
    other = np.empty(n, np.int32)
    size = np.int64(_FEW)
    while size < n:
        start = a
        while start + size < b:
            middle = start + size
            end = min(middle + size, b)
            for k in range(size):
                other_words[k] = words[start + k]
                other[k] = perm[start + k]
            i = np.int64(0)
            j = middle
            to = start
            while i < size:
                if j < end and words[j] < other_words[i]:
                    words[to] = words[j]
                    perm[to] = perm[j]
                    j += 1
                else:
                    words[to] = other_words[i]
                    perm[to] = other[i]
                    i += 1
                to += 1
            start = end
        size *= 2


@inlined
def _is_one_hash(keys: Hashes, a: int, b: int) -> bool:
    differs = np.uint64(0)
    for k in range(a + 1, b):
        differs |= keys[k] ^ keys[a]
    return differs == 0


@shared
def _sort_hashes(keys: Hashes, words: Positions, perm: Directory, a: int, b: int) -> None:
    """Sort a long stretch by hash, as signed words."""
    for k in range(a, b):
        words[k] = np.int64(keys[k] ^ _TOP)
    _sort_words(words, perm, a, b)
    for k in range(a, b):
        keys[k] = np.uint64(words[k]) ^ _TOP


@inlined
def _is_one_slot(rows: int, step: int, at: int, perm: Directory, a: int, b: int) -> bool:
    """Do all rows have the same bytes in a slot? Those of a key do."""
    first = rows + step * np.int64(perm[a])
    x0 = load(first, at)
    x1 = load(first, at + 1)
    for k in range(a + 1, b):
        row = rows + step * np.int64(perm[k])
        y0 = load(row, at)
        y1 = load(row, at + 1)
        if x0 != y0 or (x1 != y1 and not equal_slots(x0, x1, 0, y0, y1, 0)):
            return False
    return True


@shared
def _sort_alike(
    rows: int, step: int, parts: int, count: int, words: Positions, perm: Directory, a: int, b: int
) -> None:
    """Sort the positions of rows that have one hash; ``words`` is room for ``words[a:b]``."""
    part = np.int64(0)
    while part < count:
        at = load(parts, 3 * part)
        if load(parts, 3 * part + 1) != 0:
            if not _is_one_slot(rows, step, at, perm, a, b):
                break
            part += 1
            continue
        mask = load(parts, 3 * part + 2)
        x = load(rows + step * np.int64(perm[a]), at) & mask
        differs = np.int64(0)
        for k in range(a, b):
            y = load(rows + step * np.int64(perm[k]), at) & mask
            words[k] = y
            differs |= x ^ y
        if differs != 0:
            break
        part += 1
    if part == count:
        return
    if load(parts, 3 * part + 1) != 0:
        _sort_by_comparing(rows, step, parts + 24 * part, count - part, perm, a, b)
        return
    _sort_words(words, perm, a, b)
    part += 1
    k = a
    while k < b:
        end = k + 1
        while end < b and words[end] == words[k]:
            end += 1
        if end - k > 1:
            _sort_by_comparing(rows, step, parts + 24 * part, count - part, perm, k, end)
        k = end


@inlined
def sort_bucket(
    rows: int,
    step: int,
    parts: int,
    count: int,
    keys: Hashes,
    words: Positions,
    perm: Directory,
    a: int,
    b: int,
) -> None:
    """Sort ``perm[a:b]``, positions of rows, and their hashes beside them, by hash and then by ``count`` parts.

    ``rows``, and ``parts``, are addresses; ``words`` is room as long as ``perm``.
    """
    if b - a <= _FEW:
        _insert_hashes(keys, perm, a, b)
    elif not _is_one_hash(keys, a, b):
        _sort_hashes(keys, words, perm, a, b)
    k = a
    while k < b:
        end = k + 1
        while end < b and keys[end] == keys[k]:
            end += 1
        if end - k == 2:
            x = perm[k]
            y = perm[k + 1]
            if compare_at(rows + step * np.int64(y), 0, rows + step * np.int64(x), 0, parts, count) < 0:
                perm[k] = y
                perm[k + 1] = x
        elif end - k > 2:
            _sort_alike(rows, step, parts, count, words, perm, k, end)
        k = end
