"""Edits: taking rows out of files by their position, at the price of the change.

On a table with deletion vectors the file stays as it is, and the positions join its vector: a small one inside
the log itself, larger ones packed together into one file beside the data. On a table without them the file is
written anew without those rows (copy on write). A file whose last row goes is removed. The bounds in a file's
statistics still hold when rows go, but are no longer tight, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base import faults, settings
from headwater.base.storage import now_ms
from headwater.lake import data_files, deletion_vectors, partitions, stats
from headwater.lake.actions import AddFile, RemoveFile
from headwater.lake.scan import Positions, live_vector, read_file
from headwater.lake.snapshot import Snapshot

__all__ = ["Edit", "removal", "remove_rows", "rewriting"]


@dataclass(slots=True)
class Edit:
    """The actions that take rows out, and what they cost."""

    adds: list[AddFile] = field(default_factory=list)
    removes: list[RemoveFile] = field(default_factory=list)
    metrics: dict[str, int | float] = field(default_factory=dict)
    vectors: tuple[str, bytes] | None = None
    """A file that the actions name and that is still to be written: its path, and what is in it."""

    def write(self, snapshot: Snapshot, *, flush: bool = True) -> list[str]:
        """Write the file of vectors, if there is one; the paths of what was written."""
        if self.vectors is None:
            return []
        path, data = self.vectors
        faults.point("lake.vector_file.before_publish", path)
        snapshot.storage.put(path, data, flush=flush)
        self.vectors = None
        return [path]


def remove_rows(snapshot: Snapshot, deleted: Mapping[str, Positions | None], *, folder: str = "") -> Edit:
    """Actions that delete the rows at these positions of these files; None stands for a whole file.

    Vectors too large for the log are written to a file in ``folder``, below the table's own.
    """
    edit = removal(snapshot, deleted, folder=folder)
    edit.write(snapshot)
    return edit


def removal(snapshot: Snapshot, deleted: Mapping[str, Positions | None], *, folder: str = "") -> Edit:
    """What `remove_rows` gives, with its file of vectors still to be written (`Edit.write`)."""
    edit, now = Edit(), now_ms()
    vectors = rewritten = rows = 0
    packed = deletion_vectors.FileWriter(prefix=folder)
    layout = data_files.Layout(snapshot.state.metadata)
    for path, positions in deleted.items():
        add = snapshot.files[path]
        total = _row_count(snapshot, add)
        if positions is not None and not len(positions):
            continue
        before = live_vector(snapshot, add)
        already = len(before) if before is not None else 0
        edit.removes.append(add.removed(now))
        if positions is None or len(positions) + already == total:
            rows += total - already
            continue
        rows += len(positions)
        if snapshot.writes_vectors:
            bitmap = deletion_vectors.from_positions(positions)
            if before is not None:
                assert not bitmap & before, "a row is deleted once"
                bitmap |= before
            edit.adds.append(_marked(add, _vector(bitmap, packed), total))
            vectors += 1
        else:
            edit.adds += _rewrite(snapshot, layout, add, positions)
            rewritten += 1
    if packed.descriptors:
        edit.vectors = (packed.path, packed.to_bytes())
    edit.metrics = {
        "numDeletedRows": rows,
        "numRemovedFiles": len(edit.removes) - vectors - rewritten,
        "numDeletionVectorsUpdated": vectors,
        "numRewrittenFiles": rewritten,
    }
    return edit


def rewriting(snapshot: Snapshot, deleted: Mapping[str, Positions | None]) -> Edit:
    """The same by files that are written without the rows, whatever the table says of vectors."""
    edit, now, rows = Edit(), now_ms(), 0
    layout = data_files.Layout(snapshot.state.metadata)
    for path, positions in deleted.items():
        add = snapshot.files[path]
        live = _row_count(snapshot, add) - add.num_deleted
        rows += live if positions is None else len(positions)
        edit.removes.append(add.removed(now))
        if positions is not None and len(positions) < live:
            edit.adds += _rewrite(snapshot, layout, add, positions)
    edit.metrics = {"numDeletedRows": rows, "numRewrittenFiles": len(edit.adds)}
    return edit


def _vector(bitmap: Any, packed: deletion_vectors.FileWriter) -> deletion_vectors.DeletionVector:
    if len(deletion_vectors.serialize(bitmap)) <= settings.current().small_vector_bytes:
        return deletion_vectors.inline(bitmap)
    return packed.add(bitmap)


def _marked(add: AddFile, vector: deletion_vectors.DeletionVector, total: int) -> AddFile:
    loose = stats.loosen(add.stats, rows=total, deleted=add.num_deleted)
    return replace(add, deletion_vector=vector, stats=loose, data_change=True)


def _rewrite(snapshot: Snapshot, layout: data_files.Layout, add: AddFile, positions: Positions) -> list[AddFile]:
    def kept() -> Any:
        for batch in read_file(snapshot, add, snapshot.schema.names, positions=True):
            gone = np.isin(batch.column(batch.num_columns - 1).to_numpy(), positions, assume_unique=True)
            yield batch.filter(pa.array(~gone)).select(snapshot.schema.names)

    return data_files.write_rows(snapshot.storage, layout, kept())


def _row_count(snapshot: Snapshot, add: AddFile) -> int:
    if (known := add.num_records) is not None:
        return known
    with snapshot.storage.open_input(partitions.decode_path(add.path), size=add.size) as source:
        return int(pq.read_metadata(source).num_rows)
