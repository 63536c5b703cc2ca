"""Files that belong to no table: Parquet, CSV and lines of JSON, in a folder, one by one or by a pattern, on disk or on
S3.

Tasks read them with Arrow, Parquet by row groups, the others file by file. All files have the columns of `schema`: it
is given, or read from the first one, and a column that a file lacks is null there. Folders may name columns (`hive`).
In a CSV only a field with nothing in it is null: NA, null and nan are texts, or numbers, as in Spark. What is read with
Arrow is read the same in tasks and as a frame, so a number in a CSV does not depend on who reads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base.errors import InputError, NotFoundError
from headwater.base.schema import Schema
from headwater.base.storage import Entry, Storage, open_storage
from headwater.lake.scan import first_byte
from headwater.timeseries.sources.delta_reading import shaped
from headwater.timeseries.sources.hive import folder_columns, folder_values, with_values
from headwater.timeseries.sources.sampling import pieces_of, thinned
from headwater.timeseries.sources.sharing import IN_MEMORY, Span, shares_of
from headwater.timeseries.sources.source import Size, Source, Tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FileFormat", "FilesSource", "files_at"]

FileFormat = Literal["parquet", "csv", "json"]
_ENDINGS: dict[str, FileFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_PACKED = (".gz", ".bz2", ".zst", ".lz4")


@dataclass(frozen=True, eq=False)
class FilesSource(Source):
    """Rows of files with one schema."""

    storage: Storage
    files: tuple[Entry, ...]
    format: FileFormat
    whole: pa.Schema
    names: tuple[str, ...]
    delimiter: str = ","
    header: bool = True
    folders: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The columns that stand in the names of folders; `whole` has them too."""

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.whole.field(n) for n in self.names])

    @property
    def size(self) -> Size:
        size = sum(f.size for f in self.files)
        if self.format != "parquet":
            return Size(None, size)
        return Size(None, size * IN_MEMORY * len(self.names) // max(1, len(self.whole)))

    def line(self) -> str:
        what = {"parquet": "Parquet", "csv": "CSV", "json": "JSON"}[self.format]
        less = f", {len(self.names)} of {len(self.whole)} columns" if len(self.names) < len(self.whole) else ""
        return f"scan {len(self.files)} {what} files of {self.storage.url}{less}"

    def tasks(self) -> Tasks:
        found = shares_of(((f.path, f.size) for f in self.files), whole=self.format != "parquet")
        shares = tuple(tuple(share) for share in found)
        inside = pa.schema([f for f in self.whole if f.name not in self.folders.names or self.format == "parquet"])
        options = self.delimiter, self.header, self.folders
        return Tasks(len(shares), _Reading(self.storage, shares, self.format, self.schema, inside, *options))

    def spark(self, session: SparkSession) -> DataFrame:
        from headwater.lake.spark.types import spark_struct
        from headwater.spark import blocks

        tasks = self.tasks()
        frame, source = blocks.tasks_of(session, tasks.count, tasks.work)
        return blocks.rows_of(frame, source, self.schema, spark_struct(Schema.from_arrow(self.schema)))

    def narrowed(self, names: list[str]) -> FilesSource:
        return replace(self, names=tuple(n for n in self.names if n in names))

    @cached_property
    def _footers(self) -> tuple[int, int]:
        """The rows of a few files, as their footers say, and the bytes of these files."""
        chosen = list(dict.fromkeys(f for f, _ in pieces_of([(f, f.size) for f in self.files])))
        rows = 0
        for entry in chosen:
            try:
                with self.storage.open_input(entry.path) as handle:
                    rows += pq.ParquetFile(handle).metadata.num_rows
            except (pa.ArrowException, OSError) as error:
                raise InputError.unreadable_file(self.storage.location(entry.path), _why(error)) from error
        return rows, sum(entry.size for entry in chosen)

    def rows_about(self) -> int | None:
        if self.format != "parquet":
            return None
        rows, size = self._footers
        return rows * sum(f.size for f in self.files) // max(1, size)

    def sample(self, rows: int) -> pa.Table | None:
        if self.format != "parquet":
            return None
        read = self.tasks().work
        assert isinstance(read, _Reading)
        pieces = [read.file(f.path, span) for f, span in pieces_of([(f, f.size) for f in self.files])]
        return pa.concat_tables([self.schema.empty_table(), *thinned(pieces, rows, self.rows_about())])


@dataclass(frozen=True, slots=True)
class _Reading:
    storage: Storage
    shares: tuple[tuple[tuple[str, Span], ...], ...]
    format: FileFormat
    schema: pa.Schema
    whole: pa.Schema
    delimiter: str
    header: bool
    folders: pa.Schema

    def __call__(self, number: int) -> Iterator[pa.Table]:
        for path, within in self.shares[number]:
            yield from self.file(path, within)

    def file(self, path: str, within: Span) -> Iterator[pa.Table]:
        try:
            said = folder_values(path)
            for batch in _READERS[self.format](self, path, within):
                yield shaped(with_values(batch, said, self.folders) if len(self.folders) else batch, self.schema)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, NotFoundError):
                raise
            raise InputError.unreadable_file(self.storage.location(path), _why(error)) from error


def _why(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _parquet(reading: _Reading, path: str, within: Span) -> Iterator[pa.RecordBatch]:
    with reading.storage.open_input(path) as handle:
        file = pq.ParquetFile(handle, coerce_int96_timestamp_unit="us")
        known = set(file.schema_arrow.names) - set(reading.folders.names)
        names = [n for n in reading.schema.names if n in known]
        for group in range(file.metadata.num_row_groups):
            if within is not None and not within[0] <= first_byte(file.metadata.row_group(group)) < within[1]:
                continue
            if names:
                yield from file.iter_batches(131_072, row_groups=[group], columns=names)
            else:
                rows = file.metadata.row_group(group).num_rows
                yield pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])


def _csv(reading: _Reading, path: str, within: Span) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv

    assert within is None, "a text is read by one task"
    names = None if reading.header else reading.whole.names
    with reading.storage.open_input(path) as handle, _unpacked(handle, path) as text:
        yield from csv.open_csv(
            text,
            read_options=csv.ReadOptions(use_threads=False, column_names=names),
            parse_options=csv.ParseOptions(delimiter=reading.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=reading.whole,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_missing_columns=True,
            ),
        )


def _json(reading: _Reading, path: str, within: Span) -> Iterator[pa.RecordBatch]:
    from pyarrow import json

    assert within is None, "a text is read by one task"
    with reading.storage.open_input(path) as handle, _unpacked(handle, path) as text:
        options = json.ParseOptions(
            explicit_schema=reading.whole, newlines_in_values=False, unexpected_field_behavior="ignore"
        )
        yield from json.open_json(text, read_options=json.ReadOptions(use_threads=False), parse_options=options)


_READERS: dict[str, Callable[[_Reading, str, Span], Iterator[pa.RecordBatch]]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
}


def _unpacked(handle: Any, path: str) -> Any:
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}.get(path[path.rfind(".") :])
    return pa.CompressedInputStream(handle, codec) if codec else handle


def files_at(
    location: str,
    *,
    format: FileFormat | None = None,  # noqa: A002  (Spark's word for it)
    schema: pa.Schema | None = None,
    options: dict[str, str] | None = None,
    delimiter: str = ",",
    header: bool = True,
) -> FilesSource:
    """The files of a folder, of a pattern (``*`` and ``?`` in the last part) or one of them."""
    if not isinstance(delimiter, str) or len(delimiter.encode()) != 1:
        raise InputError.bad_argument("delimiter", delimiter, "one character, of ASCII")
    if not isinstance(header, bool):
        raise InputError.bad_argument("header", header, "True or False")
    folder, _, last = location.rstrip("/").rpartition("/")
    pattern = last if any(c in last for c in "*?[") else None
    one = None if pattern is not None else _one_file(folder, last, options)
    storage = open_storage(location.rstrip("/") if pattern is None and one is None else folder or ".", options)
    found = [one] if one is not None else [e for e in storage.list("") if _is_shown(e.path)]
    if pattern is not None:
        found = [e for e in found if fnmatchcase(e.path, pattern)]
    if not found:
        raise NotFoundError.files(location)
    known = {_format_of(e.path) for e in found} - {None}
    if format is None:
        if len(known) != 1:
            raise InputError.bad_argument("format", None, f"parquet, csv or json, for the files of {location}")
        (format,) = known  # noqa: A001
    assert format is not None
    if format not in _READERS:
        raise InputError.bad_argument("format", format, "parquet, csv or json")
    if len(known) > 1:
        found = [e for e in found if _format_of(e.path) == format]
        if not found:
            raise NotFoundError.files(location)
    found.sort(key=lambda e: e.path)
    whole = schema if schema is not None else _schema_of(storage, found[0].path, format, delimiter, header)
    folders = folder_columns([e.path for e in found], location)
    if schema is not None:
        folders = pa.schema([schema.field(f.name) if f.name in schema.names else f for f in folders])
    by_folder = {f.name: f for f in folders}
    inside = [by_folder.pop(f.name, f) for f in whole]
    whole = pa.schema([*inside, *by_folder.values()])
    canonical = pa.schema([f.with_nullable(True).remove_metadata() for f in Schema.from_arrow(whole).arrow])
    folders = pa.schema([canonical.field(name) for name in folders.names])
    return FilesSource(storage, tuple(found), format, canonical, tuple(canonical.names), delimiter, header, folders)


def _one_file(folder: str, name: str, options: dict[str, str] | None) -> Entry | None:
    if folder.endswith(":/"):  # a whole bucket
        return None
    beside = open_storage(folder or ".", options)
    local = beside.local_path(name)
    return None if local is not None and os.path.isdir(local) else beside.head(name)


def _is_shown(path: str) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.split("/"))


def _format_of(path: str) -> FileFormat | None:
    for packed in _PACKED:
        path = path.removesuffix(packed)
    return _ENDINGS.get(path[path.rfind(".") :].lower())


def _schema_of(storage: Storage, path: str, format: FileFormat, delimiter: str, header: bool) -> pa.Schema:  # noqa: A002
    with storage.open_input(path) as handle:
        if format == "parquet":
            return pq.ParquetFile(handle).schema_arrow
        with _unpacked(handle, path) as text:
            if format == "csv":
                from pyarrow import csv

                read = csv.ReadOptions(use_threads=False, autogenerate_column_names=not header)
                found = csv.open_csv(
                    text,
                    read_options=read,
                    parse_options=csv.ParseOptions(delimiter=delimiter),
                    convert_options=csv.ConvertOptions(null_values=[""]),
                ).schema
            else:
                from pyarrow import json

                found = json.open_json(text).schema
    # Times in texts are read to the second by default; a later file may be finer.
    return pa.schema(
        [pa.field(f.name, pa.timestamp("us", f.type.tz) if pa.types.is_timestamp(f.type) else f.type) for f in found]
    )
