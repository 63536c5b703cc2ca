"""Walking a key's rows in their order, through all runs at once.

A row is alive if its weights in all runs add up to more than zero. Rows that died but were not merged away yet lie in
the way: who walks from the beginning of the key for each change would meet them again and again. So a walk takes a
*start*: a row before which the caller knows that nobody lives. The least value of a key after a change, for example, is
not before the least value there was, nor before the least row that changed.

A walk keeps two numbers for each run: the address of its next row, and how many rows are left. The start is looked for
by galloping from the end at which the walk begins, because that is where it nearly always is.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Flags, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.memory import address_of, copy_words, load, store
from headwater.kernels.probe import hash_range
from headwater.kernels.words import INLINE, compare, compare_at, equal_at

__all__ = ["first_after", "first_from", "gallop", "hash_range", "live", "next_alive", "set_out"]

Cursor = Positions


@inlined
def first_from(rows: Rows, base: int, a: int, b: int, start: Rows, i: int, shift: int, parts: Rows) -> int:
    """The first position in [a, b) whose row is not before ``start[i]`` by the parts."""
    while a < b:
        middle = (a + b) >> 1
        if compare(rows, middle, base, start, i, shift, parts) < 0:
            a = middle + 1
        else:
            b = middle
    return a


@inlined
def first_after(rows: Rows, base: int, a: int, b: int, start: Rows, i: int, shift: int, parts: Rows) -> int:
    """The first position in [a, b) whose row is after ``start[i]`` by the parts."""
    while a < b:
        middle = (a + b) >> 1
        if compare(rows, middle, base, start, i, shift, parts) <= 0:
            a = middle + 1
        else:
            b = middle
    return a


@shared
def _passes(row: int, base: int, step: int, x: int, x_base: int, parts: int, number: int) -> bool:
    """Does a walk come to this row before it comes to ``x``?"""
    found = compare_at(row, base, x, x_base, parts, number)
    return found < 0 if step > 0 else found > 0


@shared
def gallop(row: int, base: int, count: int, step: int, x: int, x_base: int, parts: int, number: int) -> int:
    """How many of ``count`` rows a walk passes before it comes to ``x``.

    The rows begin at ``row`` and are ``step`` bytes apart; a negative step walks backwards, and passes what is after
    ``x``.
    """
    if count == 0 or not _passes(row, base, step, x, x_base, parts, number):
        return np.int64(0)
    low = np.int64(0)
    jump = np.int64(1)
    while low + jump < count and _passes(row + step * (low + jump), base, step, x, x_base, parts, number):
        low += jump
        jump *= 2
    high = min(low + jump, count)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if _passes(row + step * middle, base, step, x, x_base, parts, number):
            low = middle + 1
        else:
            high = middle
    return low


@shared
def set_out(
    runs: Rows,
    r: int,
    step: int,
    hash_of_key: np.uint64,
    key: int,
    key_base: int,
    key_parts: Rows,
    x: int,
    x_base: int,
    parts: Rows,
    at: Cursor,
    left: Cursor,
) -> None:
    """Begin a walk in run ``r``: from the row at ``x`` by the parts, through rows of the key of the row at ``key``."""
    a, b = hash_range(runs, r, hash_of_key)
    left[r] = 0
    if a == b:
        return
    base = runs[r, 2]
    row = runs[r, 1] + (step * a if step > 0 else -step * (b - 1))
    passed = gallop(row, base, b - a, step, x, x_base, address_of(parts), parts.shape[0])
    row += step * passed
    if passed < b - a and equal_at(
        row, base, address_of(key_parts), key, key_base, address_of(key_parts), key_parts.shape[0]
    ):
        at[r] = row
        left[r] = b - a - passed


@shared
def next_alive(
    runs: Rows, width: int, step: int, key_parts: Rows, order: Rows, at: Cursor, left: Cursor
) -> tuple[int, int, int]:
    """The next row alive of a walk, as (address, base, weight), and go on behind it; the address is 0 at the end."""
    number = runs.shape[0]
    sign = 1 if step > 0 else -1
    parts = address_of(order)
    keys = address_of(key_parts)
    while True:
        best = np.int64(-1)
        for r in range(number):
            if left[r] > 0 and (
                best < 0 or sign * compare_at(at[r], runs[r, 2], at[best], runs[best, 2], parts, order.shape[0]) < 0
            ):
                best = np.int64(r)
        if best < 0:
            return np.int64(0), np.int64(0), np.int64(0)
        row = at[best]
        base = runs[best, 2]
        weight = np.int64(0)
        for r in range(number):
            if left[r] > 0 and (r == best or compare_at(at[r], runs[r, 2], row, base, parts, order.shape[0]) == 0):
                weight += load(at[r], width - 1)
                left[r] -= 1
                at[r] += step
                if left[r] > 0 and not equal_at(at[r], runs[r, 2], keys, row, base, keys, key_parts.shape[0]):
                    left[r] = 0
        if weight > 0:
            return row, base, weight


@kernel
def live(
    runs: Rows,
    width: int,
    hashes: Hashes,
    starts: Rows,
    started: Flags,
    since_last: bool,
    start_parts: Rows,
    key_parts: Rows,
    order: Rows,
    slots: Positions,
    most: int,
    backwards: bool,
    which: Positions,
    out: Rows,
) -> int:
    """The first ``most`` rows alive of each key, not before its start (or not after it, walking ``backwards``).

    ``starts`` are rows in the layout of the runs that have at least the key; where ``started``, they have the start's
    order too, and ``start_parts`` are the parts that count for it. With ``since_last`` the first row of the key in the
    last run is a start as well, the earlier of the two counts, and a key with neither has no rows. ``out`` has room for
    ``most`` rows a key. Only the last weight is looked at.
    """
    number = runs.shape[0]
    at = np.empty(number, np.int64)
    left = np.empty(number, np.int64)
    step = np.int64(-8 * width if backwards else 8 * width)
    m = np.int64(0)
    for i in range(hashes.size):
        key = address_of(starts) + 8 * width * i
        x = key
        x_base = np.int64(0)
        given = started[i]
        if since_last:
            last = number - 1
            set_out(runs, last, step, hashes[i], key, 0, key_parts, key, 0, key_parts, at, left)
            if left[last] > 0:
                c = -1
                if given:
                    c = compare_at(at[last], runs[last, 2], key, 0, address_of(start_parts), start_parts.shape[0])
                    c = -c if backwards else c
                if c < 0:
                    x = at[last]
                    x_base = runs[last, 2]
                    given = True
            if not given:
                continue
        parts = start_parts if given else key_parts
        for r in range(number):
            set_out(runs, r, step, hashes[i], key, 0, key_parts, x, x_base, parts, at, left)
        for _ in range(most):
            row, base, weight = next_alive(runs, width, step, key_parts, order, at, left)
            if row == 0:
                break
            to = address_of(out) + 8 * width * m
            copy_words(to, row, width)
            for s in range(slots.size):
                if (load(row, slots[s]) & np.int64(0xFFFFFFFF)) > INLINE:
                    store(to, slots[s] + 1, load(row, slots[s] + 1) + base)
            store(to, width - 1, weight)
            which[m] = i
            m += 1
    return m
