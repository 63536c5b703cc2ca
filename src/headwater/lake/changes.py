"""Changes: the exact Z-set between two versions of a table.

``changes(after, until)`` gives rows with weights such that adding them to the rows of version ``after`` gives the rows
of version ``until``. It is read from the log, and costs the change:

- a commit with a change data feed is read from the feed;
- a file that was added counts +1 for its live rows, one that was removed -1;
- a file of which only the deletion vector changed counts just the rows in the difference of the two vectors;
- a file that came and went within the interval is never opened;
- ``dataChange=false`` (OPTIMIZE) counts nothing.

All rows are read under the schema of ``until``: a column added since is null in older rows, as every reader sees
it. The sum may hold a row several times with opposite signs (a rewritten file); `consolidated` adds them up in
DuckDB, which spills to disk, so memory is bounded whatever the size of the change.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from headwater.base import settings
from headwater.base.change import ChangeBatch
from headwater.base.errors import HeadwaterError, InputError, NotFoundError, SchemaError, StorageError
from headwater.base.schema import DeltaType, Field, type_text
from headwater.lake import log
from headwater.lake.actions import AddFile, Commit, RemoveFile
from headwater.lake.data_files import CHANGE_TYPE
from headwater.lake.definition import is_wider
from headwater.lake.deletion_vectors import DeletionVector, positions
from headwater.lake.deletion_vectors import read as read_vector
from headwater.lake.scan import read_file
from headwater.lake.snapshot import Snapshot
from headwater.sql.quoting import quote_identifier

__all__ = ["WEIGHT", "FileChange", "change_files", "changes", "read_change", "stream_changes"]

WEIGHT = "_weight"
_FEED = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to one file in the interval; None: it was not there."""

    before: AddFile | None
    after: AddFile | None
    feed: bool = False

    @property
    def both_signs(self) -> bool:
        return self.feed or self.before is not None


def change_files(until: Snapshot, after: int) -> list[FileChange]:
    """The files whose rows make up the change from version ``after`` to ``until``."""
    if after > until.version:
        raise InputError.bad_range(after, until.version)
    # How often each file, under each of its vectors, was added less how often it was removed. A file may come twice:
    # added, folded into another by OPTIMIZE (which counts nothing), and brought back by RESTORE.
    net: dict[str, dict[str | None, int]] = {}
    known: dict[tuple[str, str | None], AddFile] = {}
    feed: list[FileChange] = []
    commits = [_commit(until, version) for version in range(after + 1, until.version + 1)]
    _check_schemas(commits, until, after)
    for commit in commits:
        if commit.cdc:
            feed += [FileChange(None, _feed_file(action), feed=True) for action in commit.cdc]
            continue
        gone = [(_as_added(f, commit, until), -1) for f in commit.removes if f.data_change]
        came = [(f, 1) for f in commit.adds if f.data_change]
        for file, weight in gone + came:
            path, vector = file.key
            known[file.key] = file
            of_path = net.setdefault(path, {})
            of_path[vector] = of_path.get(vector, 0) + weight
    return [change for path, weights in net.items() for change in _changes_of(path, weights, known)] + feed


def _changes_of(
    path: str, weights: dict[str | None, int], known: dict[tuple[str, str | None], AddFile]
) -> list[FileChange]:
    """One change for each time that a file came or went, where it can be as the difference of two vectors."""
    came = [known[path, v] for v, weight in weights.items() for _ in range(weight)]
    gone = [known[path, v] for v, weight in weights.items() for _ in range(-weight)]
    return [FileChange(before, after) for before, after in itertools.zip_longest(gone, came)]


def _commit(until: Snapshot, version: int) -> Commit:
    try:
        return log.read_commit(until.storage, version, 0)
    except NotFoundError:
        oldest = min(log.list_segment(until.storage).commits, default=until.version)
        raise NotFoundError.version_gone(version, oldest, until.version, until.where) from None


def _check_schemas(commits: Sequence[Commit], until: Snapshot, after: int) -> None:
    """Rows from before a column changed its type for good cannot be read under the new one."""
    changed = [(c.version, c.metadata.schema) for c in commits if c.metadata is not None]
    if not changed:
        return
    if after >= 0:
        # Its log entries may have been cleaned up; the commits after it still say what changed.
        with suppress(NotFoundError):
            changed.insert(0, (after, log.load(until.storage, after).metadata.schema))
    now = {f.physical_name: f for f in until.schema.fields}
    for version, schema in changed:
        for f in schema.fields:
            new = now.get(f.physical_name)
            if new is not None and not _reads_as(f.type, new.type):
                raise SchemaError.conflicting(
                    f"column `{f.name}` changed from {type_text(f.type)} to {type_text(new.type)} in the interval",
                    until.where,
                    f"read the changes until version {version} and after it apart",
                )


def _reads_as(old: DeltaType, new: DeltaType) -> bool:
    """Whether values written as ``old`` are still what they were when they are read as ``new``."""
    if isinstance(old, str) or isinstance(new, str):
        return old == new or (isinstance(old, str) and isinstance(new, str) and is_wider(old, new))
    if old["type"] != new["type"]:
        return False
    if old["type"] == "struct":
        now = {f.physical_name: f.type for f in map(Field.from_json, new["fields"])}
        fields = map(Field.from_json, old["fields"])
        return all(f.physical_name not in now or _reads_as(f.type, now[f.physical_name]) for f in fields)
    return all(_reads_as(old[k], new[k]) for k in ("elementType", "keyType", "valueType") if k in old)


def _as_added(gone: RemoveFile, commit: Commit, until: Snapshot) -> AddFile:
    if gone.partition_values is None and until.partition_columns:
        # Old writers leave the partition values out; the version before still knows the file.
        return log.load(until.storage, commit.version - 1).files[gone.path]
    return AddFile(gone.path, gone.partition_values or {}, gone.size or 0, 0, deletion_vector=gone.deletion_vector)


def _feed_file(action: dict[str, Any]) -> AddFile:
    return AddFile(action["path"], dict(action.get("partitionValues") or {}), action.get("size") or 0, 0)


def _vector(until: Snapshot, vector: DeletionVector | None, path: str) -> BitMap64:
    if vector is None:
        return BitMap64()
    return read_vector(vector, until.storage.get_range, f"{until.where}/{path}")


def read_change(until: Snapshot, change: FileChange, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The weighted rows of one file's change."""
    if change.feed:
        assert change.after is not None
        yield from _read_feed(until, change.after, columns)
    elif change.before is None or change.after is None:
        file, weight = (change.after, 1) if change.before is None else (change.before, -1)
        assert file is not None
        for batch in read_file(until, file, columns):
            yield _weighted(batch, weight)
    else:
        path = change.after.path
        old = _vector(until, change.before.deletion_vector, path)
        new = _vector(until, change.after.deletion_vector, path)
        for rows, weight in ((new - old, -1), (old - new, 1)):
            if rows:
                for batch in read_file(until, change.after, columns, only=positions(rows), with_deleted=True):
                    yield _weighted(batch, weight)


def _read_feed(until: Snapshot, file: AddFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    kinds = Field(CHANGE_TYPE, "string", True)
    metadata = replace(until.state.metadata, schema=until.schema.plus([kinds]))
    widened = Snapshot(until.storage, replace(until.state, metadata=metadata))
    for batch in read_file(widened, file, [*columns, CHANGE_TYPE]):
        codes = batch.column(len(columns)).dictionary_encode()
        weights = np.array([_FEED[k] for k in codes.dictionary.to_pylist()], np.int64)[codes.indices.to_numpy()]
        yield _with_weights(batch.select(columns), pa.array(weights))


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
    names = [until.schema.field(c, until.where).name for c in (columns or until.schema.names)]
    files = change_files(until, after)
    schema = _output_schema(until, names)
    batches = (b for f in files for b in read_change(until, f, names))
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    if not consolidated or not (any(f.both_signs for f in files) or columns):
        return reader
    return _consolidate(reader, schema)


def _consolidate(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """Add up the weights of equal rows; rows are equal when every value is the same, bit for bit."""
    failures: list[HeadwaterError] = []

    def watched() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except HeadwaterError as e:  # DuckDB would keep its text only
            failures.append(e)
            raise

    def batches() -> Iterator[pa.RecordBatch]:
        now = settings.current()
        with tempfile.TemporaryDirectory(dir=now.spill_dir, prefix="headwater-") as spill:
            config: dict[str, Any] = {"temp_directory": os.path.join(spill, "duckdb")}
            if now.memory_limit_bytes:
                config["memory_limit"] = f"{now.memory_limit_bytes}B"
            if now.threads:
                config["threads"] = now.threads
            with duckdb.connect(":memory:", config=config) as con:
                con.execute("SET TimeZone = 'UTC'")
                con.execute("SET preserve_insertion_order = false")
                con.register("change", pa.RecordBatchReader.from_batches(schema, watched()))
                try:
                    yield from con.sql(_consolidating(schema)).to_arrow_reader(131_072)
                except (duckdb.Error, pa.ArrowException, OSError) as e:
                    if failures:
                        raise failures[0] from None
                    raise StorageError.failed(spill, str(e).split("\n", 1)[0]) from e

    return pa.RecordBatchReader.from_batches(schema, (b.cast(schema) for b in batches()))


def _consolidating(schema: pa.Schema) -> str:
    names = [quote_identifier(f.name) for f in schema if f.name != WEIGHT]
    exact = []
    for f in schema:
        name = quote_identifier(f.name)
        if pa.types.is_floating(f.type):
            exact.append(f"signbit({name})")  # 0.0 and -0.0 are equal in SQL and different rows here
        elif pa.types.is_nested(f.type):
            exact.append(f"CAST({name} AS VARCHAR)")
    shown = ", ".join(names)
    keys = ", ".join(names + exact)
    total = f"CAST(sum({WEIGHT}) AS BIGINT)"
    return f"SELECT {shown}, {total} AS {WEIGHT} FROM change GROUP BY {keys} HAVING sum({WEIGHT}) <> 0"


def changes(until: Snapshot, after: int, columns: Sequence[str] | None = None) -> ChangeBatch:
    """The change as one consolidated batch."""
    return ChangeBatch.from_table(stream_changes(until, after, columns).read_all()).consolidate()
