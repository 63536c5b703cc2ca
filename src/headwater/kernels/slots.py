"""Slots: the sums of the keys that were touched last, each in one place.

A trace has the sums of a key in as many pieces as there are runs, and every change of it is a piece more. Keys that
change again and again are better kept whole: a slot has the sums as they are now, and as they are in the trace. Reading
is one look-up, adding is done in place, and from time to time what differs is written to the trace as one run
(`drain`).

A table of slots is described by a **book**, a list of numbers: addresses of the index (int32, a power of two, -1 where
it is free), hashes, rows (key, and sums now), bases (sums in the trace), the list of slots that differ, and a byte for
each slot that says whether it is listed; the mask of the index; how many slots are used, how many differ, and how many
there are.

Invariants: slots are filled from the first on and never moved; the sums of a slot, less its base, are what the trace is
short of.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Directory, Hashes, Positions, Rows
from headwater.kernels.compiled import kernel, shared
from headwater.kernels.memory import address_of, copy_words, load, store, view_bytes, view_i32, view_rows, view_u64
from headwater.kernels.probe import sums
from headwater.kernels.words import INLINE, equal_at

__all__ = ["BOOK", "add_to_slots", "drain", "find_slots", "take_from_slots"]

BOOK = ("index", "mask", "hashes", "rows", "bases", "differing", "marks", "used", "differ", "capacity")
"""What the numbers of a book are."""

_INDEX, _MASK, _HASHES, _ROWS, _BASES, _DIFFERING, _MARKS, _USED, _DIFFER, _CAPACITY = range(10)

_LENGTH = np.int64(0xFFFFFFFF)
_MOST = np.int64(1 << 61)

Book = Positions
Places = Directory


@shared
def find_slots(
    book: Book, runs: Rows, hashes: Hashes, touched: Rows, parts: Rows, payload: int, places: Places, old: Rows
) -> bool:
    """Fill ``places`` with the slots of some keys, and ``old`` with their sums; a key without a slot gets one, from the
    trace.

    False if a new key has a string that lies elsewhere, which a slot cannot keep. There has to be room for all keys.
    """
    n = touched.shape[0]
    width = touched.shape[1]
    weights = width - payload
    index = view_i32(book[_INDEX], book[_MASK] + 1)
    own_hashes = view_u64(book[_HASHES], book[_CAPACITY])
    missed = np.empty(n, np.int32)
    misses = np.int64(0)
    used = book[_USED]
    for i in range(n):
        h = hashes[i]
        at = np.int64(h >> np.uint64(20)) & book[_MASK]
        key = address_of(touched) + 8 * width * i
        while True:
            s = np.int64(index[at])
            if s < 0:
                break
            if own_hashes[s] == h and equal_at(
                book[_ROWS] + 8 * width * s, 0, address_of(parts), key, 0, address_of(parts), parts.shape[0]
            ):
                break
            at = (at + 1) & book[_MASK]
        if s < 0:
            for p in range(parts.shape[0]):
                if parts[p, 1] != 0 and (load(key, parts[p, 0]) & _LENGTH) > INLINE:
                    return False
            s = used
            used += 1
            index[at] = s
            own_hashes[s] = h
            copy_words(book[_ROWS] + 8 * width * s, key, payload)
            missed[misses] = i
            misses += 1
        places[i] = s
    book[_USED] = used
    if misses > 0:
        keys = np.empty((misses, width), np.int64)
        key_hashes = np.empty(misses, np.uint64)
        found = np.empty((misses, weights), np.int64)
        for m in range(misses):
            copy_words(address_of(keys) + 8 * width * m, address_of(touched) + 8 * width * np.int64(missed[m]), payload)
            key_hashes[m] = hashes[missed[m]]
        sums(runs, key_hashes, keys, parts, parts, width, payload, found)
        for m in range(misses):
            s = np.int64(places[missed[m]])
            copy_words(book[_ROWS] + 8 * (width * s + payload), address_of(found) + 8 * weights * m, weights)
            copy_words(book[_BASES] + 8 * weights * s, address_of(found) + 8 * weights * m, weights)
    for i in range(n):
        now = book[_ROWS] + 8 * (width * np.int64(places[i]) + payload)
        copy_words(address_of(old) + 8 * weights * i, now, weights)
    return True


@shared
def add_to_slots(book: Book, places: Places, touched: Rows, payload: int, old: Rows) -> bool:
    """Add what touched keys come to; False, and nothing is added, if a sum becomes too large to be kept here."""
    n = touched.shape[0]
    width = touched.shape[1]
    for i in range(n):
        change = address_of(touched) + 8 * (width * i + payload)
        was = address_of(old) + 8 * (width - payload) * i
        for k in range(width - payload):
            x = load(was, k)
            y = load(change, k)
            if not (-_MOST < x < _MOST and -_MOST < y < _MOST and -_MOST < x + y < _MOST):
                return False
    marks = view_bytes(book[_MARKS], book[_CAPACITY])
    differing = view_i32(book[_DIFFERING], book[_CAPACITY])
    differ = book[_DIFFER]
    for i in range(n):
        s = np.int64(places[i])
        change = address_of(touched) + 8 * (width * i + payload)
        now = book[_ROWS] + 8 * (width * s + payload)
        for k in range(width - payload):
            store(now, k, load(now, k) + load(change, k))
        if marks[s] == 0:
            marks[s] = 1
            differing[differ] = s
            differ += 1
    book[_DIFFER] = differ
    return True


@kernel
def take_from_slots(book: Book, places: Places, touched: Rows, payload: int) -> None:
    """Take back what `add_to_slots` added."""
    width = touched.shape[1]
    for i in range(touched.shape[0]):
        change = address_of(touched) + 8 * (width * i + payload)
        now = book[_ROWS] + 8 * (width * np.int64(places[i]) + payload)
        for k in range(width - payload):
            store(now, k, load(now, k) - load(change, k))


@kernel
def drain(book: Book, payload: int, hashes: Hashes, out: Rows) -> None:
    """Write what the trace is short of to ``out``, a row for each slot that differs; from then on none does."""
    width = out.shape[1]
    weights = width - payload
    own_hashes = view_u64(book[_HASHES], book[_CAPACITY])
    rows = view_rows(book[_ROWS], book[_CAPACITY], width)
    bases = view_rows(book[_BASES], book[_CAPACITY], weights)
    marks = view_bytes(book[_MARKS], book[_CAPACITY])
    differing = view_i32(book[_DIFFERING], book[_CAPACITY])
    for m in range(book[_DIFFER]):
        s = np.int64(differing[m])
        marks[s] = 0
        hashes[m] = own_hashes[s]
        for k in range(payload):
            out[m, k] = rows[s, k]
        for k in range(weights):
            out[m, payload + k] = rows[s, payload + k] - bases[s, k]
            bases[s, k] = rows[s, payload + k]
    book[_DIFFER] = 0
