"""Writing: the tasks write files where they are, and the driver commits what they say they wrote.

Into a table: rows are made to fit it and its constraints are checked in the tasks, exactly as the lake does for rows of
this process, and all files become visible in one commit. A task that is run again leaves the files of its other try
behind; since no commit names them, they are for vacuum to find.

Into a folder of files: ``part-<task>-<run>.parquet`` or ``.csv``, and ``_SUCCESS`` when all are there. A run that fails
takes its files along; one that overwrites removes the others last.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base import settings
from headwater.base.errors import ConstraintError, InputError, StorageError
from headwater.base.schema import Schema
from headwater.base.storage import Storage
from headwater.lake import data_files, partitions, write
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.catalog import is_table
from headwater.lake.conflicts import Proposal
from headwater.lake.conform import Rows
from headwater.lake.transaction import discard
from headwater.spark import blocks
from headwater.spark.figures import Figures
from headwater.sql.expressions import evaluate, parse_condition
from headwater.timeseries.running.pipes import Pipe
from headwater.timeseries.sources.enclosing import enclosing_table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PipeRows", "write_files"]

_PASSED_ON = ("parquet_compression", "row_group_rows", "target_file_bytes", "fsync")


def _settings() -> dict[str, Any]:
    return {k: v for k, v in asdict(settings.current()).items() if k in _PASSED_ON}


class PipeRows(write.Source):
    """The rows of a pipe, for the lake to write into a table."""

    def __init__(self, pipe: Pipe, figures: Figures | None = None) -> None:
        self.pipe, self.figures = pipe, figures
        self.schema = pipe.schema

    def write(
        self, storage: Storage, metadata: Metadata, checks: Mapping[str, str], where: str | None = None
    ) -> list[AddFile]:
        sink = _ToTable(storage, metadata, dict(checks), where, self.pipe.schema, _settings())
        found = blocks.results_of(self.pipe.frame, self.pipe.source, sink, "added string", self.figures)
        adds = [AddFile.from_json(json.loads(text)) for text in found["added"].to_pylist()]
        missing = [f.path for f in adds if storage.head(partitions.decode_path(f.path)) is None]
        if missing:  # executors elsewhere have disks of their own
            discard(storage, Proposal("WRITE", adds=adds))
            why = (
                f"{len(missing)} of {len(adds)} files that tasks wrote are not here; executors on other machines need "
                "a storage that all share"
            )
            raise StorageError.failed(storage.url, why)
        return adds


@dataclass(frozen=True, slots=True)
class _ToTable:
    storage: Storage
    metadata: Metadata
    checks: dict[str, str]
    where: str | None
    schema: pa.Schema
    chosen: dict[str, Any]

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        with settings.override(**self.chosen):
            rows = Rows(self.schema, (b for table in tables for b in self._within(table).to_batches()))
            fitted = write.fitted(rows, self.metadata.schema, self.checks, self.storage.url)
            adds = data_files.write_rows(self.storage, data_files.Layout(self.metadata), fitted.batches)
        texts = [json.dumps(f.to_action()["add"]) for f in adds]
        yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["added"])

    def _within(self, table: pa.Table) -> pa.Table:
        if self.where is not None and table.num_rows:
            met = evaluate(parse_condition(self.where, schema=table.schema), table).fill_null(False)
            outside = table.num_rows - (pc.sum(met).as_py() or 0)
            if outside:
                raise ConstraintError.outside(self.where, outside, self.storage.url)
        return table


def write_files(
    pipe: Pipe,
    storage: Storage,
    kind: Literal["parquet", "csv"],
    mode: str,
    figures: Figures | None = None,
) -> list[str]:
    """Write a pipe's rows as files of a folder; their names. ``figures`` are given what the tasks did."""
    table = storage.url if is_table(storage) else enclosing_table(storage.url, storage.options)
    if table is not None:
        expected = (
            f"a folder outside of Delta tables: write(name) puts rows into one, and the log of {table} would "
            "not know of files"
        )
        raise InputError.bad_argument("location", storage.url, expected)
    there = [e.path for e in storage.list("")]
    shown = [p for p in there if not p.startswith(("_", "."))]
    if shown and mode == "error":
        raise InputError.bad_argument("mode", mode, f"append or overwrite, since there are files in {storage.url}")
    if mode not in ("error", "append", "overwrite"):
        raise InputError.bad_argument("mode", mode, "error, append or overwrite")
    run = uuid.uuid4().hex
    try:
        sink = _ToFolder(storage, kind, run, pipe.schema, _settings())
        found = blocks.results_of(pipe.frame, pipe.source, sink, "file string", figures)
    except BaseException:
        _remove(storage, [e.path for e in storage.list("") if run in e.path])
        raise
    names = sorted(found["file"].to_pylist())
    storage.put("_SUCCESS", b"")
    written = set(names)
    _remove(storage, [e.path for e in storage.list("") if run in e.path and e.path not in written])
    if mode == "overwrite":
        _remove(storage, [p for p in shown if p not in written])
    return names


def _remove(storage: Storage, paths: Sequence[str]) -> None:
    for path in paths:
        storage.delete(path)


@dataclass(frozen=True, slots=True)
class _ToFolder:
    storage: Storage
    format: str
    run: str
    schema: pa.Schema
    chosen: dict[str, Any]

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        filled = (table for table in tables if table.num_rows)
        first = next(filled, None)
        # A task may run twice at once; each try has a name of its own.
        name = f"part-{blocks.task_number():05d}-{self.run}-{uuid.uuid4().hex[:8]}.{self.format}"
        if first is not None:
            schema = Schema.from_arrow(self.schema).arrow
            with (
                settings.override(**self.chosen),
                self.storage.open_output(name) as output,
                self._writer(output, schema) as to,
            ):
                for table in itertools.chain([first], filled):
                    to.write_table(table.cast(schema))
        yield pa.RecordBatch.from_arrays([pa.array([] if first is None else [name], pa.string())], names=["file"])

    def _writer(self, output: Any, schema: pa.Schema) -> Any:
        if self.format == "parquet":
            from pyarrow.parquet import ParquetWriter

            return ParquetWriter(output, schema, compression=settings.current().parquet_compression)
        from pyarrow.csv import CSVWriter

        return CSVWriter(output, schema)
