"""Conforming: making rows that a caller hands in fit a table, or saying exactly why they do not.

Columns are matched by name without case, as in Spark. A value may be stored in another type only if nothing of
it is lost (Spark's ANSI store assignment, and stricter: 1.5 is not an int), but for the last digits of a number that
becomes a shorter float. Nothing is guessed: a string is not parsed into a number, and extra columns are an error
unless the caller asked for them to be added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, SchemaError
from headwater.base.schema import Schema, delta_type, normalize_type, type_text

__all__ = ["Rows", "as_rows", "conform", "is_spark_frame", "new_fields", "plain_columns"]


class Rows:
    """Rows on their way in: a schema and batches, read once."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self.schema = schema
        self.batches = batches

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, self.schema)


def is_spark_frame(data: Any) -> bool:
    """Whether ``data`` is a Spark DataFrame (classic or Connect), without importing Spark."""
    return any(c.__module__.startswith("pyspark.sql") and c.__name__ == "DataFrame" for c in type(data).__mro__)


def as_rows(data: Any) -> Rows:
    """Rows from Arrow, pandas, polars, a list of dicts, or anything with an Arrow stream."""
    if isinstance(data, pa.Table):
        return Rows(data.schema, iter(data.to_batches()))
    if isinstance(data, pa.RecordBatch):
        return Rows(data.schema, iter([data]))
    if isinstance(data, pa.RecordBatchReader):
        return Rows(data.schema, iter(data))
    if type(data).__module__.startswith("pandas"):
        table = pa.Table.from_pandas(data, preserve_index=False).replace_schema_metadata(None)
        return Rows(table.schema, iter(table.to_batches()))
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return Rows(reader.schema, iter(reader))
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):  # a polars LazyFrame
        return as_rows(data.collect())
    if isinstance(data, list | tuple) and all(isinstance(r, dict) for r in data):
        names = list(dict.fromkeys(name for row in data for name in row))
        try:
            table = pa.table({n: [row.get(n) for row in data] for n in names})
        except (pa.ArrowException, OverflowError) as e:
            raise InputError.bad_rows(str(e).split("\n", 1)[0]) from e
        return Rows(table.schema, iter(table.to_batches()))
    if isinstance(data, dict):
        try:
            return as_rows(pa.table(data))
        except (pa.ArrowException, OverflowError, TypeError) as e:
            raise InputError.bad_rows(str(e).split("\n", 1)[0]) from e
    raise InputError.not_arrow(type(data).__name__)


def new_fields(incoming: pa.Schema, schema: Schema) -> list[pa.Field]:
    """Columns of ``incoming`` that the table lacks."""
    return [f for f in incoming if f.name not in schema]


def conform(rows: Rows, schema: Schema, *, where: str, optional: Sequence[str] = ()) -> Rows:
    """``rows`` with exactly the columns and types of ``schema``.

    ``optional`` columns (generated ones) may be left out and then stay out; others that are missing become null,
    or are an error where the table says NOT NULL.
    """
    _check_names(rows.schema, schema, where)
    by_lower = {f.name.lower(): f for f in rows.schema}
    missing = [f.name for f in schema.fields if not f.nullable and f.name.lower() not in by_lower]
    missing = [m for m in missing if m not in optional]
    if missing:
        raise SchemaError.missing_columns(missing, where)
    fields = [f for f in schema.fields if f.name.lower() in by_lower or f.name not in optional]
    for f in fields:
        if (have := by_lower.get(f.name.lower())) is not None:
            _check_castable(f.name, have.type, f.arrow.type, where)
    target = pa.schema([f.arrow.with_nullable(True) for f in fields])

    def convert() -> Iterator[pa.RecordBatch]:
        for batch in rows.batches:
            arrays = []
            for f in target:
                have = by_lower.get(f.name.lower())
                if have is None:
                    arrays.append(pa.nulls(batch.num_rows, f.type))
                else:
                    arrays.append(_cast(batch.column(have.name), f, where))
            yield pa.RecordBatch.from_arrays(arrays, schema=target)

    return Rows(target, convert())


def plain_columns(table: pa.Table, like: Schema, where: str) -> pa.Table:
    """``table`` in types that Delta stores; a column of nulls takes the type of its namesake in ``like``, or text."""
    columns = {}
    for f in table.schema:
        if not pa.types.is_null(f.type):
            kind = normalize_type(f.type)
        else:
            kind = like.field(f.name).arrow.type if f.name in like else pa.string()
        chunks = [_cast(chunk, pa.field(f.name, kind), where) for chunk in table[f.name].chunks]
        columns[f.name] = pa.chunked_array(chunks, kind)
    return pa.table(columns)


def _check_names(incoming: pa.Schema, schema: Schema, where: str) -> None:
    seen: set[str] = set()
    for f in incoming:
        if f.name.lower() in seen:
            raise SchemaError.duplicate_columns([f.name])
        seen.add(f.name.lower())
    extra = [f.name for f in new_fields(incoming, schema)]
    if extra:
        raise SchemaError.extra_columns(extra, schema.names, where)


def _check_castable(column: str, have: pa.DataType, want: pa.DataType, where: str) -> None:
    have = have if pa.types.is_null(have) else normalize_type(have)
    if not _may_hold(have, want):
        raise SchemaError.type_clash(column, type_text(delta_type(have)), type_text(delta_type(want)), where)


def _may_hold(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether values of ``have`` can be stored as ``want``, each one checked as it is."""
    t = pa.types
    if have == want or t.is_null(have):
        return True
    numeric = (t.is_integer(have) or t.is_floating(have) or t.is_decimal(have)) and (
        t.is_integer(want) or t.is_floating(want) or t.is_decimal(want)
    )
    if numeric or (t.is_timestamp(have) and t.is_timestamp(want)) or (t.is_date(have) and t.is_timestamp(want)):
        return True
    if t.is_struct(have) and t.is_struct(want):
        names = {f.name for f in want}
        return all(f.name in names for f in have) and all(
            have.get_field_index(f.name) < 0 or _may_hold(have.field(f.name).type, f.type) for f in want
        )
    if t.is_list(have) and t.is_list(want):
        return _may_hold(have.value_type, want.value_type)
    if t.is_map(have) and t.is_map(want):
        return _may_hold(have.key_type, want.key_type) and _may_hold(have.item_type, want.item_type)
    return False


def _cast(array: pa.Array, f: pa.Field, where: str) -> pa.Array:
    if array.type == f.type:
        return array
    try:
        if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(f.type):
            # A wall clock given for an instant (or the reverse) is UTC, the one session time zone.
            return pc.cast(pc.cast(array, pa.timestamp("us", array.type.tz), safe=False), f.type)
        if pa.types.is_dictionary(array.type):
            return pc.cast(array.dictionary, f.type).take(array.indices)
        if pa.types.is_integer(array.type) and pa.types.is_decimal(f.type):
            # Arrow asks for room for every int64; each value is looked at here instead.
            return pc.cast(pc.cast(array, pa.decimal256(20 + f.type.scale, f.type.scale)), f.type)
        cast = pc.cast(array, f.type)
        shorter = pa.types.is_float32(f.type) and pa.types.is_float64(array.type)
        if shorter and pc.any(pc.and_(pc.is_inf(cast), pc.invert(pc.is_inf(array)))).as_py():
            raise pa.ArrowInvalid("a number is too large")
        return cast
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        why = str(e).split("\n", 1)[0]
        raise SchemaError.value_out_of_range(f.name, type_text(delta_type(f.type)), why, where) from e
