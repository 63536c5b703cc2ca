"""Finding records by keys of eight bytes, such as a number: what `online_find` does, for the most common key.

The keys of a request lie one behind the other, so there are no lengths to be read and no loops over bytes, and a key is
compared as one number. That leaves little to be done between one access to memory and the next, so more of them are
under way at once.

Each layer is gone through in two steps after its index entries were asked for: `_choose` finds the first entry with the
fingerprint of a key and asks for its record, `_compare` looks whether the record has the key. ``places`` has what is
known of each key in between: the entry where its search begins, then the address of its record; -1 where it is not
looked for, or not there.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import GivenPositions, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, shared
from headwater.kernels.hash import mix
from headwater.kernels.memory import byte, load, prefetch_at, word
from headwater.kernels.online_record import GOLDEN, NULLS, WIDTH, ask_for_entry, entry_of

__all__ = ["are_words", "locate_words"]

_LOW = np.uint64(0xFFFFFFFF)
_THIRTY_TWO = np.uint64(32)
_ENTRIES = 1
_RECORDS = 2
_COUNT = 3


@inlined
def are_words(offsets: GivenPositions, n: int) -> bool:
    """Whether each of the keys has eight bytes, so that they lie one behind the other."""
    others = 0
    for i in range(n):
        others += np.int64(offsets[i + 1] - offsets[i] != 8)
    return others == 0


@inlined
def _choose(index: int, entries: int, begin: int, width: int, hashes: Hashes, places: Positions) -> None:
    for i in range(hashes.size):
        at = places[i]
        if at < 0:
            continue
        fingerprint, found = hashes[i] & _LOW, np.int64(-1)
        while True:
            entry = np.uint64(load(index, at))
            if entry >> _THIRTY_TWO == fingerprint and entry != np.uint64(0):
                found = begin + (np.int64(entry & _LOW) - 1) * width
                prefetch_at(found)
                break
            if entry == np.uint64(0):
                break
            at += 1
            if at == entries:
                at = 0
            if at == places[i]:  # an index is never full, unless the file is damaged
                break
        places[i] = found


@shared
def _search(h: np.uint64, key: np.uint64, index: int, entries: int, begin: int, end: int, width: int) -> int:
    """The record of a key whose fingerprint another key has, too; 0 where there is none."""
    at = entry_of(h, entries)
    for _ in range(entries):
        entry = np.uint64(load(index, at))
        if entry == np.uint64(0):
            return 0
        record = begin + (np.int64(entry & _LOW) - 1) * width
        if entry >> _THIRTY_TWO == h & _LOW and record < end and word(record) == key:
            return record
        at += 1
        if at == entries:
            at = 0
    return 0


@inlined
def _compare(
    base: int,
    row: int,
    layers: Rows,
    shape: Positions,
    hashes: Hashes,
    places: Positions,
    records: Positions,
    heaps: Positions,
) -> int:
    """Gives how many keys need not be looked for any more; the records of those that were deleted are 0."""
    width, nulls = shape[WIDTH], shape[NULLS]
    begin, settled = layers[row, _RECORDS], 0
    end = begin + layers[row, _COUNT] * width
    for i in range(records.size):
        record = places[i]
        if record < 0:
            continue
        key = word(base + 8 * i)
        if record >= end or word(record) != key:
            record = _search(hashes[i], key, layers[row, 0], layers[row, _ENTRIES], begin, end, width)
            if record == 0:
                continue
        settled += 1
        heaps[i] = row
        records[i] = 0 if byte(record + nulls) & np.uint64(1) else record
    return settled


@shared
def locate_words(base: int, layers: Rows, shape: Positions, seed: int, records: Positions, heaps: Positions) -> int:
    """What `online_find.locate` does, for keys of eight bytes from an address on, in layers of one part."""
    n = records.size
    hashes, places = np.empty(n, np.uint64), np.empty(n, np.int64)
    start = np.uint64(seed) ^ (np.uint64(8) * GOLDEN)
    last = layers.shape[0] - 1
    index, entries = layers[last, 0], layers[last, _ENTRIES]
    for i in range(n):
        h = mix(start ^ word(base + 8 * i)) + GOLDEN  # as `hash_bytes` does
        hashes[i] = h
        at = entry_of(h, entries)
        places[i] = at
        ask_for_entry(index, at)
    records[:] = -1
    left = n
    for row in range(last + 1):
        if left == 0:
            break
        index, entries = layers[row, 0], layers[row, _ENTRIES]
        if last > 0:
            for i in range(n):
                at = entry_of(hashes[i], entries)
                places[i] = at if records[i] == -1 else -1
                ask_for_entry(index, at)
        _choose(index, entries, layers[row, _RECORDS], shape[WIDTH], hashes, places)
        left -= _compare(base, row, layers, shape, hashes, places, records, heaps)
    missing = 0
    for i in range(n):
        records[i] = max(np.int64(0), records[i])
        missing += np.int64(records[i] == 0)
    return missing
