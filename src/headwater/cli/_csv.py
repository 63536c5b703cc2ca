"""Columns as CSV can hold them: plain types stay, the others become text, whole columns at a time where Arrow can.

See `_formats` for what each type becomes.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from headwater.query.rendering.values import JSON, spell

__all__ = ["csv_batch", "csv_schema"]

_ZEROS = r"(\.[0-9]*[1-9])0+$|\.0+$"


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """The schema that is written for ``schema``."""
    return pa.schema([(field.name, field.type if _is_plain(field.type) else pa.string()) for field in schema])


def csv_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a batch, for `csv_schema`."""
    return pa.RecordBatch.from_arrays([_column(column) for column in batch.columns], schema=schema)


def _is_plain(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_boolean(kind) or t.is_integer(kind) or t.is_string(kind) or t.is_large_string(kind) or t.is_date32(kind)
    )


def _column(column: pa.Array) -> pa.Array:
    kind, t = column.type, pa.types
    if _is_plain(kind):
        return column
    if t.is_timestamp(kind):
        # Without its zone a timestamp is the wall clock of UTC, which is what Z says.
        text = pc.strftime(column.cast(pa.timestamp(kind.unit)), format="%Y-%m-%dT%H:%M:%S")
        text = pc.replace_substring_regex(text, pattern=_ZEROS, replacement=r"\1")
        return pc.binary_join_element_wise(text, "Z", "") if kind.tz is not None else text
    if t.is_decimal(kind):
        text = column.cast(pa.string())
        if not pc.any(pc.match_substring(text, "E")).as_py():
            return text
    spelled = spell(column, JSON)
    nested = t.is_nested(kind)
    return pa.array(
        [
            None if v is None else json.dumps(v, ensure_ascii=False) if nested else v if isinstance(v, str) else repr(v)
            for v in spelled
        ],
        pa.string(),
    )
