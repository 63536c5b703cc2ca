"""The difference of two multisets of rows that are at hand: which of the old ones go, and which of the new ones come.

Rows are equal if every value is, bit for bit, as in `headwater.derived.digest`; all NaNs are one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.derived.digest import RowHash

__all__ = ["difference"]

Places = npt.NDArray[np.int64]


def difference(old: pa.Table, new: pa.Table) -> tuple[Places, Places]:
    """The places of old rows that new ones lack, and of new rows that old ones lack.

    >>> old, new = pa.table({"v": [1, 1, 2]}), pa.table({"v": [3, 1]})
    >>> gone, come = difference(old, new)
    >>> old.take(pa.array(gone))["v"].to_pylist(), new.take(pa.array(come))["v"].to_pylist()
    ([1, 2], [3])
    """
    hashes = RowHash(old.schema)
    lanes = np.concatenate([_lanes(hashes, old), _lanes(hashes, new.cast(old.schema))])
    words = lanes.view([("a", np.uint64), ("b", np.uint64)]).ravel()
    _, group = np.unique(words, return_inverse=True)
    group = group.ravel()
    before, after = group[: old.num_rows], group[old.num_rows :]
    count = int(group.max()) + 1 if len(group) else 0
    have, want = np.bincount(before, minlength=count), np.bincount(after, minlength=count)
    return np.flatnonzero(_rank(before, have) >= want[before]), np.flatnonzero(_rank(after, want) >= have[after])


def _rank(group: Places, counts: Places) -> Places:
    """How many rows of its group stand before each row."""
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def _lanes(hashes: RowHash, rows: pa.Table) -> npt.NDArray[np.uint64]:
    parts = [hashes.exact_lanes(batch, hashes.plain_lanes(batch)) for batch in rows.to_batches() if batch.num_rows]
    return np.ascontiguousarray(np.concatenate([np.empty((0, 2), np.uint64), *parts]))
