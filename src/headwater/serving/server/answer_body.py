"""Answers in JSON and Parquet, from the record batch that a fetch gives.

JSON lies by column, ``{"columns": {name: [...]}, "found": [...], "frontier": ..., "version": ...}``, or by row,
``{"rows": [{name: value, "_found": true}], ...}``. What an answer says beside the columns of the table (`_found`,
`_status`, `_event_time`, `_idx`) stands beside them by column, under those names without the underscore, and in each
object by row.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa

from headwater.serving.server.json_values import json_column, json_list

__all__ = ["BESIDE", "column_document", "parquet_bytes", "row_document"]

BESIDE = ("_found", "_status", "_event_time", "_idx")
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def column_document(batch: pa.RecordBatch, facts: Mapping[str, Any]) -> bytes:
    """An answer as JSON, by column."""
    columns: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in BESIDE:
            beside[name[1:]] = json_column(column)
        else:
            columns[name] = json_column(column)
    return orjson.dumps({"columns": columns, **beside, **facts}, option=_OPTIONS)


def row_document(batch: pa.RecordBatch, facts: Mapping[str, Any]) -> bytes:
    """An answer as JSON, by row."""
    names = batch.schema.names
    values = [json_list(column) for column in batch.columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return orjson.dumps({"rows": rows, **facts}, option=_OPTIONS)


def parquet_bytes(batch: pa.RecordBatch) -> bytes:
    """An answer as a Parquet file."""
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_batches([batch]), sink, compression="zstd")
    return sink.getvalue()
