"""Packing up: small files of a view put together, and files with many deleted rows written anew; and addresses that
follow.

Every refresh leaves one small file and some marks, so files have to be put together as fast as they come. They are
sorted into tiers by their size, each eight times the one before; when a tier has sixteen files they become one, which
belongs to a tier above. So a row is copied as often as there are tiers, and there are never more than a hundred or so
files.

The rows stay the same and lie elsewhere (``dataChange=false``). That takes two steps. `rewrite` writes new files from a
snapshot, which may take long and needs nobody to wait; until they are committed nobody knows of them. `swapped` gives
the actions that put them in the place of the old ones, at a version that may be a later one: a row that was deleted in
between is marked in its new file. `readdress` finds the rows of new files under their keys and gives them their new
places, where somebody else has optimized the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from headwater.base import events, faults
from headwater.base.errors import CorruptionError
from headwater.base.storage import now_ms
from headwater.incremental.layout import Layout
from headwater.incremental.views.addresses import (
    Addresses,
    Keys,
    Places,
    Words,
    address,
    expanded,
    row_keys,
    sorted_keys,
    split_address,
)
from headwater.incremental.views.publishing import VECTORS, write_in_order
from headwater.incremental.views.reconciling import keys_in_files
from headwater.incremental.zset import ZSet
from headwater.lake import deletion_vectors
from headwater.lake.actions import AddFile
from headwater.lake.edit import remove_rows
from headwater.lake.partitions import decode_path
from headwater.lake.published import Changed
from headwater.lake.scan import live_vector, scan
from headwater.lake.snapshot import Snapshot

__all__ = ["AddFile", "Rewritten", "discard", "due", "everything", "readdress", "rewrite", "swapped"]

_TIER = 3  # bits
_FEW = 16
_SMALL_BYTES = 32 << 20
_DEAD_SHARE = 0.3
_DEAD_ROWS = 10_000


def due(base: Snapshot) -> list[AddFile]:
    """The files that should be written anew now; none if there is nothing to gain."""
    files = [f for f in base.files.values() if f.num_records is not None]
    dead = [f for f in files if f.num_deleted >= _DEAD_ROWS and f.num_deleted >= _DEAD_SHARE * (f.num_records or 0)]
    small = sorted((f for f in files if f.size < _SMALL_BYTES and f not in dead), key=_tier)
    full = [f for _, tier in groupby(small, key=_tier) for f in _if_many(list(tier))]
    return dead + full


def everything(base: Snapshot) -> list[AddFile]:
    """The files that could be written anew with any gain."""
    files = [f for f in base.files.values() if f.num_records is not None]
    small = [f for f in files if f.size < _SMALL_BYTES]
    return [f for f in files if f.num_deleted or (f.size < _SMALL_BYTES and len(small) > 1)]


def _tier(file: AddFile) -> int:
    return file.size.bit_length() // _TIER


def _if_many(files: list[AddFile]) -> list[AddFile]:
    return files if len(files) >= _FEW else []


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The rows that ``files`` had at ``base``, in new files that nobody knows of,
    with the keys of the rows in their order.
    """

    base: Snapshot
    files: Sequence[AddFile]
    adds: Sequence[AddFile]
    keys: Keys


def rewrite(
    base: Snapshot,
    layout: Layout,
    files: Sequence[AddFile],
    task: events.Task | None = None,
) -> Rewritten:
    """Write the rows of files to new ones."""
    keys: list[Keys] = [np.empty((0, 2), dtype=np.uint64)]
    plain = Layout(pa.schema([f.with_nullable(True) for f in layout.schema]))

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in scan(base, layout.names, list(files)):
            packed = pa.RecordBatch.from_arrays(batch.columns, schema=plain.schema)
            keys.append(row_keys(ZSet.packed(plain, packed)))
            if task is not None:
                task.advance(batch.num_rows)
            yield batch

    adds = write_in_order(base, base.state.metadata, rows(), data_change=False)
    return Rewritten(base, files, adds, np.concatenate(keys))


def discard(rewritten: Rewritten) -> None:
    """Delete new files that will not be committed."""
    for add in rewritten.adds:
        rewritten.base.storage.delete(decode_path(add.path))


def swapped(now: Snapshot, addresses: Addresses, rewritten: Rewritten) -> Changed | None:
    """The actions that let new files take the place of old ones at a version, and the addresses follow;
    None if that cannot be any more.
    """
    storage = now.storage
    if not all(f.path in now.files for f in rewritten.files):
        return None  # somebody else has rewritten them, or all of their rows went
    if not all(storage.exists(decode_path(add.path)) for add in rewritten.adds):
        return None  # another process took them for nobody's
    dead = _deleted_since(now, rewritten)
    if dead is None:
        return None
    faults.point("view.publish.written", now.where)
    stamp = now_ms()
    gone = [now.files[f.path] for f in rewritten.files]
    changed = Changed(removes=[f.removed(stamp, data_change=False) for f in gone])
    alive = np.ones(len(rewritten.keys), dtype=bool)
    alive[dead] = False
    places: list[Places] = [np.empty(0, dtype=np.int64)]
    start = 0
    for add in rewritten.adds:
        count = add.num_records
        assert count is not None, "files of our own say how many rows they have"
        here = alive[start : start + count]
        start += count
        marked = _marked(now, add, np.flatnonzero(~here))
        if marked is None:
            storage.delete(decode_path(add.path))
            continue
        changed.adds.append(marked)
        places.append(address(addresses.number(add.path), np.flatnonzero(here)))
    _move(now, addresses, [f.path for f in rewritten.files], rewritten.keys[alive], np.concatenate(places))
    return changed


def _deleted_since(now: Snapshot, rewritten: Rewritten) -> Words | None:
    """Which of the rewritten rows, by their number, have been deleted since; None if rows have come back."""
    start, dead = 0, [np.empty(0, dtype=np.int64)]
    for old in rewritten.files:
        count = old.num_records
        assert count is not None, "only files that say how many rows they have are due"
        new = now.files[old.path]
        if new.deletion_vector != old.deletion_vector:
            before = live_vector(rewritten.base, old) or deletion_vectors.from_positions(np.empty(0, dtype=np.int64))
            after = live_vector(now, new)
            if after is None or not before <= after:
                return None
            went = deletion_vectors.positions(after - before)
            dead.append(start + went - np.searchsorted(deletion_vectors.positions(before), went))
        start += count - old.num_deleted
    if start != len(rewritten.keys):
        raise CorruptionError.derived_state("its files have other rows than the log says", now.where)
    return np.concatenate(dead)


def _marked(now: Snapshot, add: AddFile, dead: Words) -> AddFile | None:
    """A new file in which some rows are deleted already; None if all are."""
    if not len(dead):
        return add
    alone = Snapshot(now.storage, replace(now.state, files={add.path: add}))
    edit = remove_rows(alone, {add.path: dead}, folder=VECTORS)
    return replace(edit.adds[0], data_change=False) if edit.adds else None


def readdress(
    base: Snapshot, addresses: Addresses, layout: Layout, gone: Sequence[str], came: Sequence[AddFile]
) -> None:
    """Let the rows of files that went have their places in files that came, which hold the same rows."""
    for file in came:
        addresses.number(file.path)
    keys, places = keys_in_files(base, addresses, layout, came)
    _move(base, addresses, gone, keys, places)


def _move(base: Snapshot, addresses: Addresses, gone: Sequence[str], keys: Keys, places: Places) -> None:
    """Let rows, by their keys, have these places instead of those in files that went."""
    leaving = set(gone)
    old = {number for number, path in addresses.files.items() if path in leaving}
    order, new = sorted_keys(keys)
    keys, places = keys[order], places[order]
    first = np.flatnonzero(new)
    copies, _ = expanded(keys[first], np.zeros(len(first), dtype=np.int64), addresses.beyond(keys[first]) + 1)
    were = addresses.find(copies)
    moved = np.isin(split_address(were)[0], np.fromiter(old, np.int64, len(old))) & (were >= 0)
    if int(moved.sum()) != len(places):
        raise CorruptionError.derived_state("files were rewritten with other rows than they had", base.where)
    # Copies stand in the order of their rows' keys, as the places do: the first copy that moved gets the first place.
    addresses.change([(copies[moved], were[moved])], [(copies[moved], places)])
    addresses.forget(gone)
