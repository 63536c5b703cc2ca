"""Partitions: rows put where others of the same top bits of the hash are, as they come, and sorted one partition at a
time.

A table that is loaded at once is sorted in pieces that fit the cache. The pieces are cut while rows come: `scatter`
appends each row, its hash first, to the open block of its partition, in memory that never moves; a partition is a list
of blocks. `sort_partition` gathers them and consolidates them as `headwater.kernels.consolidate` does. Since
partitions are ranges of hashes, what it gives of all of them, one after the other, is the run of all rows.

Invariant: rows of a partition are gathered in the order in which they came.
"""

from __future__ import annotations

import numpy as np

from headwater.kernels.arrays import Directory, Hashes, Positions, Rows
from headwater.kernels.compiled import kernel
from headwater.kernels.consolidate import consolidate_piece
from headwater.kernels.memory import address_of, copy_words, load, store

__all__ = ["scatter", "sort_partition"]


@kernel
def scatter(
    rows: Rows,
    hashes: Hashes,
    bits: int,
    per_block: int,
    blocks: Positions,
    current: Positions,
    fill: Positions,
    owner: Directory,
    used: Positions,
    first: int,
) -> int:
    """Append rows from ``first`` on to the blocks of their partitions; give where it stopped, which is before the end
    if blocks ran out.

    ``blocks`` are addresses, of which ``used[1]`` are there and ``used[0]`` taken; ``owner`` says by which partition.
    ``current`` is the open block of each partition, and ``fill`` how many rows it has.
    """
    width = rows.shape[1]
    step = np.int64(8 * (width + 1))
    row_step = np.int64(8 * width)
    shift = np.uint64(64 - bits)
    source = address_of(rows) + row_step * first
    for i in range(first, rows.shape[0]):
        h = hashes[i]
        p = np.int64(h >> shift)
        f = fill[p]
        if f == per_block:
            b = used[0]
            if b == used[1]:
                return i
            used[0] = b + 1
            owner[b] = p
            current[p] = b
            f = np.int64(0)
        to = blocks[current[p]] + step * f
        store(to, 0, np.int64(h))
        copy_words(to + 8, source, width)
        fill[p] = f + 1
        source += row_step
    return np.int64(rows.shape[0])


@kernel
def sort_partition(
    blocks: Positions,
    per_block: int,
    last_fill: int,
    order: Rows,
    payload: int,
    bits: int,
    begin: int,
    end: int,
    hashes: Hashes,
    rows: Rows,
    out_hashes: Hashes,
    out: Rows,
    directory: Directory,
) -> tuple[int, int]:
    """Consolidate the rows of some blocks, the last of which has ``last_fill``; give (their number or OVERFLOW, a
    bound of weights).

    ``hashes`` and ``rows`` are as long as the partition and are written to. The entries ``begin`` to ``end`` of the
    directory count from the beginning of the partition.
    """
    width = rows.shape[1]
    step = np.int64(8 * (width + 1))
    to = address_of(rows)
    at = np.int64(0)
    for k in range(blocks.size):
        n = last_fill if k == blocks.size - 1 else per_block
        source = blocks[k]
        for _ in range(n):
            hashes[at] = np.uint64(load(source, 0))
            copy_words(to, source + 8, width)
            at += 1
            to += 8 * width
            source += step
    zero = np.int64(0)
    return consolidate_piece(
        hashes,
        address_of(rows),
        width,
        order,
        payload,
        bits,
        begin,
        end,
        zero,
        zero,
        out_hashes,
        address_of(out),
        directory,
    )
