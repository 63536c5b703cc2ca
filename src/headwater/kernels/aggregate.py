"""A step of a common aggregate in one call: linear accumulators, and at most one column with a least and a greatest
value.

This is the sequence that `headwater.incremental.operators.aggregate` goes through kernel by kernel for every aggregate,
written as one kernel for those of fixed width. A small step costs little but the calls it makes, and this one makes a
single call. The kernels are the same.

What does not change from step to step is in the **plan**, a list of addresses and numbers (`PLAN` says which); matrices
are given as (address, lines, columns).
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.accumulate import OVERFLOW, accumulate_words
from headwater.kernels.arrange import rearrange
from headwater.kernels.arrays import Directory, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.consolidate import consolidate
from headwater.kernels.extremes import extremes
from headwater.kernels.finish import changes, finish
from headwater.kernels.hash import hash_all
from headwater.kernels.memory import address_of, load, view_rows, view_u64
from headwater.kernels.probe import sums
from headwater.kernels.slots import add_to_slots, find_slots

__all__ = ["FULL_WEIGHT", "MATRICES", "NOT_FOR_SLOTS", "NO_ROOM_FOR_SUM", "NUMBERS", "aggregate_step"]

FULL_WEIGHT = -1
NO_ROOM_FOR_SUM = -2
NOT_FOR_SLOTS = -3

MATRICES = (
    "moves",
    "bits",
    "makings",
    "key_parts",
    "sums_key_parts",
    "sums_sort_parts",
    "conditions",
    "specs",
    "recipes",
    "value_moves",
    "value_bits",
    "value_makings",
    "value_key_parts",
    "value_sort_parts",
    "value_start_parts",
    "value_key_moves",
    "ends",
    "targets",
)
"""The matrices of a plan, in their order: three words each."""

NUMBERS = (
    "moved",
    "arranged_width",
    "key_from",
    "key_to",
    "key_words",
    "key_mask",
    "gates",
    "sums_payload",
    "finish_words",
    "finish_shift",
    "has_values",
    "absent_mask",
    "value_moved",
    "value_payload",
    "value_word",
    "value_words",
)
"""The numbers of a plan, behind the matrices."""

_MOVES, _BITS, _MAKINGS, _KEY, _SUMS_KEY, _SUMS_SORT, _CONDITIONS, _SPECS, _RECIPES = range(9)
_V_MOVES, _V_BITS, _V_MAKINGS, _V_KEY, _V_SORT, _V_START, _V_KEY_MOVES, _ENDS, _TARGETS = range(9, 18)
_FIRST = 3 * 18


@inlined
def _matrix(plan: int, which: int) -> Rows:
    return view_rows(load(plan, 3 * which), load(plan, 3 * which + 1), load(plan, 3 * which + 2))


@kernel
def aggregate_step(  # noqa: C901
    plan: int,
    rows: Rows,
    sums_runs: Rows,
    book: Positions,
    places: Directory,
    value_runs: Rows,
    out: Rows,
    sums_hashes: Hashes,
    sums_rows: Rows,
    sums_directory: Directory,
    sums_line: Positions,
    value_hashes: Hashes,
    value_rows: Rows,
    value_directory: Directory,
    value_line: Positions,
    bits: int,
) -> tuple[int, int, int, int, int]:
    """Give (rows of the output, rows of the run of sums and its `weight_bound`, the same of the run of values).

    ``plan`` is an address. ``value_runs`` has room for one more line. The first number is FULL_WEIGHT or
    NO_ROOM_FOR_SUM where weights or a sum do not fit; nothing else counts then.

    With a ``book`` the sums are kept in slots (`headwater.kernels.slots`) and there is no run of them: ``places`` are
    the slots of the keys, ``sums_rows`` what was added to them, and the second number how many they are. NOT_FOR_SLOTS
    is for what slots cannot keep.
    """
    slotted = book.size > 0
    n = rows.shape[0]
    at = _FIRST
    key_parts = _matrix(plan, _KEY)
    if load(plan, at) != 0:
        arranged = np.empty((n, load(plan, at + 1)), np.int64)
        rearrange(rows, _matrix(plan, _MOVES), _matrix(plan, _BITS), _matrix(plan, _MAKINGS), arranged)
    else:
        arranged = rows
    hashes = np.empty(n, np.uint64)
    hash_all(arranged, key_parts, hashes)
    size = np.int64(16)
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int32)
    room_hashes = sums_hashes if slotted else np.empty(n, np.uint64)
    room = sums_rows if slotted else np.empty((n, sums_rows.shape[1]), np.int64)
    payload = load(plan, at + 7)
    keys = accumulate_words(
        hashes,
        arranged,
        key_parts,
        load(plan, at + 2),
        load(plan, at + 3),
        load(plan, at + 4),
        load(plan, at + 5),
        _matrix(plan, _SUMS_KEY),
        _matrix(plan, _CONDITIONS),
        load(plan, at + 6),
        _matrix(plan, _SPECS),
        payload,
        table,
        0,
        room_hashes,
        room,
    )
    if keys == OVERFLOW:
        return FULL_WEIGHT, 0, 0, 0, 0
    touched_hashes = view_u64(address_of(room_hashes), keys)
    touched = view_rows(address_of(room), keys, room.shape[1])
    old = np.empty((keys, touched.shape[1] - payload), np.int64)
    sums_parts = _matrix(plan, _SUMS_KEY)
    if not slotted:
        sums(sums_runs, touched_hashes, touched, sums_parts, sums_parts, touched.shape[1], payload, old)
    elif not find_slots(book, sums_runs, touched_hashes, touched, sums_parts, payload, places, old):
        return NOT_FOR_SLOTS, 0, 0, 0, 0
    both = view_rows(address_of(out), 2 * keys, out.shape[1])
    for i in range(2 * keys):
        for k in range(out.shape[1]):
            both[i, k] = 0
    values = np.int64(0)
    values_most = np.int64(0)
    if load(plan, at + 10) != 0:
        values, values_most = _values(
            plan, arranged, hashes, value_hashes, value_rows, value_directory, value_line, bits
        )
        if values == OVERFLOW:
            return FULL_WEIGHT, 0, 0, 0, 0
        staged = values > 0
        runs = value_runs
        if staged:
            for k in range(value_line.size):
                value_runs[value_runs.shape[0] - 1, k] = value_line[k]
        else:
            runs = view_rows(address_of(value_runs), value_runs.shape[0] - 1, value_runs.shape[1])
        ends = _matrix(plan, _ENDS)
        targets = _matrix(plan, _TARGETS)
        for e in range(ends.shape[0]):
            extremes(
                runs,
                staged,
                value_rows.shape[1],
                touched_hashes,
                touched,
                payload,
                _matrix(plan, _V_KEY_MOVES),
                load(plan, at + 5),
                old,
                ends[e, 0],
                load(plan, at + 14),
                load(plan, at + 15),
                _matrix(plan, _V_MAKINGS),
                _matrix(plan, _V_START),
                _matrix(plan, _V_KEY),
                _matrix(plan, _V_SORT),
                ends[e, 1] != 0,
                both,
                view_rows(address_of(targets) + 24 * ends[e, 2], ends[e, 3] - ends[e, 2], 3),
            )
    if finish(touched, payload, old, _matrix(plan, _RECIPES), load(plan, at + 8), load(plan, at + 9), both) >= 0:
        return NO_ROOM_FOR_SUM, 0, 0, 0, 0
    found = changes(touched, payload, old, both)
    if slotted:
        if not add_to_slots(book, places, touched, payload, old):
            return NOT_FOR_SLOTS, 0, 0, 0, 0
        return found, keys, 0, values, values_most
    kept, most = consolidate(
        True,
        touched_hashes,
        sums_parts,
        touched,
        _matrix(plan, _SUMS_SORT),
        payload,
        bits,
        sums_hashes,
        sums_rows,
        sums_directory,
        sums_line,
    )
    if kept == OVERFLOW or room.size < 0 or room_hashes.size < 0:  # the views do not keep them alive, this does
        return FULL_WEIGHT, 0, 0, 0, 0
    return found, kept, most, values, values_most


@shared
def _values(
    plan: int,
    arranged: Rows,
    hashes: Hashes,
    value_hashes: Hashes,
    value_rows: Rows,
    value_directory: Directory,
    value_line: Positions,
    bits: int,
) -> tuple[int, int]:
    """Make the run of the values that changed."""
    n = arranged.shape[0]
    absent = load(plan, _FIRST + 11)
    own_hashes = hashes
    chosen = arranged
    count = np.int64(0)
    for i in range(n):
        count += (arranged[i, 0] & absent) == 0
    if count < n:
        own_hashes = np.empty(count, np.uint64)
        chosen = np.empty((count, arranged.shape[1]), np.int64)
        m = np.int64(0)
        for i in range(n):
            if (arranged[i, 0] & absent) == 0:
                own_hashes[m] = hashes[i]
                for k in range(arranged.shape[1]):
                    chosen[m, k] = arranged[i, k]
                m += 1
    own = chosen
    if load(plan, _FIRST + 12) != 0:
        own = np.empty((count, value_rows.shape[1]), np.int64)
        rearrange(chosen, _matrix(plan, _V_MOVES), _matrix(plan, _V_BITS), _matrix(plan, _V_MAKINGS), own)
    return consolidate(
        True,
        own_hashes,
        _matrix(plan, _V_KEY),
        own,
        _matrix(plan, _V_SORT),
        load(plan, _FIRST + 13),
        bits,
        value_hashes,
        value_rows,
        value_directory,
        value_line,
    )
