"""Publishing: the change of a view's rows as the actions of one commit to its table, at the price of the change.

Rows that go are marked in deletion vectors, at the places that `Addresses` knows; rows that come are written to a new
file, and get places in it. If rows are marked, the change is also written to the table's change feed: whoever follows
the view reads that small file, in any engine, instead of looking up the marked rows in large ones. If none go, or files
go as they came, the files say everything already.

Files of a small change are not flushed one by one: the commit that names them flushes them together
(`Changed.unflushed`).

`publish` also brings the addresses up to date, in memory. So if the commit fails they are wrong, and have to be thrown
away with the circuit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import faults
from headwater.incremental.views.addresses import Addresses, Places, address, row_keys
from headwater.incremental.views.together import together
from headwater.incremental.zset import ZSet
from headwater.lake import data_files, partitions, small_files
from headwater.lake.actions import Action, AddFile, Metadata
from headwater.lake.edit import Edit, removal
from headwater.lake.published import Changed
from headwater.lake.snapshot import Snapshot

__all__ = [
    "PREFIX",
    "VECTORS",
    "Share",
    "change_feed",
    "places_of",
    "prefix_at",
    "publish",
    "publish_share",
    "rows_in_order",
    "write_in_order",
]

PREFIX = "view"
"""What the names of a view's own data files begin with."""
VECTORS = "view"
"""The folder of its files of deletion vectors."""

_CHUNK_ROWS = 65_536
_AS_QUICK = 2
Words = npt.NDArray[np.int64]


def publish(base: Snapshot, addresses: Addresses, delta: ZSet) -> Changed:
    """The actions that make a change, consolidated, of the rows at ``base``."""
    gone, come = _sides(delta)
    keys = row_keys(delta)
    gone_keys, come_keys = keys[gone], keys[come]
    leaving, places = addresses.leaving(gone_keys, -delta.weights[gone], base.where)
    coming = addresses.coming(come_keys, delta.weights[come])
    edit = removal(base, addresses.by_file(places), folder=VECTORS)
    went, came = gone[leaving.which], come[coming.which]
    count, metadata = len(came), base.state.metadata
    is_small = 0 < count <= _CHUNK_ROWS
    path = small_files.new_path(prefix_at(base))
    adds: list[AddFile] = []
    if is_small:
        new = address(addresses.number(path), np.arange(count, dtype=np.int64))
    else:
        adds = write_in_order(base, metadata, rows_in_order(delta, came))
        new = places_of(addresses, adds)
    assert len(new) == count, "each row that comes is written once"
    addresses.change([(leaving.keys, places)], [(coming.keys, new)])
    addresses.count(np.concatenate([gone_keys, come_keys]), np.concatenate([leaving.more, coming.more]))
    kept = {f.path for f in edit.adds}
    addresses.forget(f.path for f in edit.removes if f.path not in kept)
    has_feed = base.writes_change_feed and not _is_said(base, edit, len(places))
    batch = None
    if has_feed and len(went) + count <= _CHUNK_ROWS:
        batch = next(rows_in_order(delta, np.concatenate([went, came])), None)

    def rows() -> list[AddFile]:
        if not is_small:
            return adds
        here = next(rows_in_order(delta, came)) if batch is None else batch.slice(len(went))
        return [small_files.write_rows(base.storage, metadata, here, path)]

    def feed() -> list[Action]:
        if not has_feed:
            return []
        if batch is None:
            return change_feed(base, delta, went, delta, came)
        at = small_files.new_path(prefix_at(base), feed=True)
        return [small_files.write_feed(base.storage, metadata, batch, at, deleted=len(went))]

    def vectors() -> list[str]:
        return edit.write(base, flush=False)

    if base.storage.local_path("") is None:
        adds, cdc, written = together(rows, feed, vectors)
    else:  # files that are not flushed are written at once, and threads would only get in each other's way
        adds, cdc, written = rows(), feed(), vectors()
    written += [partitions.decode_path(f.path) for f in adds] if is_small else []
    written += [partitions.decode_path(a["cdc"]["path"]) for a in cdc]
    faults.point("view.publish.written", base.where)
    assert not is_small or [(f.path, f.num_records) for f in adds] == [(path, count)], "one file, named beforehand"
    return Changed(edit.adds + adds, edit.removes, cdc, count, len(places), written)


@dataclass(frozen=True, slots=True)
class Share:
    """What a share of a view's change has written: files, and the places of the rows that go."""

    adds: list[AddFile]
    cdc: list[Action]
    places: Places
    inserted: int


def publish_share(base: Snapshot, addresses: Addresses, delta: ZSet, *, feed: bool) -> Share:
    """Write the rows that come of a share of a change; who has all shares marks the rows that go.

    ``delta`` is consolidated, and ``addresses`` number files from where their ``next_file`` is.
    """
    gone, come = _sides(delta)
    keys = row_keys(delta)
    gone_keys, come_keys = keys[gone], keys[come]
    leaving, places = addresses.leaving(gone_keys, -delta.weights[gone], base.where)
    coming = addresses.coming(come_keys, delta.weights[come])
    went, came = gone[leaving.which], come[coming.which]
    adds = write_in_order(base, base.state.metadata, rows_in_order(delta, came)) if len(came) else []
    addresses.change([(leaving.keys, places)], [(coming.keys, places_of(addresses, adds))])
    addresses.count(np.concatenate([gone_keys, come_keys]), np.concatenate([leaving.more, coming.more]))
    addresses.settle()
    return Share(adds, change_feed(base, delta, went, delta, came) if feed else [], places, len(came))


def _is_said(base: Snapshot, edit: Edit, gone: int) -> bool:
    """Whether the files that come and go say by themselves which rows do, and are read as quickly as a file of the
    feed.

    Where rows are marked, those that went would have to be looked up in the files that they lie in; and if a file with
    marks goes, some readers of the feed take all of its rows for deleted just now.
    """
    if edit.adds or any(f.deletion_vector is not None for f in edit.removes):
        return False
    rows = sum(base.files[f.path].num_records or 0 for f in edit.removes)
    return rows <= _AS_QUICK * gone


def _sides(delta: ZSet) -> tuple[Words, Words]:
    """Which rows go, and which come."""
    weights = delta.weights
    return np.flatnonzero(weights < 0), np.flatnonzero(weights > 0)


def change_feed(base: Snapshot, old: ZSet, went: Words, new: ZSet, came: Words) -> list[Action]:
    """Write the rows that went, and those that came, to the change feed."""
    changes = {
        kind: pa.Table.from_batches(rows_in_order(rows, which), _loose(rows))
        for kind, rows, which in (("delete", old, went), ("insert", new, came))
    }
    return data_files.change_feed(base.state.metadata, base.storage, changes, prefix=prefix_at(base), flush=False)


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
) -> list[AddFile]:
    """Write rows to new files, the first rows first."""
    assert not metadata.partition_columns, "a view's table is not partitioned"
    return data_files.write_rows(
        base.storage,
        data_files.Layout(metadata),
        batches,
        data_change=data_change,
        prefix=prefix_at(base),
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
