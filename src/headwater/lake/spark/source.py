"""The streaming source: a table's changes, version by version, as Spark's Structured Streaming takes them.

An offset says which version was delivered last, and where the stream began:

    {"version": 7, "began": 3}      versions 4 to 7 were delivered, by a stream that began after version 3
    {"version": 3, "began": 3}      nothing was delivered yet
    {"version": 5, "began": null}   all rows of version 5 were delivered first, by a stream that begins with the table
    {"version": null, "began": null}

Spark asks anew where a stream begins when it repeats a first batch whose offset it has written down. By then "latest"
may be another version, so the beginning is taken from the offset that was written down.

The rows of a version are its change, consolidated. Where all weights are of one sign there is nothing to consolidate,
and each file is a task of its own; where a version both adds and removes rows, one task reads that version. The columns
are those of the table when the stream was defined. Columns that come later stop the stream, with an error that says so,
unless the columns were chosen by name; so do columns of the stream that the table drops, or gives another type.

`pushFilters` is not overridden, on purpose: in PySpark 4.x pushed filters leak into other uses of the same source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructType

from headwater.base.errors import SchemaError
from headwater.base.schema import type_text
from headwater.lake import changes, log, snapshot
from headwater.lake.actions import Metadata
from headwater.lake.alignment import Aligned, align
from headwater.lake.changes import WEIGHT, FileChange
from headwater.lake.interval import MetadataHistory, read_commits
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.tasks import shaped
from headwater.lake.spark.types import loose_field, spark_struct

__all__ = ["COMMIT_VERSION", "ChangeReader", "ChangeSource", "Stream"]

COMMIT_VERSION = "_commit_version"
Offset = dict[str, int | None]


@dataclass(frozen=True)
class Stream:
    """What a stream was defined as; travels to the planner and to tasks inside the pickled source."""

    base: Snapshot  # the table when the stream was defined, without its files
    columns: tuple[str, ...]
    chosen: bool
    begin: int | None
    max_versions: int | None

    def __repr__(self) -> str:  # storage options hold secrets
        return f"Stream({self.base.where!r}, begin={self.begin})"

    def at(self, version: int) -> Snapshot:
        """The table as defined, standing at ``version``."""
        return Snapshot(self.base.storage, replace(self.base.state, version=version))


class VersionPart(InputPartition):
    """The work of one task: files of one version's change, and whether the weights of their equal rows are added up."""

    def __init__(self, version: int, files: Sequence[FileChange], *, consolidated: bool = False) -> None:
        self.version, self.files, self.consolidated = version, tuple(files), consolidated


class ChangeSource(DataSource):
    """The changes of one table; `stream` makes a subclass for each stream."""

    stream: ClassVar[Stream]
    source_name: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.source_name

    def schema(self) -> StructType:
        rows = spark_struct(self.stream.base.schema, list(self.stream.columns))
        return rows.add(WEIGHT, LongType(), False).add(COMMIT_VERSION, LongType(), False)

    def streamReader(self, schema: StructType) -> ChangeReader:  # noqa: N802 (PySpark's name)
        return ChangeReader(self.stream)


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets, partitions and rows of a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._last: int | None = None
        # The end of the last batch, or what the stream was defined on: its metadata need not be loaded.
        self._delivered = (stream.base.version, stream.base.state.metadata)

    # ------------------------------------------------------------------ in the planner

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"version": self.stream.begin, "began": self.stream.begin}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._newest()

    def _newest(self) -> int:
        return snapshot.latest(self.stream.base.storage).version

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The version to deliver up to. Spark's limits count rows, files or bytes, so ours is applied here instead."""
        newest = self._last if self._last is not None else self._newest()
        done = start["version"]
        if done is None:
            return {"version": newest, "began": start["began"]}
        if self.stream.max_versions is not None:
            newest = min(newest, done + self.stream.max_versions)
        return {"version": max(newest, done), "began": start["began"]}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        return {"version": self._newest(), "began": self.stream.begin}

    def partitions(self, start: Offset, end: Offset) -> Sequence[VersionPart]:
        until = end["version"]
        after = end["began"] if start["version"] == start["began"] else start["version"]
        if until is None:
            return []
        base = self.stream.base
        if after is None:
            table = snapshot.at_version(base.storage, until)
            self._check_columns(until, table.state.metadata)
            metadata = None if align(base.state.metadata, table.state.metadata) is None else table.state.metadata
            return [VersionPart(until, [FileChange(None, f, metadata=metadata)]) for f in table.files.values()]
        parts: list[VersionPart] = []
        commits = read_commits(base.storage, after, until)
        history = MetadataHistory(commits, partial(self._metadata_at, after))
        for commit in commits:
            if commit.metadata is not None:
                self._check_columns(commit.version, commit.metadata)
            changed = changes.files_of(base, [commit], history, self.stream.columns)
            if all(f.before is None and not f.feed for f in changed) or all(f.after is None for f in changed):
                parts += [VersionPart(commit.version, [f]) for f in changed]
            else:
                parts.append(VersionPart(commit.version, changed, consolidated=True))
        self._delivered = (until, history.at(until)) if commits else self._delivered
        return parts

    def _metadata_at(self, version: int) -> Metadata:
        known, metadata = self._delivered
        return metadata if version == known else log.load(self.stream.base.storage, version).metadata

    def _check_columns(self, version: int, now: Metadata) -> None:
        """Raise if a version that is newer than the stream has other columns than the stream can give."""
        base, aligned = self.stream.base, align(now, self.stream.base.state.metadata)
        if version <= base.version or aligned is None:
            return
        news = None if self.stream.chosen else next((f for f in now.schema.fields if aligned.was(f) is None), None)
        if news is not None:
            self._stop(version, f"adds the column `{news.name}`, which this stream does not have")
        back = Aligned(base.state.metadata, now)
        for f in map(base.schema.field, self.stream.columns):
            found = back.was(f)
            if found is None:
                self._stop(version, f"has no column `{f.name}` any more, or another one of that name")
            elif not back.is_readable(f.type, found.type):
                self._stop(
                    version, f"changes the column `{f.name}` from {type_text(f.type)} to {type_text(found.type)}"
                )

    def _stop(self, version: int, what: str) -> NoReturn:
        hint = "restart the query: it goes on from its checkpoint, with the columns of now"
        raise SchemaError.conflicting(f"version {version} {what}", self.stream.base.where, hint)

    # ------------------------------------------------------------------ in tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, VersionPart)
        until, names = self.stream.at(partition.version), list(self.stream.columns)
        fields = [loose_field(until.schema.field(n)) for n in names]
        for batch in self._batches(until, partition, names):
            if batch.num_rows:
                yield _finished(batch, fields, partition.version)

    def _batches(self, until: Snapshot, part: VersionPart, names: list[str]) -> Iterator[pa.RecordBatch]:
        yield from changes.stream_files(until, part.files, names, consolidated=part.consolidated)


def _finished(batch: pa.RecordBatch, fields: Sequence[Any], version: int) -> pa.RecordBatch:
    rows = shaped(batch, fields)
    versions = pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows)
    rows = rows.append_column(pa.field(WEIGHT, pa.int64(), False), batch.column(WEIGHT))
    return rows.append_column(pa.field(COMMIT_VERSION, pa.int64(), False), versions)
