"""Catching up: addresses that are those of an older version of a view's table are brought to a newer one.

The files of the two versions tell which rows lie elsewhere or are gone: those of files that came or went, and those
that are marked in one of the two and not in the other. Only they are read. Copies of a row are numbered anew, since
nobody knows any more in which order they had come; any numbering without gaps will do (`addresses`).
"""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap64

from headwater.base.errors import CorruptionError
from headwater.incremental.layout import Layout
from headwater.incremental.views.addresses import Addresses, copies_of, expanded, sorted_keys
from headwater.incremental.views.reconciling import Located
from headwater.lake import deletion_vectors
from headwater.lake.actions import AddFile
from headwater.lake.scan import live_vector, read_file
from headwater.lake.snapshot import Snapshot

__all__ = ["follow"]


def follow(addresses: Addresses, layout: Layout, *, before: Snapshot, after: Snapshot) -> None:
    """Let addresses that are those of the table ``before`` be those ``after``."""
    went, came = Located(layout), Located(layout)
    numbers = {path: number for number, path in addresses.files.items()}
    names = layout.names
    for path, old in before.files.items():
        if path not in numbers:
            raise CorruptionError.derived_state("it does not know a file that the table had", before.where)
        new = after.files.get(path)
        if new is None:
            went.add(numbers[path], read_file(before, old, names, positions=True))
        elif new.deletion_vector != old.deletion_vector:
            was, now = _marked(before, old), _marked(after, new)
            for rows, which in ((went, now - was), (came, was - now)):
                if which:
                    only = deletion_vectors.positions(which)
                    rows.add(numbers[path], read_file(after, new, names, positions=True, only=only, with_deleted=True))
    for path, new in after.files.items():
        if path not in before.files:
            came.add(addresses.number(path), read_file(after, new, names, positions=True))
    _moved(addresses, went, came, after.where)
    addresses.forget(path for path in before.files if path not in after.files)


def _marked(snapshot: Snapshot, file: AddFile) -> BitMap64:
    vector = live_vector(snapshot, file)
    return BitMap64() if vector is None else vector


def _moved(addresses: Addresses, went: Located, came: Located, where: str) -> None:
    """Let the rows at some places be gone and others be there;
    each row that is concerned has its copies numbered anew.
    """
    gone, new_places = went.places, came.places
    both = np.concatenate([went.keys, came.keys])
    order, starts = sorted_keys(both)
    keys = both[order][starts]
    row = np.empty(len(both), dtype=np.int64)
    row[order] = np.cumsum(starts) - 1
    beyond = addresses.beyond(keys)
    there = np.where(beyond > 0, beyond + 1, addresses.find(keys) >= 0).astype(np.int64)
    copies, which = expanded(keys, np.zeros(len(keys), dtype=np.int64), there)
    places = addresses.find(copies)
    leaves = np.isin(places, gone)
    if (places < 0).any() or int(leaves.sum()) != len(gone):
        raise CorruptionError.derived_state("it does not know a row that the table had", where)
    row_now = np.concatenate([which[~leaves], row[len(gone) :]])
    places_now = np.concatenate([places[~leaves], new_places])
    order = np.argsort(row_now, kind="stable")
    row_now, places_now = row_now[order], places_now[order]
    count = np.bincount(row_now, minlength=len(keys))
    number = np.arange(len(row_now), dtype=np.int64) - (np.cumsum(count) - count)[row_now]
    addresses.change([(copies, places)], [(copies_of(keys[row_now], number), places_now)])
    addresses.count(keys, np.maximum(count - 1, 0) - beyond)
