"""Prefixes: the first rows of a group, kept up to date.

The first k rows after a change are those there were, with the changes among them, and as many from behind the old end
as are then missing. So nothing is read but the old prefix and what fills it up. A prefix is full when it has reached
its limit; one that is not full is the whole group. Modes say what the limit counts: rows (`NUMBERS`), rows with all
peers of the last (`RANKS`), or sets of peers (`DENSE`).
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.memory import view_rows
from headwater.kernels.walk import first_after, hash_range
from headwater.kernels.window_walk import ahead, ordered, weigh
from headwater.kernels.words import INLINE

__all__ = ["DENSE", "NUMBERS", "RANKS", "prefixes"]

NUMBERS, RANKS, DENSE = 0, 1, 2


@shared
def _emit(out: Rows, notes: Rows, m: int, rows: Rows, i: int, old: int, new: int, piece: int) -> tuple[Rows, Rows]:
    if m == out.shape[0]:
        more = np.empty((2 * m, out.shape[1]), np.int64)
        more_notes = np.empty((2 * m, 3), np.int64)
        for k in range(m):
            for c in range(out.shape[1]):
                more[k, c] = out[k, c]
            for c in range(3):
                more_notes[k, c] = notes[k, c]
        out = more
        notes = more_notes
    for c in range(out.shape[1]):
        out[m, c] = rows[i, c]
    notes[m, 0] = old
    notes[m, 1] = new
    notes[m, 2] = piece
    return out, notes


@inlined
def _ended(mode: int, limit: int, count: int, sets: int, peer: bool) -> bool:
    """Is the limit reached before the next row, which is a peer of the last one or not?"""
    if mode == NUMBERS:
        return count >= limit
    if peer:
        return False
    return count >= limit if mode == RANKS else sets >= limit


@kernel
def prefixes(  # noqa: C901
    runs: Rows,
    width: int,
    hashes: Hashes,
    olds: Rows,
    old_offsets: Positions,
    deltas: Rows,
    delta_offsets: Positions,
    mode: int,
    limit: int,
    keys: Rows,
    order: Rows,
    peers: Rows,
    slots: Positions,
) -> tuple[Rows, Rows]:
    """The rows of the old and new prefixes, and for each (old weight, new weight, group).

    For each group ``olds`` is its old prefix with the weights of its rows, and ``deltas`` what changes, sorted.
    ``peers`` are the parts of key and order; ``runs`` have the new rows.
    """
    number = runs.shape[0]
    at = np.empty(number, np.int64)
    end = np.empty(number, np.int64)
    weight = width - 1
    out = np.empty((olds.shape[0] + deltas.shape[0] + 16, width), np.int64)
    notes = np.empty((out.shape[0], 3), np.int64)
    m = 0
    for g in range(hashes.size):
        a = old_offsets[g]
        a_end = old_offsets[g + 1]
        b = delta_offsets[g]
        b_end = delta_offsets[g + 1]
        count = 0
        sets = 0
        for i in range(a, a_end):
            count += olds[i, weight]
            if i == a or ordered(olds, i, 0, olds, i - 1, 0, peers) != 0:
                sets += 1
        full = (sets if mode == DENSE else count) >= limit
        if full:
            while (
                b_end > b and ordered(deltas, b_end - 1, 0, olds, a_end - 1, 0, order if mode == NUMBERS else peers) > 0
            ):
                b_end -= 1
        if b == b_end:
            continue
        count = 0
        sets = 0
        last = -1
        done = False
        while a < a_end or b < b_end:
            side = -1 if b == b_end else 1
            if a < a_end and b < b_end:
                side = ordered(olds, a, 0, deltas, b, 0, order)
            elif a == a_end:
                side = 1
            rows = deltas if side > 0 else olds
            i = b if side > 0 else a
            old = olds[a, weight] if side <= 0 else 0
            new = old + (deltas[b, weight] if side >= 0 else 0)
            new = max(new, 0)
            if side >= 0:
                b += 1
            if side <= 0:
                a += 1
            if new > 0 and not done:
                peer = last >= 0 and ordered(rows, i, 0, out, last, 0, peers) == 0
                done = _ended(mode, limit, count, sets, peer)
                if not done and not peer:
                    sets += 1
            if done:
                new = 0
            if old == 0 and new == 0:
                continue
            out, notes = _emit(out, notes, m, rows, i, old, new, g)
            if new > 0:
                count += new
                last = m
            m += 1
        if done or not full:
            continue
        if last >= 0 and mode == NUMBERS and count >= limit:
            continue
        for r in range(number):
            x, y = hash_range(runs, r, hashes[g])
            rows = view_rows(runs[r, 1], runs[r, 5], width)
            at[r] = first_after(rows, runs[r, 2], x, y, olds, a_end - 1, 0, order if mode == NUMBERS else peers)
            end[r] = first_after(rows, runs[r, 2], x, y, olds, a_end - 1, 0, keys)
        while True:
            best = ahead(runs, width, order, at, end)
            if best < 0:
                break
            rows = view_rows(runs[best, 1], runs[best, 5], width)
            i = at[best]
            _, new = weigh(runs, width, order, at, end, best, False, False)
            if new == 0:
                continue
            peer = last >= 0 and ordered(rows, i, runs[best, 2], out, last, 0, peers) == 0
            if _ended(mode, limit, count, sets, peer):
                break
            if not peer:
                sets += 1
            out, notes = _emit(out, notes, m, rows, i, 0, new, g)
            for s in range(slots.size):
                if (out[m, slots[s]] & np.int64(0xFFFFFFFF)) > INLINE:
                    out[m, slots[s] + 1] += runs[best, 2]
            count += new
            last = m
            m += 1
    return out[:m], notes[:m]
