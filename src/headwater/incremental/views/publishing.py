"""Publishing: the change of a view's rows as the actions of one commit to its table, at the price of the change.

Rows that go are marked in deletion vectors, at the places that `Addresses` knows; rows that come are written to a new file, and get
places in it. If rows go, the change is also written to the table's change feed: whoever follows the view reads that small file, in
any engine, instead of looking up the marked rows in large ones. If none go, the new file says everything already.

Files of a small change are not flushed one by one: the commit that names them flushes them together (`Changed.unflushed`).

`publish` also brings the addresses up to date, in memory. So if the commit fails they are wrong, and have to be thrown away with
the circuit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import faults
from headwater.incremental.views.addresses import Addresses, Places, address
from headwater.incremental.views.keys import row_keys
from headwater.incremental.views.together import together
from headwater.incremental.zset import ZSet
from headwater.lake import data_files, partitions
from headwater.lake.actions import Action, AddFile, Metadata, RemoveFile
from headwater.lake.edit import Edit, remove_rows
from headwater.lake.snapshot import Snapshot

__all__ = ["PREFIX", "VECTORS", "Changed", "places_of", "prefix_at", "publish", "rows_in_order", "write_in_order"]

PREFIX = "view"
"""What the names of a view's own data files begin with."""
VECTORS = "view"
"""The folder of its files of deletion vectors."""

_CHUNK_ROWS = 65_536
Words = npt.NDArray[np.int64]


@dataclass(slots=True)
class Changed:
    """The actions of a commit, and how many rows they insert and delete."""

    adds: list[AddFile] = field(default_factory=list)
    removes: list[RemoveFile] = field(default_factory=list)
    cdc: list[Action] = field(default_factory=list)
    inserted: int = 0
    deleted: int = 0
    unflushed: list[str] = field(default_factory=list)


def publish(base: Snapshot, addresses: Addresses, delta: ZSet, also: Callable[[], object] = lambda: None) -> Changed:
    """The actions that make a change, consolidated, of the rows at ``base``.

    ``also`` is called when the addresses are up to date, while files are being written: to save them.
    """
    weights = delta.weights
    if len(delta) and (weights > 0).all():
        gone, come = ZSet.empty(delta.layout), delta
    else:
        gone, come = (delta.filtered(np.flatnonzero(side)) for side in (weights < 0, weights > 0))
    gone_keys, come_keys = row_keys(gone), row_keys(come)
    leaving, places = addresses.leaving(gone_keys, -gone.weights, base.where)
    coming = addresses.coming(come_keys, come.weights)
    deleted = addresses.by_file(places)
    count = len(coming.keys)
    adds: list[AddFile] = []
    if count > _CHUNK_ROWS:
        adds = write_in_order(base, base.state.metadata, rows_in_order(come, coming.which))
        new, number = places_of(addresses, adds), None
    else:
        number = addresses.number("") if count else None
        new = address(number, np.arange(count, dtype=np.int64)) if number else np.empty(0, dtype=np.int64)
    assert len(new) == count, "each row that comes is written once"
    addresses.change([(leaving.keys, places)], [(coming.keys, new)])
    addresses.count(np.concatenate([gone_keys, come_keys]), np.concatenate([leaving.more, coming.more]))

    def rows() -> list[AddFile]:
        if number is None:
            return adds
        return write_in_order(base, base.state.metadata, rows_in_order(come, coming.which), flush=False)

    def vectors() -> Edit:
        return remove_rows(base, deleted, folder=VECTORS, flush=False)

    def feed() -> list[Action]:
        # Without it, what went would have to be looked up in the files that it lay in.
        return _feed(base, base.state.metadata, gone, leaving.which, come, coming.which) if len(places) else []

    if base.storage.local_path("") is None:
        adds, edit, cdc, _ = together(rows, vectors, feed, also)
    else:  # files that are not flushed are written at once, and threads would only get in each other's way
        (adds, edit, cdc), _ = together(lambda: (rows(), vectors(), feed()), also)
    written = [] if number is None else [partitions.decode_path(f.path) for f in adds]
    written += [*edit.written, *(partitions.decode_path(a["cdc"]["path"]) for a in cdc)]
    faults.point("view.publish.written", base.where)
    if number is not None:
        assert [f.num_records for f in adds] == [count], "a small change is written to one file"
        addresses.files[number] = adds[0].path
    kept = {f.path for f in edit.adds}
    addresses.forget(f.path for f in edit.removes if f.path not in kept)
    return Changed(edit.adds + adds, edit.removes, cdc, count, len(places), written)


def _feed(base: Snapshot, metadata: Metadata, gone: ZSet, went: Words, come: ZSet, came: Words) -> list[Action]:
    changes = {
        "delete": pa.Table.from_batches(rows_in_order(gone, went), _loose(gone)),
        "insert": pa.Table.from_batches(rows_in_order(come, came), _loose(come)),
    }
    return data_files.change_feed(metadata, base.storage, changes, prefix=prefix_at(base), flush=False)


def rows_in_order(rows: ZSet, which: Words) -> Iterator[pa.RecordBatch]:
    """The rows at these positions, in their order and as often as they are named, without weights."""
    schema = _loose(rows)
    for start in range(0, len(which), _CHUNK_ROWS):
        part = ZSet(rows.layout, rows.rows[which[start : start + _CHUNK_ROWS]], rows.owners)
        for batch in part.to_arrow().to_batches():
            yield pa.RecordBatch.from_arrays(batch.columns[:-1], schema=schema)


def _loose(rows: ZSet) -> pa.Schema:
    return pa.schema([f.with_nullable(True) for f in rows.schema])


def write_in_order(
    base: Snapshot,
    metadata: Metadata,
    batches: Iterator[pa.RecordBatch],
    *,
    data_change: bool = True,
    flush: bool = True,
) -> list[AddFile]:
    """Write rows to new files, the first rows first."""
    assert not metadata.partition_columns, "a view's table is not partitioned"
    return data_files.write_rows(
        base.storage,
        data_files.Layout(metadata),
        batches,
        data_change=data_change,
        prefix=prefix_at(base),
        flush=flush,
    )


def prefix_at(base: Snapshot) -> str:
    """What the names of files begin with that are written to follow ``base``."""
    return f"{PREFIX}-{base.version + 1}"


def places_of(addresses: Addresses, adds: Sequence[AddFile]) -> Places:
    """Number new files, and give the places of their rows, in the order in which they were written."""
    parts = []
    for add in adds:
        count = add.num_records
        assert count is not None, "files of our own say how many rows they have"
        parts.append(address(addresses.number(add.path), np.arange(count, dtype=np.int64)))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
