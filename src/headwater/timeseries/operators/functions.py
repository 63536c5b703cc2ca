"""Python functions of users on batches of rows: what they are given, and what is made of what they return.

A function gets a batch as an Arrow table, or as a polars or pandas frame if it was said so, and may return any of them, or a dict of
arrays. What it returns has to have the columns that were announced; types are converted where nothing is lost, and anything else is a
typed error which names the function. Functions travel to tasks, so they should be defined where they can be pickled from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import pyarrow as pa

from headwater.base.change import as_table
from headwater.base.errors import InputError, SchemaError

__all__ = ["Batch", "Function", "as_batch", "as_column", "as_result", "check_batch", "name_of"]

Batch = Literal["arrow", "polars", "pandas"]
Function = Callable[..., Any]


def check_batch(batch: str) -> None:
    """Refuse a kind of batch that is none."""
    if batch not in get_args(Batch):
        raise InputError.bad_argument("batch", batch, "one of 'arrow', 'polars' and 'pandas'")


def name_of(function: Function) -> str:
    """What to call a function in messages.

    >>> name_of(len)
    'len'
    """
    return str(getattr(function, "__name__", type(function).__name__))


def as_batch(table: pa.Table, batch: str) -> Any:
    """The rows as the function wants them."""
    if batch == "polars":
        import polars

        return polars.from_arrow(table)
    return table.to_pandas() if batch == "pandas" else table


def as_result(found: Any, schema: pa.Schema, function: Function) -> pa.Table:
    """What a function returned, as rows of the schema that was announced.

    >>> as_result({"v": [1]}, pa.schema([("v", pa.int16())]), len).schema.field("v").type
    DataType(int16)
    """
    table = as_table(found)
    missing = [name for name in schema.names if name not in table.schema.names]
    if missing or table.num_columns != len(schema):
        have = ", ".join(table.schema.names) or "no columns"
        expected = f"the columns that were announced: {', '.join(schema.names)}"
        raise InputError.bad_argument(f"result of {name_of(function)}()", have, expected)
    columns = [as_column(table.column(f.name), f, function) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def as_column(found: Any, field: pa.Field, function: Function) -> pa.ChunkedArray:
    """A column that a function returned, in the type that was announced.

    >>> as_column([1, None], pa.field("v", pa.float32()), len).to_pylist()
    [1.0, None]
    """
    column = _arrow(found)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        where = f"what {name_of(function)}() returned"
        raise SchemaError.type_clash(field.name, str(column.type), str(field.type), where) from error


def _arrow(found: Any) -> pa.ChunkedArray:
    if isinstance(found, pa.ChunkedArray):
        return found
    if hasattr(found, "to_arrow"):
        found = found.to_arrow()
    array = pa.array(found)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
