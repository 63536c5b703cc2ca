"""The streaming source: a table's changes, version by version, as Spark's Structured Streaming takes them.

An offset says which version was delivered last, and where the stream began:

    {"version": 7, "began": 3}      versions 4 to 7 were delivered, by a stream that began after version 3
    {"version": 3, "began": 3}      nothing was delivered yet
    {"version": 5, "began": null}   all rows of version 5 were delivered first, by a stream that begins with the table
    {"version": null, "began": null}

Spark asks anew where a stream begins when it repeats a first batch whose offset it has written down. By then "latest"
may be another version, so the beginning is taken from the offset that was written down.

The rows of a version are its change, consolidated. Where all weights are of one sign there is nothing to consolidate, and
each file is a task of its own; where a version both adds and removes rows, one task reads that version. The columns
are those of the table when the stream was defined: columns that come later stop the stream, with an error that says so,
unless the columns were chosen by name.

`pushFilters` is not overridden, on purpose: in PySpark 4.x pushed filters leak into other uses of the same source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructType

from headwater.base.errors import SchemaError
from headwater.lake import changes, log, snapshot
from headwater.lake.changes import WEIGHT, FileChange
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
    """The work of one task: files of one version's change; no files stand for all of them, consolidated."""

    def __init__(self, version: int, files: Sequence[FileChange] = ()) -> None:
        self.version, self.files = version, tuple(files)


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
        if after is None:
            files = snapshot.at_version(self.stream.base.storage, until).files
            return [VersionPart(until, [FileChange(None, f)]) for f in files.values()]
        parts: list[VersionPart] = []
        for version in range(after + 1, until + 1):
            self._check_columns(version)
            files_changed = changes.change_files(self.stream.at(version), version - 1)
            if all(f.before is None and not f.feed for f in files_changed) or all(
                f.after is None for f in files_changed
            ):
                parts += [VersionPart(version, [f]) for f in files_changed]
            else:
                parts.append(VersionPart(version))
        return parts

    def _check_columns(self, version: int) -> None:
        base = self.stream.base
        if version <= base.version or self.stream.chosen:
            return
        metadata = log.read_commit(base.storage, version, 0).metadata
        added = [f.name for f in metadata.schema.fields if f.name not in base.schema] if metadata is not None else []
        if added:
            raise SchemaError.conflicting(
                f"version {version} adds the column `{added[0]}`, which this stream does not have",
                base.where,
                "restart the query: it goes on from its checkpoint, with the new column",
            )

    # ------------------------------------------------------------------ in tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, VersionPart)
        until, names = self.stream.at(partition.version), list(self.stream.columns)
        fields = [loose_field(until.schema.field(n)) for n in names]
        for batch in self._batches(until, partition, names):
            if batch.num_rows:
                yield _finished(batch, fields, partition.version)

    def _batches(self, until: Snapshot, part: VersionPart, names: list[str]) -> Iterator[pa.RecordBatch]:
        if not part.files:
            yield from changes.stream_changes(until, until.version - 1, names)
        for change in part.files:
            yield from changes.read_change(until, change, names)


def _finished(batch: pa.RecordBatch, fields: Sequence[Any], version: int) -> pa.RecordBatch:
    rows = shaped(batch, fields)
    versions = pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows)
    rows = rows.append_column(pa.field(WEIGHT, pa.int64(), False), batch.column(WEIGHT))
    return rows.append_column(pa.field(COMMIT_VERSION, pa.int64(), False), versions)
