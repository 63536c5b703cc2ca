"""Reconciling: a view's table brought to a result that was computed anew, by the difference only.

The rows of the table are read once, for their keys and places. Rows that the result has too are left where they lie;
only what differs is marked or written, so whoever follows the view sees just that. The addresses are built anew from
what stays and what comes.

It is also how a view gets its first rows (its table has none yet), and how it recovers from whatever has been done to
its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headwater.base import faults
from headwater.base.storage import now_ms
from headwater.incremental.layout import Layout
from headwater.incremental.views.addresses import Addresses, Keys, Places, Words, address, row_keys, sorted_keys
from headwater.incremental.views.publishing import (
    VECTORS,
    Share,
    change_feed,
    places_of,
    prefix_at,
    publish,
    rows_in_order,
    write_in_order,
)
from headwater.incremental.zset import ZSet
from headwater.lake import data_files, find
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.edit import remove_rows
from headwater.lake.published import Changed
from headwater.lake.scan import POSITION, read_file
from headwater.lake.snapshot import Snapshot

__all__ = ["Located", "first_rows", "keys_in_files", "locate", "reconcile", "reconcile_share", "replace_all"]


def first_rows(base: Snapshot, batches: Iterator[pa.RecordBatch]) -> Changed:
    """The actions that give a table without rows its first ones, as they come:
    there is nothing to compare them with.
    """
    assert not base.files
    adds = write_in_order(base, base.state.metadata, batches)
    faults.point("view.publish.written", base.where)
    return Changed(adds, inserted=sum(f.num_records or 0 for f in adds))


def reconcile(base: Snapshot, addresses: Addresses, result: ZSet) -> Changed:
    """The actions that make the table's rows those of ``result``, which is consolidated;
    ``addresses`` are new and empty.
    """
    if not base.files:
        return publish(base, addresses, result)
    for path in base.files:
        addresses.number(path)
    there, places = keys_in_files(base, addresses, result.layout, list(base.files.values()))
    keys = row_keys(result)
    stays, more = _difference(there, keys, result.weights)
    gone = places[~stays]
    which = np.repeat(np.arange(len(result), dtype=np.int64), more)
    metadata = base.state.metadata
    adds = write_in_order(base, metadata, rows_in_order(result, which))
    new = places_of(addresses, adds)
    faults.point("view.publish.written", base.where)
    deleted = addresses.by_file(gone)
    edit = remove_rows(base, deleted, folder=VECTORS)
    cdc = []
    if edit.adds:  # else whole files went, which says it all
        old = find.fetch(base, dict(deleted))
        inserted = pa.Table.from_batches(rows_in_order(result, which), old.schema)
        cdc = data_files.change_feed(
            metadata, base.storage, {"delete": old, "insert": inserted}, prefix=prefix_at(base)
        )
    addresses.build(np.concatenate([there[stays], keys[which]]), np.concatenate([places[stays], new]))
    kept = {f.path for f in edit.adds}
    addresses.forget(f.path for f in edit.removes if f.path not in kept)
    return Changed(edit.adds + adds, edit.removes, cdc, len(new), len(gone))


def reconcile_share(base: Snapshot, addresses: Addresses, there: ZSet, result: ZSet, *, feed: bool) -> Share:
    """`reconcile` of a share of the rows, with all that equal one of it; ``there`` are its rows now, whose weights are
    the places where they lie.
    """
    keys, old, places = row_keys(result), row_keys(there), there.weights
    stays, more = _difference(old, keys, result.weights)
    which = np.repeat(np.arange(len(result), dtype=np.int64), more)
    went = np.flatnonzero(~stays)
    adds = write_in_order(base, base.state.metadata, rows_in_order(result, which)) if len(which) else []
    new = places_of(addresses, adds)
    addresses.fill(np.concatenate([old[stays], keys[which]]), np.concatenate([places[stays], new]))
    addresses.settle()
    cdc = change_feed(base, there, went, result, which) if feed else []
    return Share(adds, cdc, places[went], len(which))


def locate(base: Snapshot, addresses: Addresses, layout: Layout) -> None:
    """Let addresses, which are new and empty, be those of the rows that the table has."""
    for path in base.files:
        addresses.number(path)
    addresses.build(*keys_in_files(base, addresses, layout, list(base.files.values())))


def replace_all(base: Snapshot, metadata: Metadata, addresses: Addresses, result: ZSet) -> Changed:
    """The actions that make the table's rows those of ``result``, which has other columns."""
    which = np.repeat(np.arange(len(result), dtype=np.int64), result.weights)
    adds = write_in_order(base, metadata, rows_in_order(result, which))
    new = places_of(addresses, adds)
    faults.point("view.publish.written", base.where)
    addresses.build(row_keys(result)[which], new)
    now = now_ms()
    deleted = sum((f.num_records or 0) - f.num_deleted for f in base.files.values())
    return Changed(adds, [f.removed(now) for f in base.files.values()], [], len(new), deleted)


class Located:
    """Keys and places of rows of files, collected."""

    def __init__(self, layout: Layout) -> None:
        self._plain = Layout(pa.schema([f.with_nullable(True) for f in layout.schema]))
        self._keys: list[Keys] = [np.empty((0, 2), dtype=np.uint64)]
        self._places: list[Places] = [np.empty(0, dtype=np.int64)]

    def add(self, number: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Take the rows of a file in, whose last column is their position."""
        for batch in batches:
            rows = pa.RecordBatch.from_arrays(batch.columns[:-1], schema=self._plain.schema)
            self._keys.append(row_keys(ZSet.packed(self._plain, rows)))
            self._places.append(address(number, batch.column(POSITION).to_numpy()))

    @property
    def keys(self) -> Keys:
        """Of all rows, in the order in which they came."""
        return np.concatenate(self._keys)

    @property
    def places(self) -> Places:
        """Of all rows, in the same order."""
        return np.concatenate(self._places)


def keys_in_files(
    base: Snapshot, addresses: Addresses, layout: Layout, files: Sequence[AddFile]
) -> tuple[Keys, Places]:
    """The keys and places of the live rows of files, which are numbered already."""
    numbers = {path: number for number, path in addresses.files.items()}
    found = Located(layout)
    for file in files:
        found.add(numbers[file.path], read_file(base, file, layout.names, positions=True))
    return found.keys, found.places


def _difference(there: Keys, wanted: Keys, weights: Words) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Words]:
    """Which of the rows that are there stay, and how many more of each wanted row are needed."""
    if _same(there, wanted, weights):
        return np.ones(len(there), dtype=np.bool_), np.zeros(len(wanted), dtype=np.int64)
    both = np.concatenate([there, wanted])
    order, new = sorted_keys(both)
    group = np.empty(len(both), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    groups = int(new.sum())
    old, ask = group[: len(there)], group[len(there) :]
    want = np.zeros(groups, dtype=np.int64)
    want[ask] = weights  # each wanted row is listed once
    have = np.bincount(old, minlength=groups)
    by_group = np.argsort(old, kind="stable")
    starts = np.cumsum(have) - have
    rank = np.empty(len(there), dtype=np.int64)
    rank[by_group] = np.arange(len(there)) - starts[old[by_group]]
    stays = rank < want[old]
    return stays, want[ask] - np.minimum(want, have)[ask]


def _same(there: Keys, wanted: Keys, weights: Words) -> bool:
    """Whether the rows that are there are those that are wanted, whatever their order: by their number and the sums of
    their keys, which agree for others as seldom as two keys do.
    """
    if len(there) != weights.sum():
        return False
    sums = (wanted * weights.astype(np.uint64)[:, None]).sum(axis=0, dtype=np.uint64)
    return bool((there.sum(axis=0, dtype=np.uint64) == sums).all())
