"""Changes: the exact Z-set between two versions of a table.

``changes(after, until)`` gives rows with weights such that adding them to the rows of version ``after`` gives the rows
of version ``until``. It is read from the log, and costs the change:

- a commit with a change data feed is read from the feed;
- a file that was added counts +1 for its live rows, one that was removed -1;
- a file of which only the deletion vector changed counts just the rows in the difference of the two vectors;
- a file that came and went within the interval is never opened;
- ``dataChange=false`` (OPTIMIZE) counts nothing.

Each file is opened with the definition that was in force in its own version: which of its columns are partition
values, and what the others are called inside it (`interval`). Its rows are given under the schema of ``until``
(`alignment`): a column added since is null in older rows, a widened one has its new type, and one that was dropped is
left out. What cannot be read as the new type is an error. The sum may hold a row several times with opposite signs (a
rewritten file); `consolidation` adds them up, in memory that is bounded whatever the size of the change.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.base.change import ChangeBatch
from headwater.base.errors import Action, SchemaError
from headwater.base.schema import Field, type_text
from headwater.lake.actions import AddFile, Commit, Metadata
from headwater.lake.alignment import align
from headwater.lake.consolidation import consolidate_stream
from headwater.lake.data_files import CHANGE_TYPE
from headwater.lake.deletion_vectors import positions
from headwater.lake.file_changes import vector_difference
from headwater.lake.interval import Interval, MetadataHistory, file_events
from headwater.lake.scan import read_file
from headwater.lake.snapshot import Snapshot

__all__ = [
    "WEIGHT",
    "FileChange",
    "change_files",
    "changes",
    "files_of",
    "read_change",
    "read_feed",
    "stream_changes",
    "stream_files",
]

WEIGHT = "_weight"
_ID, _LAST_ID = "delta.columnMapping.id", "delta.columnMapping.maxColumnId"
_FEED = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to one file in the interval; None: it was not there."""

    before: AddFile | None
    after: AddFile | None
    feed: bool = False
    metadata: Metadata | None = None
    """The definition the file is laid out by; None: that of whoever reads it."""

    @property
    def both_signs(self) -> bool:
        return self.feed or self.before is not None


def change_files(until: Snapshot, after: int) -> list[FileChange]:
    """The files whose rows make up the change from version ``after`` to ``until``."""
    interval = Interval.read(until, after)
    return files_of(until, interval.commits, interval.history)


def files_of(
    reader: Snapshot,
    commits: Sequence[Commit],
    history: MetadataHistory,
    columns: Sequence[str] | None = None,
    *,
    recorded: bool = False,
) -> list[FileChange]:
    """The files whose rows make up the change of some commits, to be read under the schema of ``reader``.

    ``columns`` are those that will be read, by default all. With ``recorded`` a commit's own entries of the feed are
    always given, though they lack a column that was dropped then and has been restored.
    """
    columns = reader.schema.names if columns is None else columns
    # How often each file, under each of its vectors, was added less how often it was removed. A file may come twice:
    # added, folded into another by OPTIMIZE (which counts nothing), and brought back by RESTORE.
    net: dict[str, dict[str | None, int]] = {}
    known: dict[tuple[str, str | None], tuple[AddFile, int]] = {}
    feed: list[tuple[FileChange, int]] = []
    for commit in commits:
        version = commit.version
        if not all(f.data_change for f in commit.adds):
            _check_rewritten(reader, history, version, columns)
        if commit.cdc and (recorded or not _dropped(reader, history.at(version), columns)):
            feed += [(FileChange(None, _feed_file(action), feed=True), version) for action in commit.cdc]
            continue
        for event in file_events(commit, history, reader.storage, data_changes_only=True):
            file, weight = event.file, 1 if event.came else -1
            path, vector = file.key
            known[file.key] = file, event.layout
            of_path = net.setdefault(path, {})
            of_path[vector] = of_path.get(vector, 0) + weight
    found = [change for path, weights in net.items() for change in _changes_of(path, weights, known)] + feed
    layouts = {at: _layout(reader, history, at) for at in {at for _, at in found}}
    return [replace(change, metadata=layouts[at]) for change, at in found]


def _changes_of(
    path: str, weights: dict[str | None, int], known: dict[tuple[str, str | None], tuple[AddFile, int]]
) -> list[tuple[FileChange, int]]:
    """One change for each time that a file came or went, where it can be as the difference of two vectors.

    With each goes a version that has, or had, the file.
    """
    came = [known[path, v] for v, weight in weights.items() for _ in range(weight)]
    gone = [known[path, v] for v, weight in weights.items() for _ in range(-weight)]
    pairs = itertools.zip_longest(gone, came)
    return [
        (FileChange(old[0] if old else None, new[0] if new else None), (new or old or (None, 0))[1])
        for old, new in pairs
    ]


def _layout(reader: Snapshot, history: MetadataHistory, version: int) -> Metadata | None:
    """The metadata that files of a version are laid out by; None if it is the reader's."""
    metadata = history.at(version)
    given_up = history.mapping_given_up(version)
    if given_up is not None and align(given_up[1], metadata) is not None:
        # A column is known by its token until then and by its name since, and these had changed in between.
        raise SchemaError.conflicting(
            f"version {given_up[0]} gave up column mapping, and columns of version {version} had changed by then",
            reader.where,
            f"read the changes until version {given_up[0] - 1} and after it apart",
        )
    return None if align(reader.state.metadata, metadata) is None else metadata


def _feed_file(action: dict[str, Any]) -> AddFile:
    return AddFile(action["path"], dict(action.get("partitionValues") or {}), action.get("size") or 0, 0)


def check_types(until: Snapshot, files: Sequence[FileChange], columns: Sequence[str]) -> None:
    """Raise if a column of these files changed its type for good, so that its old values are none of the new one."""
    for metadata in {id(f.metadata): f.metadata for f in files}.values():
        aligned = align(until.state.metadata, metadata)
        if aligned is None:
            continue
        for f in map(until.schema.field, columns):
            was = aligned.was(f)
            if was is not None and not aligned.is_readable(f.type, was.type):
                raise SchemaError.conflicting(
                    f"column `{f.name}` changed from {type_text(was.type)} to {type_text(f.type)} in the interval",
                    until.where,
                    (
                        "read the changes until the version before that and after it apart",
                        Action("show_history", also=True),
                    ),
                )


def _check_returned(interval: Interval, columns: Sequence[str]) -> None:
    """Raise if a restored schema brought a dropped column back, with the old values of rows that were null in it."""
    until, after, commits = interval.until, interval.after, interval.commits
    if after < 0 or until.mapping_mode == "none" or not any(c.metadata is not None for c in commits):
        return
    back = _dropped(until, interval.history.at(after), columns)
    if not back:
        return
    first: dict[str, bool] = {}  # whether what the interval does first to a file is to add it
    for commit in commits:
        for gone in commit.removes:
            first.setdefault(gone.path, False)
        for new in commit.adds:
            first.setdefault(new.path, True)
    if not all(first.values()) or any(path not in first for path in until.files):
        raise SchemaError.conflicting(
            f"column `{back[0]}` was dropped at version {after}, and has its old values again at {until.version}",
            until.where,
            "read the changes since a version that has the column, or columns that both versions have",
        )


def _dropped(reader: Snapshot, then: Metadata, columns: Sequence[str]) -> list[str]:
    """Columns that had been dropped at some point, and are there again for the reader: a restore brought them back."""
    aligned, last = align(reader.state.metadata, then), int(then.configuration.get(_LAST_ID, "0"))
    if aligned is None or reader.mapping_mode == "none":
        return []
    fields = [reader.schema.field(c) for c in columns]
    return [f.name for f in fields if aligned.was(f) is None and int(f.metadata.get(_ID, last + 1)) <= last]


def _check_rewritten(reader: Snapshot, history: MetadataHistory, version: int, columns: Sequence[str]) -> None:
    """Raise if rows were rewritten, as no change, while a column was dropped that a restore has brought back."""
    if lost := _dropped(reader, history.at(version), columns):
        raise SchemaError.conflicting(
            f"version {version} rewrote files without column `{lost[0]}`, which was dropped then and is there again",
            reader.where,
            f"read the changes until version {version} and after it apart",
        )


def read_change(until: Snapshot, change: FileChange, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The weighted rows of one file's change."""
    check_types(until, [change], columns)
    if change.feed:
        for batch, kinds in read_feed(until, change, columns):
            codes = kinds.dictionary_encode()
            weights = np.array([_FEED[k] for k in codes.dictionary.to_pylist()], np.int64)[codes.indices.to_numpy()]
            yield _with_weights(batch, pa.array(weights))
    elif change.before is None or change.after is None:
        file, weight = (change.after, 1) if change.before is None else (change.before, -1)
        assert file is not None
        for batch in read_file(until, file, columns, metadata=change.metadata):
            yield _weighted(batch, weight)
    else:
        died, back = vector_difference(until, change.before, change.after)
        for rows, weight in ((died, -1), (back, 1)):
            if rows:
                only = positions(rows)
                for batch in read_file(
                    until, change.after, columns, only=only, with_deleted=True, metadata=change.metadata
                ):
                    yield _weighted(batch, weight)


def read_feed(until: Snapshot, change: FileChange, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """The rows of a file of the change data feed, and what happened to each."""
    assert change.after is not None
    widened = Snapshot(until.storage, replace(until.state, metadata=_with_kinds(until.state.metadata)))
    metadata = None if change.metadata is None else _with_kinds(change.metadata)
    for batch in read_file(widened, change.after, [*columns, CHANGE_TYPE], metadata=metadata):
        yield batch.select(columns), batch.column(len(columns))


def _with_kinds(metadata: Metadata) -> Metadata:
    return replace(metadata, schema=metadata.schema.plus([Field(CHANGE_TYPE, "string", True)]))


def _weighted(batch: pa.RecordBatch, weight: int) -> pa.RecordBatch:
    return _with_weights(batch, pa.repeat(pa.scalar(weight, pa.int64()), batch.num_rows))


def _with_weights(batch: pa.RecordBatch, weights: pa.Array) -> pa.RecordBatch:
    return batch.append_column(pa.field(WEIGHT, pa.int64(), False), weights)


def _output_schema(until: Snapshot, columns: Sequence[str]) -> pa.Schema:
    fields = [until.schema.field(c).arrow.with_nullable(True) for c in columns]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64(), False)])


def stream_changes(
    until: Snapshot, after: int, columns: Sequence[str] | None = None, *, consolidated: bool = True
) -> pa.RecordBatchReader:
    """The change as a stream of batches with a weight a row, in bounded memory."""
    names, files, mixed = _planned(until, after, columns)
    return stream_files(until, files, names, consolidated=consolidated and mixed)


def _planned(until: Snapshot, after: int, columns: Sequence[str] | None) -> tuple[list[str], list[FileChange], bool]:
    """The columns and files to read, and whether a row may come with both signs, or lack what told it from others."""
    names = [until.schema.field(c, until.where).name for c in (columns or until.schema.names)]
    interval = Interval.read(until, after)
    _check_returned(interval, names)
    files = files_of(until, interval.commits, interval.history, names)
    return names, files, columns is not None or not _one_sign(files)


def _one_sign(files: Sequence[FileChange]) -> bool:
    return not any(f.both_signs for f in files)


def stream_files(
    until: Snapshot, files: Sequence[FileChange], columns: Sequence[str], *, consolidated: bool = True
) -> pa.RecordBatchReader:
    """The changes of some files as one stream, with the weights of equal rows added up if ``consolidated``."""
    check_types(until, files, columns)
    schema = _output_schema(until, columns)
    batches = (b for f in files for b in read_change(until, f, columns))
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    return consolidate_stream(reader) if consolidated else reader


def changes(until: Snapshot, after: int, columns: Sequence[str] | None = None) -> ChangeBatch:
    """The change as one consolidated batch."""
    names, files, mixed = _planned(until, after, columns)
    rows = stream_files(until, files, names, consolidated=mixed).read_all()
    # Rows of one sign are all kept, so they are added up where they end up anyway.
    return ChangeBatch(rows, consolidated=mixed).consolidate()
