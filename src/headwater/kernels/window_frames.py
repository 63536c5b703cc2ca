"""Frames: which rows of its group each row looks at, and the values found by their place in it.

A frame is a stretch ``lo[i]`` to ``hi[i]`` (not included) of the copies of a group. Bounds are by rows, or by distance
in the order column (`by_value`), where rows without distance are peers of each other. For each kind of frame both ends
only go forward within a group, so everything here passes once over the rows: the extremes too, with a queue of
candidates.

An offset is counted forward: 3 PRECEDING is -3. Values are 128 bits wide, as in `headwater.kernels.window_values`.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrange import float_rank
from headwater.kernels.arrays import Positions, Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.window_values import plus, wide
from headwater.kernels.words import compare, compare_slots

__all__ = ["by_peers", "by_rows", "by_value", "chained", "extremes", "present", "shifted"]


@kernel
def shifted(offsets: Positions, offset: int, which: Positions) -> None:
    """``which[i]`` becomes the copy ``offset`` places before ``i`` in its group, or -1."""
    for g in range(offsets.size - 1):
        for i in range(offsets[g], offsets[g + 1]):
            j = i - offset
            which[i] = j if offsets[g] <= j < offsets[g + 1] else -1


@kernel
def by_rows(offsets: Positions, endless: Positions, begin: int, end: int, lo: Positions, hi: Positions) -> None:
    """Frames from ``begin`` to ``end`` rows further; ``endless`` says of each whether there is no bound."""
    for g in range(offsets.size - 1):
        first = offsets[g]
        last = offsets[g + 1]
        for i in range(first, last):
            a = first if endless[0] else max(first, min(last, i + begin))
            b = last if endless[1] else max(first, min(last, i + end + 1))
            lo[i] = a
            hi[i] = max(a, b)


@kernel
def by_peers(
    rows: Rows, at: Positions, offsets: Positions, peers: Rows, endless: Positions, lo: Positions, hi: Positions
) -> None:
    """Frames from the first peer to the last, or without a bound."""
    for g in range(offsets.size - 1):
        first = offsets[g]
        last = offsets[g + 1]
        a = first
        while a < last:
            b = a + 1
            while b < last and (at[b] == at[a] or compare(rows, at[b], 0, rows, at[a], 0, peers) == 0):
                b += 1
            for i in range(a, b):
                lo[i] = first if endless[0] else a
                hi[i] = last if endless[1] else b
            a = b


@inlined
def _before(rows: Rows, j: int, i: int, value: Positions, high: int, low: int) -> bool:
    """Is row ``j`` before the place of row ``i``'s rank of nulls and the value given?"""
    if value[0] >= 0:
        x = rows[j, value[0]]
        y = rows[i, value[0]]
        if x != y:
            return bool(x < y)
    a, b = wide(rows, j, value[1], value[2])
    return a < high or (a == high and b < low)


@inlined
def _after(rows: Rows, j: int, i: int, value: Positions, high: int, low: int) -> bool:
    if value[0] >= 0:
        x = rows[j, value[0]]
        y = rows[i, value[0]]
        if x != y:
            return bool(x > y)
    a, b = wide(rows, j, value[1], value[2])
    return a > high or (a == high and b > low)


@kernel
def by_value(
    rows: Rows,
    at: Positions,
    offsets: Positions,
    value: Positions,
    null_rank: int,
    endless: Positions,
    distance: Rows,
    lo: Positions,
    hi: Positions,
) -> None:
    """Frames of the rows whose value is between two distances of this one's: ``distance`` are (high, low) words, twice.

    Rows whose rank of nulls is ``null_rank`` are null, and have their peers for a frame.
    """
    for g in range(offsets.size - 1):
        first = offsets[g]
        last = offsets[g + 1]
        a = first
        b = first
        for i in range(first, last):
            row = at[i]
            null = value[0] >= 0 and rows[row, value[0]] == null_rank
            high, low = wide(rows, row, value[1], value[2])
            if endless[0]:
                a = first
            else:
                x, y = (high, low) if null else plus(high, low, distance[0, 0], distance[0, 1])
                while a < last and _before(rows, at[a], row, value, x, y):
                    a += 1
            if endless[1]:
                b = last
            else:
                x, y = (high, low) if null else plus(high, low, distance[1, 0], distance[1, 1])
                while b < last and not _after(rows, at[b], row, value, x, y):
                    b += 1
            lo[i] = a
            hi[i] = max(a, b)


@inlined
def _compare_values(rows: Rows, i: int, j: int, word: int, kind: int) -> int:
    """Compare two values: kind 0 a word, 1 a double, of which -0.0 is before 0.0, 2 two words, 3 a slot."""
    if kind == 3:
        return compare_slots(rows[i, word], rows[i, word + 1], 0, rows[j, word], rows[j, word + 1], 0)
    x = rows[i, word]
    y = rows[j, word]
    if kind == 1:
        p = float_rank(x)
        q = float_rank(y)
        if p != q:
            return -1 if p < q else 1
    if x == y and kind == 2:
        x = rows[i, word + 1]
        y = rows[j, word + 1]
    return -1 if x < y else (1 if x > y else 0)


@kernel
def extremes(
    rows: Rows,
    at: Positions,
    lo: Positions,
    hi: Positions,
    word: int,
    kind: int,
    null_word: int,
    null_bit: int,
    greatest: bool,
    which: Positions,
) -> None:
    """``which[i]`` becomes the first copy of the frame with the least value (or greatest), or -1 where all are null."""
    n = at.size
    queue = np.empty(n, np.int64)
    head = 0
    tail = 0
    a = np.int64(0)
    b = np.int64(0)
    for i in range(n):
        if lo[i] < a or lo[i] >= b:  # another group: begin anew
            head = 0
            tail = 0
            b = lo[i]
        a = lo[i]
        while b < hi[i]:
            row = at[b]
            if not (rows[row, null_word] >> null_bit) & 1:
                while tail > head:
                    c = _compare_values(rows, row, at[queue[tail - 1]], word, kind)
                    if (c <= 0) if greatest else (c >= 0):
                        break
                    tail -= 1
                queue[tail] = b
                tail += 1
            b += 1
        while head < tail and queue[head] < a:
            head += 1
        if head == tail:
            head = 0
            tail = 0
        which[i] = queue[head] if head < tail and hi[i] > a else -1


@kernel
def present(
    rows: Rows,
    at: Positions,
    lo: Positions,
    hi: Positions,
    null_word: int,
    null_bit: int,
    nth: int,
    from_last: bool,
    skip_nulls: bool,
    which: Positions,
) -> None:
    """``which[i]`` becomes the ``nth`` copy of the frame (from 1), counted from an end, or -1;
    nulls are counted or not.
    """
    n = at.size
    places = np.empty(n, np.int64)
    before = np.empty(n + 1, np.int64)
    m = np.int64(0)
    for i in range(n):
        before[i] = m
        if not skip_nulls or not (rows[at[i], null_word] >> null_bit) & 1:
            places[m] = i
            m += 1
    before[n] = m
    for i in range(n):
        a = before[lo[i]]
        b = before[hi[i]]
        k = b - nth if from_last else a + nth - 1
        which[i] = places[k] if a <= k < b else -1


@kernel
def chained(times: Positions, at: Positions, offsets: Positions, gap: int, start: Positions, end: Positions) -> None:
    """For each copy the first time of its session, and the last plus the gap; sessions end where a gap is greater."""
    for g in range(offsets.size - 1):
        a = offsets[g]
        while a < offsets[g + 1]:
            b = a + 1
            while b < offsets[g + 1] and times[at[b]] - times[at[b - 1]] <= gap:
                b += 1
            for i in range(a, b):
                start[i] = times[at[a]]
                end[i] = times[at[b - 1]] + gap
            a = b
