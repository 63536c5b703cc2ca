"""Adding rows up by key in two passes, for many rows in pieces that stay in the cache.

`find_groups` says in which line of the output each row's key stands, and `add_groups` is one plain loop for each
accumulator. It gives what `headwater.kernels.accumulate.accumulate_words` gives, which decides for each row and
accumulator what to do; here that is decided once for all rows of a piece. Keys stay known from one piece to the next,
in a table that is made larger when there are many.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, return-value, unreachable, var-annotated"

from __future__ import annotations

import numpy as np

from headwater.kernels.accumulate import COUNT, OVERFLOW, SUM_WORD, add_row, group_of, most_weight
from headwater.kernels.arrays import Directory, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined, kernel
from headwater.kernels.memory import address_of, load, store

__all__ = ["add_groups", "find_groups", "put_in_table"]

_LIMB = np.int64(0xFFFFFFFF)


@kernel
def put_in_table(hashes: Hashes, known: int, table: Directory) -> None:
    """Enter keys that are there already into a larger table, which is empty."""
    mask = np.int64(table.size - 1)
    for g in range(known):
        at = np.int64(hashes[g]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = g


@kernel
def find_groups(
    hashes: Hashes,
    rows: Rows,
    parts: Rows,
    key_from: int,
    key_to: int,
    key_words: int,
    key_mask: int,
    out_key_parts: Rows,
    payload: int,
    table: Directory,
    known: int,
    out_hashes: Hashes,
    out: Rows,
    groups: Directory,
) -> int:
    """The line of each row's key in ``out``, to which new keys are added, with zeros; give how many there are."""
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
        groups[i] = g
        m += g == m
    return m


@inlined
def _gated(rows: Rows, conditions: Rows, gate: int, counted: Positions) -> None:
    """The weights of rows, or zero for those that do not pass a gate."""
    n = rows.shape[0]
    step = 8 * rows.shape[1]
    weight = rows.shape[1] - 1
    row = address_of(rows)
    for i in range(n):
        counted[i] = load(row, weight)
        row += step
    for c in range(conditions.shape[0]):
        if conditions[c, 0] != gate:
            continue
        at, bits, wanted = conditions[c, 1], conditions[c, 2], conditions[c, 3]
        row = address_of(rows)
        for i in range(n):
            if (load(row, at) & bits) != wanted:
                counted[i] = 0
            row += step


@kernel
def add_groups(
    rows: Rows,
    groups: Directory,
    conditions: Rows,
    gates: int,
    specs: Rows,
    payload: int,
    total: int,
    out: Rows,
) -> int:
    """Add rows to the lines of their groups, as `accumulate_words` does.

    ``total`` is how much weight was added before, taken positive; give it with that of these rows, or OVERFLOW where
    weights are too large to be sure of.
    """
    n = rows.shape[0]
    weight = rows.shape[1] - 1
    step = 8 * rows.shape[1]
    out_step = 8 * out.shape[1]
    most = most_weight(specs)
    total = np.int64(total)
    row = address_of(rows)
    for _ in range(n):
        w = load(row, weight)
        if not -most < w < most:
            return OVERFLOW
        total += abs(w)
        if total >= most:
            return OVERFLOW
        row += step
    counted = np.empty(n, np.int64)
    for gate in range(gates):
        _gated(rows, conditions, gate, counted)
        for s in range(specs.shape[0]):
            if specs[s, 2] != gate:
                continue
            what = specs[s, 0]
            to = address_of(out) + 8 * (payload + specs[s, 3])
            row = address_of(rows)
            if what == COUNT:
                for i in range(n):
                    line = to + out_step * np.int64(groups[i])
                    store(line, 0, load(line, 0) + counted[i])
            elif what == SUM_WORD:
                row += 8 * specs[s, 1]
                for i in range(n):
                    line = to + out_step * np.int64(groups[i])
                    x = load(row, 0)
                    store(line, 0, load(line, 0) + counted[i] * (x >> 32))
                    store(line, 1, load(line, 1) + counted[i] * (x & _LIMB))
                    row += step
            else:
                spec = address_of(specs) + 8 * specs.shape[1] * s
                for i in range(n):
                    add_row(row, counted[i], spec, payload, address_of(out) + out_step * np.int64(groups[i]))
                    row += step
    return total
