"""Finding records by their keys, many at a time.

A layer is an index with open addressing over records. An entry of the index is 64 bits: a fingerprint above, the number
of the record plus one below, and zero where there is none. Looking up a key is two accesses to memory that no cache
holds, one for the index and one for the record, which begins with its key. So the keys of a request are looked up
together: all index entries are asked for ahead, then all records, then the keys are compared. Searching whole cache
lines without branches, and three steps that run some keys behind each other, were both tried and took longer. Keys of
eight bytes have a way of their own (`online_words`).

`layers` has one row per layer and part, the newest layer first, and the parts of a layer one after the other::

    [index, entries, records, number of records, heap, bytes of the heap]

A key that a newer layer has, if only as deleted, is not looked for in older ones.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import GivenBytes, GivenPositions, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.memory import address_of, byte, half, load, prefetch_at, store, word
from headwater.kernels.online_record import (
    INLINE,
    KEY,
    NULLS,
    WIDTH,
    ask_for_entry,
    entry_of,
    equal_bytes,
    hash_bytes,
    key_address,
    key_length,
)
from headwater.kernels.online_words import are_words, locate_words

__all__ = ["build_index", "find_records", "hash_keys", "locate", "order_of_parts"]

_LOW = np.uint64(0xFFFFFFFF)
_THIRTY_TWO = np.uint64(32)
_ENTRIES = 1
_RECORDS = 2
_COUNT = 3
_HEAP = 4
_HEAP_BYTES = 5


@inlined
def _part_of(h: np.uint64, parts: int) -> int:
    return np.int64(((h & _LOW) * np.uint64(parts)) >> _THIRTY_TWO)


@kernel
def hash_keys(data: GivenBytes, offsets: GivenPositions, seed: int, out: Hashes) -> None:
    """The hashes of keys."""
    base = address_of(data)
    for i in range(out.size):
        out[i] = hash_bytes(base + offsets[i], offsets[i + 1] - offsets[i], np.uint64(seed))


@kernel
def order_of_parts(hashes: Hashes, parts: int, counts: Positions, out: Positions) -> None:
    """The positions of keys by part, in ``out``, and how many each part has, in ``counts``."""
    for k in range(parts):
        counts[k] = 0
    for i in range(hashes.size):
        counts[_part_of(hashes[i], parts)] += 1
    begin = np.zeros(parts, np.int64)
    for k in range(1, parts):
        begin[k] = begin[k - 1] + counts[k - 1]
    for i in range(hashes.size):
        part = _part_of(hashes[i], parts)
        out[begin[part]] = i
        begin[part] += 1


@inlined
def _is_key(record: int, fixed: int, inline: int, heap: int, heap_bytes: int, at: int, length: int) -> bool:
    """Whether a record has the key of ``length`` bytes at ``at``."""
    if fixed > 0:
        return length == fixed and equal_bytes(record, at, length)
    if np.int64(half(record)) != length:
        return False
    if length <= inline:
        return equal_bytes(record + 4, at, length)
    place = np.int64(word(record + 8))
    if place < 0 or place + length > heap_bytes:
        return False
    return equal_bytes(heap + place, at, length)


@shared
def _choose(
    hashes: Hashes,
    layers: Rows,
    first: int,
    parts: int,
    width: int,
    records: Positions,
    places: Positions,
    chosen: Positions,
) -> None:
    """The first entry with the fingerprint of each key that is still looked for, or -1; its record is asked for, and
    its address goes to ``chosen``.
    """
    index, entries, base = layers[first, 0], layers[first, _ENTRIES], layers[first, _RECORDS]
    for i in range(hashes.size):
        places[i] = -1
        if records[i] != -1:
            continue
        h = hashes[i]
        if parts > 1:
            row = first + _part_of(h, parts)
            index, entries, base = layers[row, 0], layers[row, _ENTRIES], layers[row, _RECORDS]
        at = entry_of(h, entries)
        for _ in range(entries):  # an index is never full, unless the file is damaged
            entry = np.uint64(load(index, at))
            if entry >> _THIRTY_TWO == h & _LOW and entry != np.uint64(0):
                places[i] = at
                chosen[i] = base + (np.int64(entry & _LOW) - 1) * width
                prefetch_at(chosen[i])
                break
            if entry == np.uint64(0):
                break
            at += 1
            if at == entries:
                at = 0


@shared
def _compare(
    base: int,
    offsets: GivenPositions,
    hashes: Hashes,
    layers: Rows,
    first: int,
    parts: int,
    shape: Positions,
    places: Positions,
    chosen: Positions,
    records: Positions,
    heaps: Positions,
) -> int:
    """Compare the keys of the records that were chosen, and go on from entry to entry where they differ; gives how many
    keys need not be looked for any more.
    """
    settled = 0
    width, fixed, inline, nulls = shape[WIDTH], shape[KEY], shape[INLINE], shape[NULLS]
    row = first
    index, entries, begin, count = layers[row, 0], layers[row, _ENTRIES], layers[row, _RECORDS], layers[row, _COUNT]
    heap, heap_bytes = layers[row, _HEAP], layers[row, _HEAP_BYTES]
    for i in range(hashes.size):
        at = places[i]
        if at < 0:
            continue
        h = hashes[i]
        if parts > 1:
            row = first + _part_of(h, parts)
            index, entries, begin, count = (
                layers[row, 0],
                layers[row, _ENTRIES],
                layers[row, _RECORDS],
                layers[row, _COUNT],
            )
            heap, heap_bytes = layers[row, _HEAP], layers[row, _HEAP_BYTES]
        key = base + offsets[i]
        length = offsets[i + 1] - offsets[i]
        record = chosen[i]
        if record < begin + count * width and _is_key(record, fixed, inline, heap, heap_bytes, key, length):
            records[i] = 0 if byte(record + nulls) & np.uint64(1) else record
            heaps[i] = row
            settled += 1
            continue
        for _ in range(entries):  # another key has the same fingerprint
            entry = np.uint64(load(index, at))
            if entry == np.uint64(0):
                break
            number = np.int64(entry & _LOW) - 1
            if (entry >> _THIRTY_TWO) == (h & _LOW) and number < count:
                record = begin + number * width
                if _is_key(record, fixed, inline, heap, heap_bytes, key, length):
                    records[i] = 0 if byte(record + nulls) & np.uint64(1) else record
                    heaps[i] = row
                    settled += 1
                    break
            at += 1
            if at == entries:
                at = 0
    return settled


@shared
def locate(
    base: int,
    offsets: GivenPositions,
    layers: Rows,
    parts: int,
    shape: Positions,
    seed: int,
    records: Positions,
    heaps: Positions,
) -> int:
    """What `find_records` does, for keys whose bytes begin at an address."""
    n = records.size
    width = shape[WIDTH]
    if parts == 1 and shape[KEY] == 8 and are_words(offsets, n):
        return locate_words(base + offsets[0], layers, shape, seed, records, heaps)
    hashes = np.empty(n, np.uint64)
    places = np.empty(n, np.int64)
    chosen = np.empty(n, np.int64)
    groups = layers.shape[0] // parts
    last = (groups - 1) * parts
    index, entries = layers[last, 0], layers[last, _ENTRIES]
    for i in range(n):
        length = offsets[i + 1] - offsets[i]
        h = hash_bytes(base + offsets[i], length, np.uint64(seed))
        hashes[i] = h
        if parts > 1:
            row = last + _part_of(h, parts)
            index, entries = layers[row, 0], layers[row, _ENTRIES]
        ask_for_entry(index, entry_of(h, entries))
        records[i] = -1
    left = n
    for group in range(groups):
        if left == 0:
            break
        first = group * parts
        if group != groups - 1:
            for i in range(n):
                if records[i] == -1:
                    row = first if parts == 1 else first + _part_of(hashes[i], parts)
                    ask_for_entry(layers[row, 0], entry_of(hashes[i], layers[row, _ENTRIES]))
        _choose(hashes, layers, first, parts, width, records, places, chosen)
        left -= _compare(base, offsets, hashes, layers, first, parts, shape, places, chosen, records, heaps)
    missing = 0
    for i in range(n):
        if records[i] <= 0:
            records[i] = 0
            missing += 1
    return missing


@kernel
def find_records(
    data: GivenBytes,
    offsets: GivenPositions,
    layers: Rows,
    parts: int,
    shape: Positions,
    seed: int,
    records: Positions,
    heaps: Positions,
) -> int:
    """Write the address of the record of each key to ``records``, 0 where there is none, and that of its heap, as a
    number of a row of ``layers``, to ``heaps``; give how many keys were not found. A negative length is no key.
    """
    return locate(address_of(data), offsets, layers, parts, shape, seed, records, heaps)


@shared
def _count_ties(
    index: Hashes, records: int, count: int, heap: int, shape: Positions, seed: int, order: int, twice: Positions
) -> int:
    """How many records have the key and the order word of the one that stayed.

    Two that are both less than a third do not matter.
    """
    width = shape[WIDTH]
    entries = index.size
    slots = address_of(index)
    ties = 0
    for number in range(count):
        record = records + number * width
        length = key_length(record, shape)
        key = key_address(record, shape, heap)
        h = hash_bytes(key, length, np.uint64(seed))
        at = entry_of(h, entries)
        while True:
            entry = np.uint64(load(slots, at))
            there = np.int64(entry & _LOW) - 1
            if there == number:
                break
            other = records + there * width
            if (entry >> _THIRTY_TWO) == (h & _LOW) and _same_key(record, other, shape, heap):
                if word(record + order) == word(other + order):
                    if ties == 0:
                        twice[0] = there
                        twice[1] = number
                    ties += 1
                break
            at += 1
            if at == entries:
                at = 0
    return ties


@inlined
def _same_key(one: int, other: int, shape: Positions, heap: int) -> bool:
    length = key_length(one, shape)
    return length == key_length(other, shape) and equal_bytes(
        key_address(one, shape, heap), key_address(other, shape, heap), length
    )


@kernel
def build_index(
    index: Hashes,
    records: int,
    count: int,
    heap: int,
    shape: Positions,
    seed: int,
    order: int,
    twice: Positions,
) -> int:
    """Enter ``count`` records into an empty index; give how many keys occurred twice.

    Of two records with one key the one stays whose order word, at ``order`` in the record, is larger. If they are
    equal, or ``order`` is -1, it is a duplicate: the numbers of the first pair are written to ``twice``.
    """
    width = shape[WIDTH]
    entries = index.size
    slots = address_of(index)
    ahead = np.empty(64, np.uint64)
    duplicates = 0
    for begin in range(0, count, 64):
        m = min(np.int64(64), count - begin)
        for j in range(m):
            record = records + (begin + j) * width
            h = hash_bytes(key_address(record, shape, heap), key_length(record, shape), np.uint64(seed))
            ahead[j] = h
            prefetch_at(slots + 8 * entry_of(h, entries))
        for j in range(m):
            h = ahead[j]
            fingerprint = h & _LOW
            number = begin + j
            record = records + number * width
            mine = np.int64((fingerprint << _THIRTY_TWO) | np.uint64(number + 1))
            at = entry_of(h, entries)
            while True:
                entry = np.uint64(load(slots, at))
                if entry == np.uint64(0):
                    store(slots, at, mine)
                    break
                there = np.int64(entry & _LOW) - 1
                other = records + there * width
                if (entry >> _THIRTY_TWO) == fingerprint and _same_key(record, other, shape, heap):
                    less = order >= 0 and np.int64(word(record + order)) < np.int64(word(other + order))
                    more = order >= 0 and np.int64(word(record + order)) > np.int64(word(other + order))
                    if more:
                        store(slots, at, mine)
                    if not (less or more):
                        if duplicates == 0:
                            twice[0] = there
                            twice[1] = number
                        duplicates += 1
                    break
                at += 1
                if at == entries:
                    at = 0
    if order < 0 or duplicates == 0:
        return duplicates
    return _count_ties(index, records, count, heap, shape, seed, order, twice)
