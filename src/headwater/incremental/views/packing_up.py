"""Packing up: small files of a view put together, and files with many deleted rows written anew; and addresses that follow.

Every refresh leaves one small file and some marks, so files have to be put together as fast as they come. They are sorted into tiers by their
size, each eight times the one before; when a tier has sixteen files they become one, which belongs to a tier above. So a row is copied as
often as there are tiers, and there are never more than a hundred or so files.

The rows stay the same and lie elsewhere (``dataChange=false``). `readdress` finds the rows of new files under their keys and gives them
their new places; it does the same where somebody else has optimized the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from headwater.base import faults
from headwater.base.errors import CorruptionError
from headwater.base.storage import now_ms
from headwater.incremental.layout import Layout
from headwater.incremental.views.addresses import Addresses, split_address
from headwater.incremental.views.keys import expanded, sorted_keys
from headwater.incremental.views.publishing import Changed, write_in_order
from headwater.incremental.views.reconciling import keys_in_files
from headwater.lake.actions import AddFile
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot

__all__ = ["due", "everything", "pack_up", "readdress"]

_TIER = 3  # bits
_FEW = 16
_SMALL_BYTES = 32 << 20
_DEAD_SHARE = 0.3
_DEAD_ROWS = 10_000


def due(base: Snapshot) -> list[AddFile]:
    """The files that should be written anew now; none if there is nothing to gain."""
    files = list(base.files.values())
    dead = [f for f in files if f.num_deleted >= _DEAD_ROWS and f.num_deleted >= _DEAD_SHARE * (f.num_records or 0)]
    small = sorted((f for f in files if f.size < _SMALL_BYTES and f not in dead), key=_tier)
    full = [f for _, tier in groupby(small, key=_tier) for f in _if_many(list(tier))]
    return dead + full


def everything(base: Snapshot) -> list[AddFile]:
    """The files that could be written anew with any gain."""
    files = list(base.files.values())
    small = [f for f in files if f.size < _SMALL_BYTES]
    return [f for f in files if f.num_deleted or (f.size < _SMALL_BYTES and len(small) > 1)]


def _tier(file: AddFile) -> int:
    return file.size.bit_length() // _TIER


def _if_many(files: list[AddFile]) -> list[AddFile]:
    return files if len(files) >= _FEW else []


def pack_up(base: Snapshot, addresses: Addresses, layout: Layout, files: Sequence[AddFile]) -> Changed:
    """The actions that put the rows of files into new ones; the addresses follow."""
    adds = write_in_order(base, base.state.metadata, scan(base, base.schema.names, list(files)), data_change=False)
    faults.point("view.publish.written", base.where)
    now = now_ms()
    removes = [f.removed(now, data_change=False) for f in files]
    readdress(base, addresses, layout, [f.path for f in files], adds)
    return Changed(adds, removes)


def readdress(
    base: Snapshot, addresses: Addresses, layout: Layout, gone: Sequence[str], came: Sequence[AddFile]
) -> None:
    """Let the rows of files that went have their places in files that came, which hold the same rows."""
    old = {number for number, path in addresses.files.items() if path in set(gone)}
    for file in came:
        addresses.number(file.path)
    keys, places = keys_in_files(base, addresses, layout, came)
    order, new = sorted_keys(keys)
    keys, places = keys[order], places[order]
    first = np.flatnonzero(new)
    copies, _ = expanded(keys[first], np.zeros(len(first), dtype=np.int64), addresses.beyond(keys[first]) + 1)
    were = addresses.find(copies)
    moved = np.isin(split_address(were)[0], np.fromiter(old, np.int64, len(old))) & (were >= 0)
    if int(moved.sum()) != len(places):
        raise CorruptionError.view_state("files were rewritten with other rows than they had", base.where)
    # Copies stand in the order of their rows' keys, as the places do: the first copy that moved gets the first place.
    addresses.change([(copies[moved], were[moved])], [(copies[moved], places)])
    addresses.forget(gone)
