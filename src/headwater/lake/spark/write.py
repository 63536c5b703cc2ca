"""Writing: a Spark DataFrame's rows into a table, in one commit.

Spark writes Parquet as it always does, into a fresh folder below the table's; then each file's footer gives its
statistics, the files move to where the table keeps such files, and the commit is the same as for rows that come from
anywhere else (`headwater.lake.write`): conflicts, schema modes, transactions that are applied once. The commit protocol
of Spark's own job decides which files count: only what a job that succeeded left in its folder is ever committed.

    <table>/spark-<uuid>/                           what a running job has written; a job that fails takes it along
    <table>/spark-<uuid>/hw_partition_0=<text>/    partition values, in letters that no file system changes

Where Spark has no way to the storage, tasks write the files (`tasks`). The session's Delta classes are not used for
writing, so that a write means the same everywhere.
"""

from __future__ import annotations

import os
import uuid
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from headwater.base import faults, settings
from headwater.base.errors import HeadwaterError
from headwater.base.schema import Field
from headwater.base.storage import Entry, Storage, now_ms
from headwater.lake import data_files, partitions, write
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.conflicts import Proposal
from headwater.lake.definition import define
from headwater.lake.scan import map_files
from headwater.lake.spark import tasks
from headwater.lake.spark.conf import conf
from headwater.lake.spark.fit import Fitted, fit
from headwater.lake.spark.placement import spark_unescape
from headwater.lake.spark.tables import TablePlace
from headwater.lake.spark.types import arrow_schema, column, physical_struct
from headwater.lake.transaction import Committed, discard

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["append", "create", "overwrite"]

# What a table's files must look like, whatever the session is set to for its own Parquet.
_PARQUET = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.sql.execution.datasources"
    ".SQLHadoopMapReduceCommitProtocol",
}
# The second version of this algorithm publishes the files of a task before the job has succeeded.
_COMMITTER = {"mapreduce.fileoutputcommitter.algorithm.version": "1"}
_CODECS = {"none": "uncompressed"}
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_TO_NAME, _FROM_NAME = ("+/=", "-_."), str.maketrans("-_.", "+/=")
_LONGEST, _TOO_LONG = 200, "a partition value is too long for the name of a folder"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def create(
    table: TablePlace,
    frame: DataFrame,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    txn: tuple[str, int] | None = None,
) -> Committed | None:
    """Make the table with the frame's columns and rows; None if one is there already."""
    rows = SparkRows(frame)
    metadata = define(rows.schema, partition_by=partition_by, table_properties=properties, name=table.name)
    return write.create(table.storage, metadata, rows, txn=txn)


def append(table: TablePlace, frame: DataFrame, **options: Any) -> Committed:
    """Add the frame's rows; see `headwater.lake.write.append`."""
    return write.append(table.storage, SparkRows(frame), **options)


def overwrite(table: TablePlace, frame: DataFrame, **options: Any) -> Committed:
    """Replace rows by the frame's; see `headwater.lake.write.overwrite`."""
    return write.overwrite(table.storage, SparkRows(frame), **options)


class SparkRows(write.Source):
    """The rows of a DataFrame, written by its own session."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame
        self.schema = arrow_schema(frame.schema)

    def write(
        self, storage: Storage, metadata: Metadata, checks: Mapping[str, str], where: str | None = None
    ) -> list[AddFile]:
        fitted = fit(self.frame, metadata.schema, checks, where, storage.url)
        adds = self._write(fitted, storage, metadata)
        try:
            fitted.check()
            fitted.check_count(sum(f.num_records or 0 for f in adds), storage.url)
        except HeadwaterError:
            discard(storage, Proposal("WRITE", adds=adds))
            raise
        return adds

    def _write(self, fitted: Fitted, storage: Storage, metadata: Metadata) -> list[AddFile]:
        if storage.local_path("") is None:
            return tasks.write(fitted.frame, storage, metadata)
        if not str(self.frame.sparkSession.conf.get("spark.master", "")).startswith("local"):
            fitted.count_rows()  # executors elsewhere may write to disks of their own
        try:
            return _write_native(fitted.frame, storage, metadata)
        except (PySparkException, Py4JError) as e:
            if _TOO_LONG not in str(e):
                raise
        return tasks.write(fitted.frame, storage, metadata)


def _write_native(frame: DataFrame, storage: Storage, metadata: Metadata) -> list[AddFile]:
    layout, run, fsync = data_files.Layout(metadata), f"spark-{uuid.uuid4().hex}", settings.current().fsync
    carriers = [f"hw_partition_{i}" for i in range(len(layout.partition_columns))]
    fields = [layout.schema.field(c) for c in layout.partition_columns]
    codec = settings.current().parquet_compression
    try:
        writer = frame.select(_columns(layout, fields, carriers)).write
        writer = writer.options(compression=_CODECS.get(codec, codec), **_COMMITTER)
        with conf(frame.sparkSession, _PARQUET):
            writer.parquet(f"file://{storage.local_path(run)}", mode="error", partitionBy=carriers or None)
        faults.point("lake.spark.after_job", run)
        found = [e for e in storage.list(run) if e.path.endswith(".parquet") and "/_" not in e.path]
        published = map_files(found, lambda e: _publish(storage, layout, fields, e, fsync))
        adds = [add for add in published if add is not None]
    finally:
        _remove(storage, run)
    if fsync:
        _flush_folders(storage, adds)
    return adds


def _columns(layout: data_files.Layout, partition_fields: Sequence[Field], carriers: Sequence[str]) -> list[Column]:
    """The columns of the files, and the partition values as texts."""
    physical = physical_struct(layout.in_files) if layout.mapped else None
    columns = []
    for i, f in enumerate(layout.in_files):
        value = sf.col(column(f.name))
        if physical is not None:
            inner = physical[i]
            value = value if isinstance(f.type, str) else value.cast(inner.dataType)
            value = value.alias(inner.name, metadata=inner.metadata)
        columns.append(value)
    return columns + [_carrier(f).alias(c) for f, c in zip(partition_fields, carriers, strict=True)]


def _carrier(f: Field) -> Column:
    value = sf.col(column(f.name))
    if f.type in ("string", "binary"):
        # Letters that survive every locale and file system; an empty text is null, as in the log.
        text = sf.translate(sf.base64(value.cast("binary")), *_TO_NAME)
        return sf.when(sf.length(text) > _LONGEST, sf.raise_error(_TOO_LONG).cast("string")).otherwise(text)
    return (sf.unix_micros(value) if f.type == "timestamp" else value).cast("string")


def _carried(folder: str, f: Field) -> str | None:
    """The partition value that a folder's name carries, as the log writes it."""
    text = folder.partition("=")[2]
    if text == _NULL_FOLDER:
        return None
    text = spark_unescape(text)
    kind = f.arrow.type
    if f.type in ("string", "binary"):
        return partitions.serialize(b64decode(text.translate(_FROM_NAME)).decode("utf-8"), kind)
    if f.type == "timestamp":
        return partitions.serialize(_EPOCH + timedelta(microseconds=int(text)), kind)
    return partitions.serialize(partitions.parse(text, kind).as_py(), kind)


def _publish(
    storage: Storage, layout: data_files.Layout, fields: Sequence[Field], entry: Entry, fsync: bool
) -> AddFile | None:
    """Move a file that Spark wrote to its place, and make the action that adds it; None if it has no rows."""
    _, *folders, name = entry.path.split("/")
    here = storage.local_path(entry.path)
    assert here is not None
    footer = pq.read_metadata(here)
    if not footer.num_rows:
        return None
    texts = [_carried(folder, f) for folder, f in zip(folders, fields, strict=True)]
    values = {layout.partition_key(f.name): text for f, text in zip(fields, texts, strict=True)}
    folder = layout.directory(values)
    path = f"{folder}/{name}" if folder else name
    there = storage.local_path(path)
    assert there is not None
    if fsync:
        _flush(here)
    os.makedirs(os.path.dirname(there), exist_ok=True)
    os.rename(here, there)
    return AddFile(
        partitions.encode_path(path), values, entry.size, now_ms(), True, data_files.file_stats(layout, footer)
    )


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _flush_folders(storage: Storage, adds: Sequence[AddFile]) -> None:
    paths = {storage.local_path(partitions.decode_path(f.path)) for f in adds}
    for folder in {os.path.dirname(p) for p in paths if p is not None}:
        _flush(folder)


def _remove(storage: Storage, run: str) -> None:
    """Take away what is left of a run: empty files, markers, checksums, the files of a job that failed."""
    import shutil

    faults.point("lake.spark.before_clean_up", run)
    with suppress(OSError):
        shutil.rmtree(str(storage.local_path(run)))
