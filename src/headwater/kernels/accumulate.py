"""Linear aggregates: add rows up by key, into vectors of weights.

Counting and adding are linear: the aggregate of a sum of Z-sets is the sum of the aggregates. So an aggregate is kept
as a Z-set whose weights are vectors of accumulators, and a change becomes one row for each key it touches. A sum of
64-bit numbers is kept in two limbs of 32 bits, each in a word of its own, so adding never carries and never overflows
before two thousand million rows; the carry is done when the sum is read. Sums of doubles, and of products, have rows of
their own (`headwater.kernels.floats`).

Which rows count for an accumulator is its **gate**: conditions of the form ``word & mask == wanted``, which say that
columns are not null, or that a condition is true. Gates are looked at once a row, however many accumulators are behind
them.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, return-value, unreachable, var-annotated"

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Directory, Flags, Hashes, Ranges, Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.floats import SPECIAL, add_double, add_product, bucket_of
from headwater.kernels.memory import address_of, load, store
from headwater.kernels.words import equal_at

__all__ = [
    "BITS",
    "COUNT",
    "FLOAT",
    "OVERFLOW",
    "PRODUCT",
    "SUM_PAIR",
    "SUM_WORD",
    "accumulate",
    "accumulate_words",
    "add_row",
    "group_of",
    "most_weight",
    "new_table",
]

COUNT, SUM_WORD, SUM_PAIR, BITS, FLOAT, PRODUCT = 0, 1, 2, 3, 4, 5
OVERFLOW = -1

_LIMB = np.int64(0xFFFFFFFF)
_SIGN = np.int64(-(1 << 63))


def new_table(rows: int) -> Directory:
    """An empty table of keys for so many rows."""
    return np.full(max(16, 1 << (2 * rows - 1).bit_length()), -1, dtype=np.int32)


@inlined
def most_weight(specs: Rows) -> int:
    """How large weights may be, added up, so that nothing that is made of them can overflow."""
    most = np.int64(1 << 62)
    for s in range(specs.shape[0]):
        if specs[s, 0] != COUNT:
            most = np.int64(1 << 31)
    return most


@inlined
def group_of(
    hashes: Hashes,
    rows: Rows,
    i: int,
    parts: Rows,
    key_from: int,
    key_to: int,
    key_words: int,
    key_mask: int,
    out_key_parts: Rows,
    table: Directory,
    m: int,
    payload: int,
    out_hashes: Hashes,
    out: Rows,
) -> int:
    """The line of a row's key in ``out``; ``m`` if it is a new one, which is then there,
    with zeros from ``payload`` on.
    """
    mask = np.int64(table.size - 1)
    h = hashes[i]
    row = address_of(rows) + 8 * rows.shape[1] * i
    at = np.int64(h) & mask
    while True:
        g = np.int64(table[at])
        if g < 0:
            table[at] = m
            out_hashes[m] = h
            to = address_of(out) + 8 * out.shape[1] * m
            store(to, 0, load(row, 0) & key_mask)
            for c in range(key_words):
                store(to, key_to + c, load(row, key_from + c))
            for c in range(payload, out.shape[1]):
                store(to, c, 0)
            return m
        if out_hashes[g] == h and equal_at(
            address_of(out) + 8 * out.shape[1] * g,
            0,
            address_of(out_key_parts),
            row,
            0,
            address_of(parts),
            parts.shape[0],
        ):
            return g
        at = (at + 1) & mask


@inlined
def _look_at_gates(rows: Rows, i: int, conditions: Rows, passed: Flags) -> None:
    for k in range(passed.size):
        passed[k] = True
    for k in range(conditions.shape[0]):
        if rows[i, conditions[k, 1]] & conditions[k, 2] != conditions[k, 3]:
            passed[conditions[k, 0]] = False


@inlined
def add_row(row: int, w: int, spec: int, payload: int, to: int) -> None:
    """Add what a row comes to for an accumulator that is words; row,
    spec and the line that is added to are addresses.
    """
    what = load(spec, 0)
    to += 8 * (payload + load(spec, 3))
    if what == COUNT:
        store(to, 0, load(to, 0) + w)
        return
    at = load(spec, 1)
    x = load(row, at)
    if what == BITS:
        for k in range(load(spec, 6)):
            store(to, k, load(to, k) + w * ((x >> k) & 1))
        return
    store(to, 0, load(to, 0) + w * (x >> 32))
    store(to, 1, load(to, 1) + w * (x & _LIMB))
    if what == SUM_PAIR:
        x = load(row, at + 1) ^ _SIGN
        store(to, 2, load(to, 2) + w * ((x >> 32) & _LIMB))
        store(to, 3, load(to, 3) + w * (x & _LIMB))


@kernel
def accumulate_words(
    hashes: Hashes,
    rows: Rows,
    parts: Rows,
    key_from: int,
    key_to: int,
    key_words: int,
    key_mask: int,
    out_key_parts: Rows,
    conditions: Rows,
    gates: int,
    specs: Rows,
    payload: int,
    table: Directory,
    known: int,
    out_hashes: Hashes,
    out: Rows,
) -> int:
    """Add rows to ``out`` as `accumulate` does, where all accumulators are words: counts and sums of whole numbers."""
    weight = rows.shape[1] - 1
    passed = np.empty(gates, np.bool_)
    total = np.int64(0)
    most = most_weight(specs)
    m = np.int64(known)
    for i in range(rows.shape[0]):
        g = group_of(
            hashes,
            rows,
            i,
            parts,
            key_from,
            key_to,
            key_words,
            key_mask,
            out_key_parts,
            table,
            m,
            payload,
            out_hashes,
            out,
        )
        m += g == m
        w = rows[i, weight]
        if not -most < w < most:
            return OVERFLOW
        total += abs(w)
        if total >= most:
            return OVERFLOW
        row = address_of(rows) + 8 * rows.shape[1] * i
        to = address_of(out) + 8 * out.shape[1] * g
        if conditions.shape[0] > 0:
            _look_at_gates(rows, i, conditions, passed)
        for s in range(specs.shape[0]):
            spec = address_of(specs) + 8 * specs.shape[1] * s
            if conditions.shape[0] == 0 or passed[load(spec, 2)]:
                add_row(row, w, spec, payload, to)
    return m


@kernel
def accumulate(
    hashes: Hashes,
    rows: Rows,
    parts: Rows,
    key_from: int,
    key_to: int,
    key_words: int,
    key_mask: int,
    out_key_parts: Rows,
    conditions: Rows,
    gates: int,
    specs: Rows,
    factors: Rows,
    payload: int,
    part_word: int,
    table: Directory,
    known: int,
    out_hashes: Hashes,
    out: Rows,
    heads: Ranges,
    links: Directory,
    part_groups: Directory,
    part_count: int,
    part_rows: Rows,
) -> tuple[int, int]:
    """Add rows to ``out``, one for each key, accumulators from ``payload`` on; give how many keys and parts there are
    now.

    ``key_words`` words of a key at ``key_from`` go to ``key_to``, with the null bits of ``key_mask``. ``conditions``
    are (gate, word, mask, wanted), sorted by gate; ``specs`` are (what, word, gate, to, first factor, end of factors,
    limbs), ``to`` counting from ``payload``, or being the index of a product. ``heads`` has, for each key and product,
    the first of its rows in ``part_rows``, and ``links`` the next. Several calls may add to the same ``table`` and
    ``out``. The first of the pair is OVERFLOW where weights are too large to be sure of.
    """
    weight = rows.shape[1] - 1
    passed = np.empty(gates, np.bool_)
    limbs = np.zeros(20, np.uint64)
    spare = np.zeros(24, np.uint64)
    total = np.int64(0)
    most = most_weight(specs)
    m = np.int64(known)
    p = np.int64(part_count)
    for i in range(rows.shape[0]):
        g = group_of(
            hashes,
            rows,
            i,
            parts,
            key_from,
            key_to,
            key_words,
            key_mask,
            out_key_parts,
            table,
            m,
            payload,
            out_hashes,
            out,
        )
        m += g == m
        w = rows[i, weight]
        if not -most < w < most:
            return OVERFLOW, p
        total += abs(w)
        if total >= most:
            return OVERFLOW, p
        _look_at_gates(rows, i, conditions, passed)
        for s in range(specs.shape[0]):
            if not passed[specs[s, 2]]:
                continue
            what = specs[s, 0]
            if what != FLOAT and what != PRODUCT:  # noqa: PLR1714
                row = address_of(rows) + 8 * rows.shape[1] * i
                spec = address_of(specs) + 8 * specs.shape[1] * s
                add_row(row, w, spec, payload, address_of(out) + 8 * out.shape[1] * g)
            else:
                index = specs[s, 3]
                exponent = np.int64(0)
                sign = np.int64(1)
                finite = True
                if what == FLOAT:
                    bucket = bucket_of(rows[i, specs[s, 1]])
                else:
                    exponent, sign, finite = add_product(rows, i, factors, specs[s, 4], specs[s, 5], limbs, spare)
                    bucket = (exponent >> 5) if finite else np.int64(SPECIAL)
                part = ((index + 1) << 16) | bucket
                q = np.int64(heads[g, index])
                while q >= 0 and part_rows[q, part_word] != part:
                    q = np.int64(links[q])
                if q < 0:
                    q = p
                    p += 1
                    part_rows[q, part_word] = part
                    part_groups[q] = g
                    links[q] = heads[g, index]
                    heads[g, index] = q
                if what == FLOAT:
                    add_double(part_rows, q, payload, rows[i, specs[s, 1]], w)
                elif not finite:
                    part_rows[q, payload + 2] += w
                else:
                    shift = np.uint64(exponent & 31)
                    back = np.uint64(32) - shift
                    carry = np.uint64(0)
                    for k in range(specs[s, 6]):
                        x = np.int64(((limbs[k] << shift) | carry) & np.uint64(_LIMB))
                        carry = limbs[k] >> back
                        part_rows[q, payload + k] += sign * w * x
    return m, p
