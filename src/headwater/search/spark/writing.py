"""Writing from Spark: rows into a Delta table, and splits of them into its index.

Tasks write data files as the lake itself does (`data_files`), and index the files that they have written at once, so a
large write is indexed by as many writers as it has tasks. Then one process commits the files to the table, and after
that the splits to the index, as a refresh that finds them built (`KeptIndex.refresh_with`). A crash in between leaves
files that no split covers: searches index them when somebody asks, and are slower, but not wrong. So a failure of the
index after the table's commit is reported, and is no failure of the write.

A task that is run twice, and a job that fails, leave files and splits that no commit names. They are left to VACUUM and
to the next refresh: a commit whose outcome is not known must never lose its files.

A data file has no more rows than a split should have, so that splits keep to `targetRecordsPerSplit`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headwater.base import events, settings
from headwater.base.errors import ConflictError, HeadwaterError, InputError, UnsupportedError
from headwater.base.storage import Storage, now_ms
from headwater.lake import data_files, protocol, write
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.catalog import Catalog, is_table
from headwater.lake.conform import Rows
from headwater.lake.definition import define, is_mapped
from headwater.lake.log import LogState
from headwater.lake.published import check_editable
from headwater.lake.snapshot import Snapshot, latest
from headwater.lake.spark.tasks import without_files
from headwater.lake.spark.types import arrow_schema
from headwater.lake.write import SchemaMode
from headwater.search.cover import Cover
from headwater.search.definition import TARGET_ROWS, Definition
from headwater.search.definition import define as define_index
from headwater.search.kept_index import KeptIndex, splits_path
from headwater.search.kind import make
from headwater.search.on_spark import PASSED_ON, write_splits
from headwater.search.spark.options import SourceOptions
from headwater.search.spark.place import TablePlace, environment_of, place_of
from headwater.search.split_store import SplitStore

__all__ = ["SearchWriter", "WrittenPart", "plan_write"]

_TASK_SETTINGS = ("parquet_compression", "row_group_rows", "target_file_bytes", *PASSED_ON)


def plan_write(options: SourceOptions, schema: StructType, *, overwrite: bool) -> SearchWriter:
    """A writer of rows with these columns; what cannot be written is refused before a task runs."""
    place = place_of(options)
    if place is None:
        raise InputError.bad_name(options.path.rstrip("/").rpartition("/")[2])
    incoming = arrow_schema(schema)
    mode: SchemaMode = "strict"
    if is_table(place.storage):
        base: Snapshot | None = latest(place.storage)
        assert base is not None
        options = options.over(base.configuration, base.where)
        check_editable(place.name, base, "write()")
        base.check_writable()
        mode = _schema_mode(options, base, overwrite=overwrite)
        planned = write.evolve(base, incoming, mode)
        _check_partitioning(options, base)
    else:
        base = None
        Catalog(place.root).check_free(place.name)
        metadata = define(incoming, partition_by=options.list("partitionColumns") or (), name=place.name)
        needed = protocol.for_table(metadata.schema, metadata.configuration)
        planned = Snapshot(place.storage, LogState(-1, now_ms(), needed, metadata, {}, {}, {}))
    index, fields, meant = _index_of(options, place, planned)
    chosen = {k: v for k, v in asdict(settings.current()).items() if k in _TASK_SETTINGS}
    return SearchWriter(
        place=place, base=without_files(planned), incoming=incoming, exists=base is not None, overwrite=overwrite,
        schema_mode=mode, index=index, fields=fields, meant=meant, chosen={**chosen, **options.settings},
    )  # fmt: skip


def _schema_mode(options: SourceOptions, base: Snapshot, *, overwrite: bool) -> SchemaMode:
    wanted: SchemaMode = "strict"
    if options.flag("overwriteSchema"):
        if not overwrite:
            raise InputError.bad_argument("overwriteSchema", "true", 'mode("overwrite"); append takes mergeSchema')
        wanted = "replace"
    elif options.flag("mergeSchema"):
        wanted = "merge"
    if wanted != "strict" and is_mapped(base.configuration):
        # New columns get names inside the files when they are added, which is before the files are written.
        hint = "add the columns first: lake.table(name).add_columns(…), or ALTER TABLE … ADD COLUMNS"
        raise UnsupportedError.operation("another schema", "the table maps its columns", hint)
    return wanted


def _check_partitioning(options: SourceOptions, base: Snapshot) -> None:
    given = options.list("partitionColumns")
    have = [c.lower() for c in base.partition_columns]
    if given is not None and [c.lower() for c in given] != have:
        raise InputError.bad_argument("partitionColumns", ",".join(given), f"what the table is partitioned by: {have}")


def _index_of(
    options: SourceOptions, place: TablePlace, planned: Snapshot
) -> tuple[str, Mapping[str, Any] | None, Definition]:
    """The index that the rows go into: its name, how it is to be made if it is not there,
    and what it is an index of.
    """
    target, fields = options.number("targetRecordsPerSplit", 1), options.fields
    known = place.indexes()
    named = options.text("index")
    if named is None:
        named = next(iter(known)) if len(known) == 1 else f"{place.name}_index"
    Catalog.check_name(named)
    have = known.get(named)
    if have is None:
        fields["target_rows"] = TARGET_ROWS if target is None else target
        return named, fields, define_index(planned, place.name, **fields)
    if options.names_fields:
        asked = define_index(planned, place.name, **fields)
        if asked.spec != have.spec:
            raise InputError.other_definition(named, str(have), place.root.url)
    have.check(named, planned)
    return named, None, have if target is None else replace(have, target_rows=target)


@dataclass(frozen=True)
class WrittenPart(WriterCommitMessage):
    """What a task has written: the actions that add its files, and its splits."""

    adds: tuple[str, ...]
    covers: Mapping[str, Cover]


@dataclass(frozen=True, kw_only=True)
class SearchWriter(DataSourceArrowWriter):
    """Rows on their way into a table and its index."""

    place: TablePlace
    base: Snapshot
    incoming: pa.Schema
    exists: bool
    overwrite: bool
    schema_mode: SchemaMode
    index: str
    fields: Mapping[str, Any] | None
    meant: Definition
    chosen: Mapping[str, Any]

    def __repr__(self) -> str:  # storage options hold secrets
        return f"SearchWriter({self.place.storage.url!r}, index={self.index!r})"

    # -- in tasks --------------------------------------------------------------------------------------------------

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        """Write and index the rows of a task."""
        pa.set_cpu_count(1)
        base, store = self.base, SplitStore(self.place.root, splits_path(self.index))
        layout = data_files.Layout(base.state.metadata)
        adds: list[AddFile] = []
        with settings.override(**self.chosen):
            fitted = write.prepared(Rows(self.incoming, iterator), base)
            for batches in _cut(fitted.batches, self.meant.target_rows):
                adds += data_files.write_rows(self.place.storage, layout, batches)
            covers = write_splits(self.meant, store, base, adds)
        return WrittenPart(tuple(json.dumps(f.to_action()["add"]) for f in adds), covers)

    # -- in one process --------------------------------------------------------------------------------------------

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files to the table, and then the splits to the index."""
        parts = [one for one in messages if isinstance(one, WrittenPart)]
        adds = [AddFile.from_json(json.loads(text)) for part in parts for text in part.adds]
        source = _WrittenFiles(self.incoming, self.base.state.metadata, adds)
        with settings.override(**self.chosen):
            self._commit(source)
            covers = {name: cover for part in parts for name, cover in part.covers.items()}
            try:
                self._refresh(covers)
            except HeadwaterError as error:
                events.notice(f"the rows are in `{self.place.name}`, and its index `{self.index}` is behind: {error}")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Leave what was written to VACUUM and to the next refresh: here it is not known whether a commit names it."""

    def _commit(self, source: _WrittenFiles) -> None:
        storage = self.place.storage
        if not self.exists:
            if write.create(storage, self.base.state.metadata, source) is None:
                raise ConflictError.lost("the table was created", 0, "CREATE TABLE", storage.url)
        elif self.overwrite:
            write.overwrite(storage, source, schema_mode=self.schema_mode)
        else:
            write.append(storage, source, schema_mode="merge" if self.schema_mode == "merge" else "strict")

    def _refresh(self, covers: Mapping[str, Cover]) -> None:
        environment = environment_of(self.place.root)
        if self.fields is not None:
            make(self.index, self.place.name, environment, **self.fields)
        KeptIndex(self.index, environment).refresh_with(covers)


class _WrittenFiles(write.Source):
    """Files that tasks have written under one definition of the table."""

    def __init__(self, schema: pa.Schema, planned: Metadata, adds: Sequence[AddFile]) -> None:
        self.schema, self._planned, self._adds = schema, planned, list(adds)

    def write(
        self, storage: Storage, metadata: Metadata, checks: Mapping[str, str], where: str | None = None
    ) -> list[AddFile]:
        """The files, if the table is still what it was when they were written."""
        assert where is None
        if _meaning(metadata) != _meaning(self._planned):
            raise ConflictError.lost("the table's schema or properties were changed", 0, "ALTER", storage.url)
        return self._adds


def _meaning(metadata: Metadata) -> tuple[object, ...]:
    return metadata.id, metadata.schema, metadata.partition_columns, dict(metadata.configuration)


def _cut(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[Iterator[pa.RecordBatch]]:
    """Stretches of batches with so many rows each; each has to be read before the next is asked for."""
    waiting: list[pa.RecordBatch] = []

    def stretch() -> Iterator[pa.RecordBatch]:
        left = rows
        while left:
            batch = waiting.pop() if waiting else next(batches, None)
            if batch is None:
                return
            if batch.num_rows > left:
                waiting.append(batch.slice(left))
                batch = batch.slice(0, left)
            left -= batch.num_rows
            if batch.num_rows:
                yield batch

    while True:
        if not waiting:
            first = next(batches, None)
            if first is None:
                return
            waiting.append(first)
        yield stretch()
