"""Frames along series: where they begin and end, and sums, extremes and moments over them.

Rows are sorted by series and time, and ``starts`` says where each series begins. A frame is a stretch ``lo[i]`` to
``hi[i]`` (not included) of one series; both ends only go forward within it.

A sum of doubles over a frame is rounded at every step, so it must not depend on what is around the frame: sliding by
adding and subtracting is out. A frame of up to `SHORT` rows is added up from its first row to its last, as Spark does.
A longer one is put together from blocks of 16, 256, ... rows that are aligned by the row's number in its series
(``first`` is that of the first row here); so the sum is a function of the series alone, however it is cut, in O(log n)
steps. Means and squared distances are merged from such blocks in the same way.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, return-value, unreachable, var-annotated"

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Doubles, Flags, GivenDoubles, GivenPositions, Positions
from headwater.kernels.compiled import inlined, kernel

__all__ = ["SHORT", "frame_extremes", "frame_moments", "frame_sums", "row_frames", "time_frames"]

SHORT = 32
_MOST_LEVELS = 6
_LEAST = np.int64(-(1 << 63))
_MOST = np.int64((1 << 63) - 1)


@inlined
def _moved(time: int, by: int) -> int:
    """A time so much later, at most the last there is."""
    if by > 0 and time > _MOST - by:
        return _MOST
    if by < 0 and time < _LEAST - by:
        return _LEAST
    return time + by


@kernel
def time_frames(
    times: GivenPositions, timed: Flags, starts: Positions, begin: int, end: int, lo: Positions, hi: Positions
) -> None:
    """Frames from ``begin`` to ``end`` later than the row's time, both included; rows without a time see each other."""
    rows = times.size
    for s in range(starts.size):
        first = starts[s]
        last = starts[s + 1] if s + 1 < starts.size else rows
        known = first
        while known < last and not timed[known]:
            known += 1
        for i in range(first, known):
            lo[i] = first
            hi[i] = known
        a = known
        b = known
        for i in range(known, last):
            low = _moved(times[i], begin)
            high = _moved(times[i], end)
            while a < last and times[a] < low:
                a += 1
            while b < last and times[b] <= high:
                b += 1
            lo[i] = a
            hi[i] = max(a, b)


@kernel
def row_frames(starts: Positions, rows: int, begin: int, end: int, lo: Positions, hi: Positions) -> None:
    """Frames from ``begin`` to ``end`` rows further, both included."""
    for s in range(starts.size):
        first = starts[s]
        last = starts[s + 1] if s + 1 < starts.size else rows
        for i in range(first, last):
            a = max(first, min(last, i + begin))
            b = max(first, min(last, i + end + 1))
            lo[i] = a
            hi[i] = max(a, b)


@inlined
def _levels(lo: Positions, hi: Positions) -> int:
    """How many sizes of blocks the longest frame has a use for."""
    longest = np.int64(0)
    for i in range(lo.size):
        longest = max(longest, hi[i] - lo[i])
    levels = 0
    if longest > SHORT:
        while levels < _MOST_LEVELS and (np.int64(16) << (4 * levels)) <= longest:
            levels += 1
    return levels


@kernel
def frame_sums(  # noqa: C901
    values: GivenDoubles, starts: Positions, first: int, lo: Positions, hi: Positions, out: Doubles
) -> None:
    """The sum of each frame; what counts as nothing is zero in ``values``. Frames are in the order of the rows."""
    rows = values.size
    levels = _levels(lo, hi)
    # Of each level: the sum from the first of 16 to each one of them, and from each one to the last.
    bases = np.zeros(levels + 1, np.int64)
    for level in range(levels):
        bases[level + 1] = bases[level] + (rows >> (4 * level)) + 1
    ahead = np.empty(bases[levels])
    behind = np.empty(bases[levels])
    for level in range(levels):
        size = np.int64(1) << (4 * level)
        below = bases[level - 1] if level else np.int64(0)
        for s in range(starts.size):
            last = starts[s + 1] if s + 1 < starts.size else rows
            number = first if s == 0 else 0
            p = starts[s] + (-number) % size
            total = 0.0
            while p + size <= last:
                at = bases[level] + (p >> (4 * level))
                if not (p - starts[s] + number) & (16 * size - 1):
                    total = 0.0
                total += values[p] if level == 0 else ahead[below + ((p + size - (size >> 4)) >> (4 * level - 4))]
                ahead[at] = total
                p += size
            # Back again, from the end of the last whole block.
            p -= size
            total = 0.0
            while p >= starts[s]:
                at = bases[level] + (p >> (4 * level))
                if (p - starts[s] + number + size) & (16 * size - 1) == 0:
                    total = 0.0
                total += values[p] if level == 0 else ahead[below + ((p + size - (size >> 4)) >> (4 * level - 4))]
                behind[at] = total
                p -= size
    s = 0
    for i in range(lo.size):
        p = lo[i]
        stop = hi[i]
        total = 0.0
        if stop - p <= SHORT:
            while p < stop:
                total += values[p]
                p += 1
            out[i] = total
            continue
        while s + 1 < starts.size and starts[s + 1] <= p:
            s += 1
        shift = (first if s == 0 else 0) - starts[s]
        rest = 0.0
        level = 0
        while True:
            size = np.int64(1) << (4 * level)
            if level == levels or stop - p <= 16 * size:
                below = bases[level - 1] if level else np.int64(0)
                while p < stop:
                    total += values[p] if level == 0 else ahead[below + ((p + size - (size >> 4)) >> (4 * level - 4))]
                    p += size
                break
            wide = size << 4
            total += behind[bases[level] + (p >> (4 * level))]
            p += wide - ((p + shift) & (wide - 1))
            over = (stop + shift) & (wide - 1)
            if over:
                rest += ahead[bases[level] + ((stop - size) >> (4 * level))]
                stop -= over
            level += 1
        out[i] = total + rest


@inlined
def _merged(count: float, mean: float, square: float, n: float, m: float, q: float) -> tuple[float, float, float]:
    """Count, mean and sum of squared distances of two sets together."""
    if n == 0.0:
        return count, mean, square
    both = count + n
    away = m - mean
    return both, mean + away * (n / both), square + q + away * away * (count * n / both)


@kernel
def frame_moments(  # noqa: C901
    values: GivenDoubles,
    valid: Flags,
    starts: Positions,
    first: int,
    lo: Positions,
    hi: Positions,
    means: Doubles,
    squares: Doubles,
) -> None:
    """The mean of each frame and the sum of squared distances from it; not a number where there is no value."""
    rows = values.size
    levels = _levels(lo, hi)
    blocks = np.zeros((max(levels, 1), (rows >> 4) + 1, 3))
    for level in range(levels):
        wide = np.int64(16) << (4 * level)
        narrow = wide >> 4
        for s in range(starts.size):
            last = starts[s + 1] if s + 1 < starts.size else rows
            number = first if s == 0 else 0
            p = starts[s] + (-number) % wide
            while p + wide <= last:
                n, m, q = 0.0, 0.0, 0.0
                for k in range(16):
                    at = p + k * narrow
                    if level > 0:
                        part = blocks[level - 1, at >> (4 * level)]
                        n, m, q = _merged(n, m, q, part[0], part[1], part[2])
                    elif valid[at]:
                        n, m, q = _merged(n, m, q, 1.0, values[at], 0.0)
                part = blocks[level, p >> (4 * level + 4)]
                part[0] = n
                part[1] = m
                part[2] = q
                p += wide
    s = 0
    for i in range(lo.size):
        p = lo[i]
        stop = hi[i]
        n, m, q = 0.0, 0.0, 0.0
        if stop - p <= SHORT:
            for k in range(p, stop):
                if valid[k]:
                    n += 1.0
                    m += values[k]
            m /= n
            for k in range(p, stop):
                if valid[k]:
                    q += (values[k] - m) * (values[k] - m)
            means[i] = m
            squares[i] = q
            continue
        while s + 1 < starts.size and starts[s + 1] <= p:
            s += 1
        shift = (first if s == 0 else 0) - starts[s]
        while p < stop:
            level = 0
            while level < levels:
                wide = np.int64(16) << (4 * level)
                if (p + shift) & (wide - 1) or p + wide > stop:
                    break
                level += 1
            if level == 0:
                if valid[p]:
                    n, m, q = _merged(n, m, q, 1.0, values[p], 0.0)
                p += 1
            else:
                part = blocks[level - 1, p >> (4 * level)]
                n, m, q = _merged(n, m, q, part[0], part[1], part[2])
                p += np.int64(1) << (4 * level)
        means[i] = m if n > 0.0 else np.nan
        squares[i] = q


@kernel
def frame_extremes(
    words: GivenPositions, valid: Flags, starts: Positions, lo: Positions, hi: Positions, sign: int, out: Positions
) -> None:
    """The first row of each frame that has its least (``sign`` 1) or greatest (-1) word, or -1."""
    rows = words.size
    queue = np.empty(rows, np.int64)
    for s in range(starts.size):
        start = starts[s]
        last = starts[s + 1] if s + 1 < starts.size else rows
        head = 0
        tail = 0
        b = start
        for i in range(start, last):
            while b < hi[i]:
                if valid[b]:
                    word = words[b]
                    if sign > 0:
                        while tail > head and words[queue[tail - 1]] > word:
                            tail -= 1
                    else:
                        while tail > head and words[queue[tail - 1]] < word:
                            tail -= 1
                    queue[tail] = b
                    tail += 1
                b += 1
            while head < tail and queue[head] < lo[i]:
                head += 1
            out[i] = queue[head] if head < tail and queue[head] < hi[i] else -1
