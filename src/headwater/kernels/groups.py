"""Slices of groups: the rows around what changed, with the weights they had and the weights they get.

An operator that depends on the order of a key's rows (a lag, a frame, a rank) is a function of the rows near a change,
not of the whole group. So a change is given a *slice*: the rows whose result it can touch (the **core**), and around
them the rows which those results are made of (the context). Slices are found by binary search in each run and read by
one walk through all of them; rows of a table whose last run is what is staged get two weights at once, without the
staged run (old) and with it (new), so old and new state are read together. Changes near each other share a slice, and
cores never overlap, so a row is recomputed once.

How far a slice goes is an *extent* of four bounds: the core before and after a change, and the context before and after
the core, each (endless, high, low). `BY_ROWS` counts rows (a row of weight 3 is three rows), and goes far enough for
the old rows and for the new ones. `BY_VALUE` adds to the value of the one order column, as numbers of 128 bits.
`BY_CHAIN` goes on as long as neighbours are at most the first bound apart. Invariant: the context after is at least the
core before, or cores would overlap.

What is found is a list of *picks*: (run, position, old weight, new weight, core or not, slice); `gather` copies the
rows.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Hashes, Positions, Rows
from headwater.kernels.compiled import kernel, shared
from headwater.kernels.memory import view_rows, view_u64
from headwater.kernels.walk import first_from
from headwater.kernels.window_values import less, plus, wide
from headwater.kernels.window_walk import ahead, behind, key_limits, ordered, weigh
from headwater.kernels.words import INLINE

__all__ = ["BY_CHAIN", "BY_ROWS", "BY_VALUE", "gather", "groups", "slices"]

BY_ROWS, BY_VALUE, BY_CHAIN = 0, 1, 2
_RUN, _AT, _OLD, _NEW, _CORE, _SLICE = 0, 1, 2, 3, 4, 5


@shared
def _near(
    rows: Rows,
    i: int,
    base: int,
    others: Rows,
    j: int,
    other_base: int,
    value: Positions,
    peers: Rows,
    extent: Rows,
    one: int,
    two: int,
) -> bool:
    """Is row ``j`` of ``others``, which is not before row ``i``, at most the bounds ``one`` and ``two`` (-1: no)
    after it?
    """
    if extent[one, 0] or (two >= 0 and extent[two, 0]):
        return True
    if value[1] < 0:
        return ordered(rows, i, base, others, j, other_base, peers) == 0
    if value[0] >= 0 and rows[i, value[0]] != others[j, value[0]]:
        return False
    high, low = wide(rows, i, value[1], value[2])
    high, low = plus(high, low, extent[one, 1], extent[one, 2])
    if two >= 0:
        high, low = plus(high, low, extent[two, 1], extent[two, 2])
    there_high, there_low = wide(others, j, value[1], value[2])
    return not less(high, low, there_high, there_low)


@shared
def _grown(picks: Rows, size: int) -> Rows:
    if size < picks.shape[0]:
        return picks
    out = np.empty((2 * picks.shape[0], picks.shape[1]), np.int64)
    for i in range(size):
        for c in range(picks.shape[1]):
            out[i, c] = picks[i, c]
    return out


@shared
def _walk_back(
    runs: Rows,
    width: int,
    order: Rows,
    mode: int,
    extent: Rows,
    value: Positions,
    peers: Rows,
    change: int,
    at: Rows,
    begin: Rows,
    picks: Rows,
    m: int,
    piece: int,
) -> tuple[Rows, int]:
    """Add the rows before a change, in their order, as far as the core and the context go."""
    last = runs.shape[0] - 1
    changed = view_rows(runs[last, 1], runs[last, 5], width)
    first = m
    phase = 1
    old_count = 0
    new_count = 0
    mark = changed
    mark_at = change
    origin = runs[last, 2]
    mark_base = origin
    while True:
        if mode == BY_ROWS:
            if phase == 1 and not extent[0, 0] and old_count >= extent[0, 2] and new_count >= extent[0, 2]:
                phase = 0
                old_count = 0
                new_count = 0
            if phase == 0 and not extent[2, 0] and old_count >= extent[2, 2] and new_count >= extent[2, 2]:
                break
        best = behind(runs, width, order, at, begin)
        if best < 0:
            break
        rows = view_rows(runs[best, 1], runs[best, 5], width)
        base = runs[best, 2]
        j = at[best] - 1
        if mode == BY_VALUE:
            if phase == 1 and not _near(rows, j, base, changed, change, origin, value, peers, extent, 0, -1):
                phase = 0
            if phase == 0 and not _near(rows, j, base, changed, change, origin, value, peers, extent, 0, 2):
                break
        elif mode == BY_CHAIN and not _near(rows, j, base, mark, mark_at, mark_base, value, peers, extent, 0, -1):
            break
        old, new = weigh(runs, width, order, at, begin, best, True, True)
        if old == 0 and new == 0:
            continue
        mark = rows
        mark_at = j
        mark_base = base
        old_count += old
        new_count += new
        if mode == BY_ROWS and phase == 0 and not extent[2, 0]:  # nobody sees more copies than this
            old = min(old, extent[2, 2])
            new = min(new, extent[2, 2])
        picks = _grown(picks, m)
        picks[m, _RUN] = best
        picks[m, _AT] = j
        picks[m, _OLD] = old
        picks[m, _NEW] = new
        picks[m, _CORE] = phase
        picks[m, _SLICE] = piece
        m += 1
    a = first
    b = m - 1
    while a < b:
        for c in range(picks.shape[1]):
            x = picks[a, c]
            picks[a, c] = picks[b, c]
            picks[b, c] = x
        a += 1
        b -= 1
    return picks, m


@shared
def _walk_on(  # noqa: C901
    runs: Rows,
    width: int,
    order: Rows,
    mode: int,
    extent: Rows,
    value: Positions,
    peers: Rows,
    change: int,
    at: Rows,
    end: Rows,
    picks: Rows,
    m: int,
    piece: int,
) -> tuple[Rows, int]:
    """Add a change and the rows after it; another change on the way starts the count anew."""
    last = runs.shape[0] - 1
    changed = view_rows(runs[last, 1], runs[last, 5], width)
    phase = 1
    context = m
    old_count = 0
    new_count = 0
    mark = changed
    mark_at = change
    mark_base = runs[last, 2]
    while True:
        counted = mode == BY_ROWS and not extent[1, 0] and old_count >= extent[1, 2] and new_count >= extent[1, 2]
        if counted and phase == 1 and at[last] != change:
            phase = 0
            context = m
            old_count = 0
            new_count = 0
        best = ahead(runs, width, order, at, end)
        if best < 0:
            break
        rows = view_rows(runs[best, 1], runs[best, 5], width)
        base = runs[best, 2]
        j = at[best]
        if mode == BY_VALUE:
            if phase == 1 and not _near(mark, mark_at, mark_base, rows, j, base, value, peers, extent, 1, -1):
                phase = 0
                context = m
            if phase == 0 and not _near(mark, mark_at, mark_base, rows, j, base, value, peers, extent, 1, 3):
                break
        elif mode == BY_CHAIN:
            if not _near(mark, mark_at, mark_base, rows, j, base, value, peers, extent, 0, -1):
                break
        elif phase == 0 and not extent[3, 0] and old_count >= extent[3, 2] and new_count >= extent[3, 2]:
            break
        before = at[last]
        old, new = weigh(runs, width, order, at, end, best, False, True)
        is_change = at[last] != before
        if is_change:
            if phase == 0:
                for k in range(context, m):
                    picks[k, _CORE] = 1
            phase = 1
            old_count = 0
            new_count = 0
        if (is_change and mode == BY_VALUE) or (mode == BY_CHAIN and (is_change or old > 0 or new > 0)):
            mark = rows
            mark_at = j
            mark_base = base
        if old == 0 and new == 0:
            continue
        if not is_change:
            old_count += old
            new_count += new
        picks = _grown(picks, m)
        picks[m, _RUN] = best
        picks[m, _AT] = j
        picks[m, _OLD] = old
        picks[m, _NEW] = new
        picks[m, _CORE] = phase
        picks[m, _SLICE] = piece
        m += 1
    return picks, m


@kernel
def slices(
    runs: Rows, width: int, keys: Rows, order: Rows, mode: int, extent: Rows, value: Positions, peers: Rows
) -> tuple[Rows, Positions]:
    """The slices around all rows of the last run: picks, and for each slice the change it begins with.

    ``value`` are the words of the order column: of the rank of nulls (or -1), the value, and its low word (or -1).
    Without a value (-1), all bounds are zero or endless, and rows are near each other if they are equal in the parts of
    ``peers``.
    """
    number = runs.shape[0]
    last = number - 1
    n = runs[last, 5]
    changed = view_rows(runs[last, 1], n, width)
    base = runs[last, 2]
    hashes = view_u64(runs[last, 0], n)
    begin = np.empty(number, np.int64)
    end = np.empty(number, np.int64)
    at = np.empty(number, np.int64)
    back = np.empty(number, np.int64)
    picks = np.empty((max(64, 4 * n), 6), np.int64)
    firsts = np.empty(n, np.int64)
    m = 0
    pieces = 0
    i = 0
    while i < n:
        key_limits(runs, width, hashes[i], changed, i, base, keys, begin, end)
        change = i
        while change < end[last]:
            for r in range(number):
                rows = view_rows(runs[r, 1], runs[r, 5], width)
                at[r] = first_from(rows, runs[r, 2], begin[r], end[r], changed, change, base, order)
                back[r] = at[r]
            picks, m = _walk_back(runs, width, order, mode, extent, value, peers, change, back, begin, picks, m, pieces)
            picks, m = _walk_on(runs, width, order, mode, extent, value, peers, change, at, end, picks, m, pieces)
            firsts[pieces] = change
            pieces += 1
            change = at[last]
        i = end[last]
    return picks[:m], firsts[:pieces]


@kernel
def groups(runs: Rows, width: int, staged: bool, hashes: Hashes, probes: Rows, keys: Rows, order: Rows) -> Rows:
    """All rows of some keys, as picks whose slice is the position of the key. ``probes`` have the layout of the runs,
    and the keys.

    ``staged`` says whether the last run is what is staged; if not, old and new are the same.
    """
    number = runs.shape[0]
    begin = np.empty(number, np.int64)
    end = np.empty(number, np.int64)
    picks = np.empty((64, 6), np.int64)
    m = 0
    for i in range(hashes.size):
        key_limits(runs, width, hashes[i], probes, i, 0, keys, begin, end)
        while True:
            best = ahead(runs, width, order, begin, end)
            if best < 0:
                break
            j = begin[best]
            old, new = weigh(runs, width, order, begin, end, best, False, staged)
            if old == 0 and new == 0:
                continue
            picks = _grown(picks, m)
            picks[m, _RUN] = best
            picks[m, _AT] = j
            picks[m, _OLD] = old
            picks[m, _NEW] = new
            picks[m, _CORE] = 1
            picks[m, _SLICE] = i
            m += 1
    return picks[:m]


@kernel
def gather(runs: Rows, width: int, picks: Rows, slots: Positions, out: Rows) -> None:
    """Copy the picked rows, with addresses for the distances of long strings."""
    for i in range(picks.shape[0]):
        r = picks[i, _RUN]
        rows = view_rows(runs[r, 1], runs[r, 5], width)
        for c in range(width):
            out[i, c] = rows[picks[i, _AT], c]
        for s in range(slots.size):
            if (out[i, slots[s]] & np.int64(0xFFFFFFFF)) > INLINE:
                out[i, slots[s] + 1] += runs[r, 2]
