"""Whatever a stream can be made of, as a source.

A folder with a Delta log is a Delta table, however it is named: its files alone would also give rows that were
overwritten or deleted. A part of one is refused for the same reason. What is said of a source that has no use for it is
refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.schema import Schema
from headwater.base.storage import open_storage
from headwater.lake.conform import as_rows, is_spark_frame
from headwater.lake.readable import ReadableTable
from headwater.timeseries.node import Node
from headwater.timeseries.operators.values import Values
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.sources.enclosing import enclosing_table, filter_for, has_log
from headwater.timeseries.sources.files import FileFormat, files_at
from headwater.timeseries.sources.frames import FrameSource
from headwater.timeseries.sources.iceberg import IcebergSource

if TYPE_CHECKING:
    from headwater.lake.port import OpenLake

__all__ = ["source_of"]

_FILE_OPTIONS = ("delimiter", "header")


def source_of(
    lake: OpenLake,
    source: Any,
    *,
    format: FileFormat | None = None,  # noqa: A002  (Spark's word for it)
    schema: pa.Schema | None = None,
    version: int | None = None,
    **options: Any,
) -> Node:
    """The beginning of a plan over this source."""
    unknown = [name for name in options if name not in _FILE_OPTIONS]
    if unknown:
        raise InputError.bad_argument(unknown[0], options[unknown[0]], f"one of {', '.join(_FILE_OPTIONS)}")
    if isinstance(source, Path) or (isinstance(source, str) and (format is not None or _is_location(source))):
        text = str(source)
        given = dict(lake.catalog.root.options or {}) if "://" in text else {}
        table = _table_at(text, given or None)
        if table is None:
            _refuse({"version": version}, f"none: {text} are files, which have no versions")
            return files_at(text, format=format, schema=schema, options=given or None, **options)
        source = table
    elif isinstance(source, str):
        source = lake.table(source)
    what = "a Delta table" if isinstance(source, ReadableTable) else f"a {type(source).__name__}"
    _refuse({"format": format, "schema": schema, **options}, f"none: it is for files, and this is {what}")
    if isinstance(source, ReadableTable):
        return DeltaSource.of(source if version is None else source.at(version=version))
    if _is_iceberg(source):
        return IcebergSource.of(source, version)
    _refuse({"version": version}, f"none: {what} has no versions")
    if is_spark_frame(source):
        return FrameSource(source)
    rows = as_rows(source)
    table_of = pa.Table.from_batches(rows.batches, rows.schema)
    return Values(table_of.cast(_canonical(rows.schema)))


def _refuse(given: dict[str, Any], expected: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError.bad_argument(name, value, expected)


def _table_at(location: str, options: dict[str, str] | None) -> ReadableTable | None:
    """The Delta table whose folder this is; None if no log lies there. A part of one is refused."""
    last = location.rstrip("/").rpartition("/")[2]
    if not any(c in last for c in "*?["):
        storage = open_storage(location.rstrip("/") or "/", options)
        if has_log(storage):
            return ReadableTable(storage, "")
    table = enclosing_table(location, options)
    if table is not None:
        chosen = filter_for(location, table)
        kept = "" if chosen is None else f', and filter("{chosen}") for this part of it'
        expected = (
            f"the folder itself, {table}: it is a Delta table, and some of its files may hold rows that are gone{kept}"
        )
        raise InputError.bad_argument("source", location, expected)
    return None


def _is_location(text: str) -> bool:
    return "://" in text or "/" in text or any(c in text for c in "*?")


def _is_iceberg(source: Any) -> bool:
    return any(c.__module__ == "pyiceberg.table" and c.__name__ == "Table" for c in type(source).__mro__)


def _canonical(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_nullable(True).remove_metadata() for f in Schema.from_arrow(schema).arrow])
