"""Scans: the live rows of data files, as Arrow batches.

A file's rows are what its Parquet holds, minus the positions its deletion vector marks, with partition values
filled in from the log, columns mapped to their names of today, and columns it lacks given as null. A position is
the row's number in the file, from 0, counted before any deletion; with the file it is the row's address, which
deletion vectors are made of.

Row groups are skipped by their own statistics, files are read ahead by a few threads, and no more than a few
batches per thread are ever in memory.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from headwater.base import settings
from headwater.base.errors import CorruptionError, HeadwaterError, NotFoundError, StorageError
from headwater.base.schema import DeltaType, Field
from headwater.base.storage import is_elsewhere
from headwater.lake import deletion_vectors, partitions
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.alignment import align
from headwater.lake.physical import to_logical
from headwater.lake.row_groups import may_match
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct

__all__ = [
    "POSITION",
    "file_reader",
    "first_byte",
    "live_vector",
    "map_files",
    "read_file",
    "scan",
    "scan_files",
    "thread_count",
]

POSITION = "__position"
Positions = np.ndarray[Any, np.dtype[np.int64]]
_BATCH_ROWS = 131_072
_CODED = pa.dictionary(pa.int32(), pa.string())
_FEW_ROWS = 32_768  # are decoded before another thread has woken up
T = TypeVar("T")
R = TypeVar("R")


def thread_count() -> int:
    import os

    return settings.current().threads or max(1, os.cpu_count() or 1)


def live_vector(snapshot: Snapshot, add: AddFile) -> BitMap64 | None:
    """The positions of ``add`` that are deleted."""
    if add.deletion_vector is None:
        return None
    path = partitions.decode_path(add.path)
    try:
        return deletion_vectors.read(add.deletion_vector, snapshot.storage.get_range, f"{snapshot.where}/{path}")
    except NotFoundError as e:
        vector = add.deletion_vector.path or "(inline)"
        raise NotFoundError.deletion_vector(vector, path, snapshot.where, snapshot.version) from e
    except StorageError as e:
        if add.deletion_vector.storage_type != "p":
            raise
        vector = f"{add.deletion_vector.path} (the deletion vector of {path})"
        raise StorageError.unreachable(vector, snapshot.where, e.message.rsplit(": ", 1)[-1]) from e


def read_file(
    snapshot: Snapshot,
    add: AddFile,
    columns: Sequence[str],
    *,
    positions: bool = False,
    only: Positions | None = None,
    with_deleted: bool = False,
    conjuncts: Sequence[Conjunct] = (),
    within: tuple[int, int] | None = None,
    coded: Sequence[str] = (),
    metadata: Metadata | None = None,
) -> Iterator[pa.RecordBatch]:
    """The live rows of one file, under the columns of ``snapshot``, in batches: how every reader of data files begins.

    The file is one of ``snapshot``, or of another version of the table with the ``metadata`` of that version. To get a
    file's rows under its own columns instead, pass ``snapshot.under(metadata)``.

    Parameters
    ----------
    positions
        Add the column `POSITION`.
    only
        Give just the rows at these positions (sorted; those that are live).
    with_deleted
        Give the rows that the deletion vector marks, too.
    conjuncts
        Row groups that cannot match are skipped; rows are not filtered.
    within
        Only the row groups that begin within these bytes of the file, so that several tasks can share it.
    coded
        Columns of text that are given as dictionaries, which is what most files hold.
    metadata
        The definition that the file was written under, if that is not the snapshot's.
    """
    path = partitions.decode_path(add.path)
    vector = None if with_deleted else live_vector(snapshot, add)
    deleted = None if vector is None else deletion_vectors.positions(vector)
    try:
        with snapshot.storage.open_input(path, size=add.size) as source:
            file = _opened(source, snapshot, coded)
            shape = _Shape(snapshot, add, columns, file, coded, metadata)
            for start, batch in _row_groups(file, shape, only, conjuncts, within):
                kept = _select(batch, start, deleted, only)
                if kept is not None:
                    yield shape.finish(*kept, positions)
    except NotFoundError as e:
        raise NotFoundError.data_file(path, snapshot.where, snapshot.version) from e
    except (pa.ArrowException, OSError) as e:
        if isinstance(e, StorageError) and is_elsewhere(path):
            raise StorageError.unreachable(path, snapshot.where, e.message.rsplit(": ", 1)[-1]) from e
        if isinstance(e, HeadwaterError):
            raise
        raise CorruptionError.data_file(path, str(e).split("\n", 1)[0], snapshot.where) from e


def file_reader(
    snapshot: Snapshot,
    add: AddFile,
    columns: Sequence[str] | None = None,
    *,
    positions: bool = False,
    metadata: Metadata | None = None,
) -> pa.RecordBatchReader:
    """`read_file` as a stream with a schema, of all columns by default."""
    fields = [snapshot.schema.field(c, snapshot.where) for c in (columns or snapshot.schema.names)]
    schema = pa.schema([f.arrow.with_nullable(True) for f in fields])
    if positions:
        schema = schema.append(pa.field(POSITION, pa.int64(), True))
    batches = read_file(snapshot, add, [f.name for f in fields], positions=positions, metadata=metadata)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _opened(source: pa.NativeFile, snapshot: Snapshot, coded: Sequence[str]) -> pq.ParquetFile:
    options: dict[str, Any] = {"coerce_int96_timestamp_unit": "us", "pre_buffer": _is_remote(snapshot)}
    if coded:
        # What an older file lacks must not be asked for.
        options["metadata"] = pq.read_metadata(source)
        there = set(options["metadata"].schema.names)
        options["read_dictionary"] = [n for c in coded if (n := snapshot.schema.field(c).physical_name) in there]
    return pq.ParquetFile(source, **options)


def _is_remote(snapshot: Snapshot) -> bool:
    return snapshot.storage.local_path("") is None


class _Shape:
    """How the columns asked for are made from the columns a file has."""

    def __init__(
        self,
        snapshot: Snapshot,
        add: AddFile,
        columns: Sequence[str],
        file: pq.ParquetFile,
        coded: Sequence[str] = (),
        metadata: Metadata | None = None,
    ) -> None:
        self.coded = set(coded)
        self.fields = [snapshot.schema.field(c) for c in columns]
        self.schema = pa.schema([f.arrow for f in self.fields])
        aligned = align(snapshot.state.metadata, metadata)
        own = snapshot.state.metadata if aligned is None else aligned.then
        mode = own.configuration.get("delta.columnMapping.mode", "none")
        # Aligned types know the fields of structs by their names inside the file, as those of column mapping do.
        self.mapped = mode != "none" or aligned is not None
        in_file = _names_in_file(mode, file)
        self.constants: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.types: dict[str, DeltaType] = {}
        for f in self.fields:
            was = f if aligned is None else aligned.in_file(f)
            if was is None:
                continue
            self.types[f.name] = f.type if aligned is None else aligned.in_files(f.type, was.type)
            if was.name in own.partition_columns:
                key = was.physical_name if mode != "none" else was.name
                text = add.partition_values.get(key, add.partition_values.get(was.name))
                value = partitions.parse(text, was.arrow.type)
                self.constants[f.name] = value if was.type == f.type else value.cast(f.arrow.type)
            elif (name := in_file(was)) is not None:
                self.sources[f.name] = name

    def finish(self, batch: pa.RecordBatch | None, rows: Positions, positions: bool) -> pa.RecordBatch:
        arrays = []
        schema = self.schema
        for at, f in enumerate(self.fields):
            if f.name in self.constants:
                array = pa.repeat(self.constants[f.name], len(rows))
            elif f.name in self.sources and batch is not None:
                array = batch.column(self.sources[f.name])
                if f.name not in self.coded or array.type != _CODED:
                    array = to_logical(array, self.types[f.name], mapped=self.mapped)
            else:
                array = pa.nulls(len(rows), f.arrow.type)
            if f.name in self.coded:
                array = array if array.type == _CODED else array.dictionary_encode()
                schema = schema.set(at, schema.field(at).with_type(_CODED))
            arrays.append(array)
        if positions:
            arrays.append(pa.array(rows))
            schema = schema.append(pa.field(POSITION, pa.int64(), False))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([f.with_nullable(True) for f in schema]))


def _names_in_file(mode: str, file: pq.ParquetFile) -> Callable[[Field], str | None]:
    """What a file calls a column of its table, by the table's mode of column mapping; None if it lacks the column."""
    names = set(file.schema_arrow.names)
    if mode == "id":
        ids = {(f.metadata or {}).get(b"PARQUET:field_id"): f.name for f in file.schema_arrow}
        key = "delta.columnMapping.id"
        # The change feed's own column has no id.
        return lambda f: ids.get(str(f.metadata[key]).encode()) if key in f.metadata else f.name
    if mode != "none":
        return lambda f: f.physical_name if f.physical_name in names else None
    lower = {n.lower(): n for n in names}
    return lambda f: f.name if f.name in names else lower.get(f.name.lower())


def _row_groups(
    file: pq.ParquetFile,
    shape: _Shape,
    only: Positions | None,
    conjuncts: Sequence[Conjunct],
    within: tuple[int, int] | None,
) -> Iterator[tuple[int, pa.RecordBatch | int]]:
    """Pairs of a first position and a batch (or just its length, when no column of the file is asked for)."""
    names = list(shape.sources.values())
    start = 0
    for group in range(file.metadata.num_row_groups):
        meta = file.metadata.row_group(group)
        end = start + meta.num_rows
        here = None if only is None else _within(only, start, end)
        theirs = within is None or within[0] <= first_byte(meta) < within[1]
        if theirs and (here is None or len(here)) and may_match(meta, conjuncts, shape.sources):
            if not names:
                yield start, meta.num_rows
            else:
                at = start
                last = end if here is None else int(here[-1])
                rows = min(_BATCH_ROWS, last + 1 - start)  # what comes after the last one is not decoded
                for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=rows > _FEW_ROWS):
                    yield at, batch
                    at += batch.num_rows
                    if at > last:
                        break
        start = end


def first_byte(meta: Any) -> int:
    """Where a row group begins in its file, by its metadata."""
    column = meta.column(0)
    return int(column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset)


def _select(
    batch: pa.RecordBatch | int, start: int, deleted: Positions | None, only: Positions | None
) -> tuple[pa.RecordBatch | None, Positions] | None:
    """The rows of a batch that are wanted and alive, with their positions; None if there are none."""
    length = batch if isinstance(batch, int) else batch.num_rows
    gone = None if deleted is None else _within(deleted, start, start + length)
    if only is not None:
        rows = _within(only, start, start + length)
        if gone is not None and len(gone):
            rows = np.setdiff1d(rows, gone, assume_unique=True)
    else:
        rows = np.arange(start, start + length, dtype=np.int64)
        if gone is not None and len(gone):
            rows = np.delete(rows, gone - start)
    if not len(rows):
        return None
    if isinstance(batch, int):
        return None, rows
    if rows[-1] - rows[0] == len(rows) - 1:  # a stretch needs no copy
        return batch.slice(int(rows[0]) - start, len(rows)), rows
    return batch.take(pa.array(rows - start)), rows


def _within(sorted_positions: Positions, start: int, end: int) -> Positions:
    low, high = np.searchsorted(sorted_positions, (start, end))
    return sorted_positions[low:high]


def map_files(files: Sequence[T], work: Callable[[T], R]) -> Iterator[R]:
    """``work`` of each file, in order, a few at a time."""
    if len(files) <= 1:
        yield from map(work, files)
        return
    with ThreadPoolExecutor(thread_count(), thread_name_prefix="headwater-scan") as pool:
        waiting = []
        try:
            for file in files:
                waiting.append(pool.submit(work, file))
                if len(waiting) > 2 * thread_count():
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for task in waiting:
                task.cancel()


def scan(
    snapshot: Snapshot,
    columns: Sequence[str],
    files: Sequence[AddFile] | None = None,
    **options: Any,
) -> Iterator[pa.RecordBatch]:
    """The live rows of ``files`` (all, if not given), in the order of the files, read ahead by a few threads."""
    for _, batch in scan_files(snapshot, columns, files, **options):
        yield batch


def scan_files(
    snapshot: Snapshot,
    columns: Sequence[str],
    files: Sequence[AddFile] | None = None,
    **options: Any,
) -> Iterator[tuple[AddFile, pa.RecordBatch]]:
    """The same, each batch with the file that it is of."""
    files = list(snapshot.files.values()) if files is None else files
    if len(files) <= 1:
        for add in files:
            for batch in read_file(snapshot, add, columns, **options):
                yield add, batch
        return
    stop = threading.Event()
    with ThreadPoolExecutor(min(thread_count(), len(files)), thread_name_prefix="headwater-scan") as pool:
        queues: list[queue.Queue[Any]] = []

        def fill(add: AddFile, into: queue.Queue[Any]) -> None:
            try:
                for batch in read_file(snapshot, add, columns, **options):
                    _offer(into, (add, batch), stop)
                _offer(into, None, stop)
            except BaseException as e:  # noqa: BLE001  handed to the consumer, whatever it is
                _offer(into, e, stop)

        pending = iter(files)

        def start_next() -> None:
            if (add := next(pending, None)) is not None:
                into: queue.Queue[Any] = queue.Queue(maxsize=4)
                queues.append(into)
                pool.submit(fill, add, into)

        try:
            for _ in range(thread_count()):
                start_next()
            while queues:
                item = queues[0].get()
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    queues.pop(0)
                    start_next()
                else:
                    yield item
        finally:
            stop.set()


def _offer(into: queue.Queue[Any], item: Any, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            into.put(item, timeout=0.1)
            return
        except queue.Full:
            continue
