"""Whatever a stream can be made of, as a source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.schema import Schema
from headwater.lake.conform import as_rows, is_spark_frame
from headwater.lake.readable import ReadableTable
from headwater.timeseries.node import Node
from headwater.timeseries.operators.values import Values
from headwater.timeseries.sources.delta import DeltaSource
from headwater.timeseries.sources.files import FileFormat, files_at
from headwater.timeseries.sources.frames import FrameSource
from headwater.timeseries.sources.iceberg import IcebergSource

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["source_of"]

_FILE_OPTIONS = ("delimiter", "header")


def source_of(
    lake: Lake,
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
        given = lake.catalog.root.options if "://" in text else None
        return files_at(text, format=format, schema=schema, options=dict(given) if given else None, **options)
    if isinstance(source, str):
        source = lake.table(source)
    if isinstance(source, ReadableTable):
        return DeltaSource.of(source if version is None else source.at(version=version))
    if is_spark_frame(source):
        return FrameSource(source)
    if _is_iceberg(source):
        return IcebergSource.of(source, version)
    rows = as_rows(source)
    table = pa.Table.from_batches(rows.batches, rows.schema)
    return Values(table.cast(_canonical(rows.schema)))


def _is_location(text: str) -> bool:
    return "://" in text or "/" in text or any(c in text for c in "*?")


def _is_iceberg(source: Any) -> bool:
    return any(c.__module__ == "pyiceberg.table" and c.__name__ == "Table" for c in type(source).__mro__)


def _canonical(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_nullable(True).remove_metadata() for f in Schema.from_arrow(schema).arrow])
