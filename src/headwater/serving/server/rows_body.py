"""Rows and keys in the bodies of writes: JSON, Arrow or Parquet, as a table of declared columns.

JSON is an array of objects, ``{"rows": [...]}``, or ``{"columns": {name: [...]}}``. Whatever the form, the number of
rows and their size in memory are bounded before they are taken apart: a Parquet file of some bytes can stand for
gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from headwater.base.errors import InputError, LimitError, NotFoundError, RequestError
from headwater.serving.frame_reading import read_batches
from headwater.serving.server.json_values import parse_values
from headwater.serving.server.media import Form
from headwater.serving.server.options import Limits

__all__ = ["ROW_FORMS", "read_deleted", "read_rows"]

ROW_FORMS: tuple[Form, ...] = ("json", "arrow", "parquet")
_CHUNK_ROWS = 16_384


def read_rows(form: Form, body: bytes, schema: pa.Schema, limits: Limits, *, ignore_others: bool = False) -> pa.Table:
    """The rows of a body, with the columns of ``schema`` in their order; those that are left out are null.

    ``ignore_others``: columns that the table does not have are ignored, instead of refused.
    """
    if form == "json":
        return _columns_table(_json_columns(body, schema, limits, ignore_others=ignore_others), schema)
    given = _arrow(body, limits) if form == "arrow" else _parquet(body, limits)
    _check_columns(() if ignore_others else given.schema.names, schema)
    return _fitted(given, schema)


def read_deleted(form: Form, body: bytes, key: Sequence[str], schema: pa.Schema, limits: Limits) -> pa.Table:
    """The keys of a body, as a table of the key's columns."""
    wanted = pa.schema([schema.field(name) for name in key])
    if form == "json":
        document = _loaded(body)
        if not isinstance(document, dict) or set(document) != {"keys"}:
            raise RequestError.keys_missing(key)
        return _columns_table(_key_columns(document["keys"], key, limits), wanted)
    given = _arrow(body, limits) if form == "arrow" else _parquet(body, limits)
    if len(key) == 1 and given.num_columns == 1:
        given = given.rename_columns(list(key))
    missing = [name for name in key if name not in given.schema.names]
    if missing:
        raise RequestError.bad_body(form, f"it lacks the key columns {', '.join(missing)}")
    return _fitted(given.select(list(key)), wanted)


# -- JSON ------------------------------------------------------------------------------------------------------------


def _loaded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError.bad_body("JSON", str(error)) from None


def _json_columns(body: bytes, schema: pa.Schema, limits: Limits, *, ignore_others: bool) -> dict[str, list[Any]]:
    document = _loaded(body)
    if isinstance(document, dict) and set(document) == {"rows"}:
        document = document["rows"]
    if isinstance(document, dict) and set(document) == {"columns"}:
        columns = document["columns"]
        if not isinstance(columns, dict) or not all(isinstance(column, list) for column in columns.values()):
            raise RequestError.bad_body("JSON", "`columns` is no object of arrays")
        _check_columns(() if ignore_others else columns, schema)
        _check_lengths(columns, limits)
        return columns
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise RequestError.bad_body("JSON", "rows are an array of objects")
    if len(document) > limits.max_keys:
        raise LimitError.keys(len(document), limits.max_keys)
    names = dict.fromkeys(name for row in document for name in row)
    _check_columns(() if ignore_others else names, schema)
    return {name: [row.get(name) for row in document] for name in schema.names}


def _check_columns(names: Any, schema: pa.Schema) -> None:
    for name in names:
        if name not in schema.names:
            raise NotFoundError.column(name, schema.names)


def _check_lengths(columns: dict[str, list[Any]], limits: Limits) -> None:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise RequestError.bad_body("JSON", "the columns have different lengths")
    if lengths and max(lengths) > limits.max_keys:
        raise LimitError.keys(max(lengths), limits.max_keys)


def _key_columns(keys: Any, key: Sequence[str], limits: Limits) -> dict[str, list[Any]]:
    if isinstance(keys, dict) and all(isinstance(column, list) for column in keys.values()):
        if set(keys) != set(key):
            raise RequestError.keys_missing(key)
        _check_lengths(keys, limits)
        return keys
    if not isinstance(keys, list):
        raise RequestError.bad_body("JSON", "`keys` is neither an array nor an object of arrays")
    if len(keys) > limits.max_keys:
        raise LimitError.keys(len(keys), limits.max_keys)
    if len(key) == 1:
        return {key[0]: keys}
    if not all(isinstance(row, list) and len(row) == len(key) for row in keys):
        raise RequestError.bad_body("JSON", f"each key is an array of {len(key)} values: {', '.join(key)}")
    return {name: [row[place] for row in keys] for place, name in enumerate(key)}


def _columns_table(columns: dict[str, list[Any]], schema: pa.Schema) -> pa.Table:
    rows = max((len(column) for column in columns.values()), default=0)
    arrays = []
    for field in schema:
        column = columns.get(field.name)
        arrays.append(pa.nulls(rows, field.type) if column is None else parse_values(column, field.type, field.name))
    return _without_nulls(pa.Table.from_arrays(arrays, names=schema.names), schema)


# -- Arrow and Parquet -------------------------------------------------------------------------------------------------


def _arrow(body: bytes, limits: Limits) -> pa.Table:
    batch = read_batches(body)
    if batch.num_rows > limits.max_keys:
        raise LimitError.keys(batch.num_rows, limits.max_keys)
    return pa.Table.from_batches([batch])


def _parquet(body: bytes, limits: Limits) -> pa.Table:
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(body), page_checksum_verification=False)
        about = file.metadata
        if about.num_rows > limits.max_keys:
            raise LimitError.keys(about.num_rows, limits.max_keys)
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > limits.max_body_bytes:
            raise LimitError.unpacked(limits.max_body_bytes)
        batches, size = [], 0
        for batch in file.iter_batches(batch_size=_CHUNK_ROWS, use_threads=False):
            batch.validate(full=True)
            size += batch.nbytes
            if size > limits.max_body_bytes:
                raise LimitError.unpacked(limits.max_body_bytes)
            batches.append(batch)
        return pa.Table.from_batches(batches, file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise RequestError.bad_body("Parquet", str(error)) from None


def _fitted(given: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the types of a schema, cast where nothing is lost."""
    arrays = []
    for field in schema:
        if field.name not in given.schema.names:
            arrays.append(pa.chunked_array([pa.nulls(given.num_rows, field.type)]))
            continue
        if given.schema.names.count(field.name) > 1:
            raise RequestError.bad_body("Arrow", f"the column `{field.name}` is there twice")
        column = given.column(field.name)
        if column.null_count == len(column):  # nothing but nulls is of any type
            arrays.append(pa.chunked_array([pa.nulls(len(column), field.type)]))
            continue
        try:
            arrays.append(column if column.type == field.type else column.cast(field.type, safe=True))
        except (pa.ArrowException, ValueError) as error:
            why = str(error).partition("\n")[0]
            raise RequestError.values(field.name, str(field.type), why) from None
    return _without_nulls(pa.Table.from_arrays(arrays, names=schema.names), schema)


def _without_nulls(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if not field.nullable and table.column(field.name).null_count:
            raise RequestError.values(field.name, str(field.type), "there is a null")
    return table
