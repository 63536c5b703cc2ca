"""Python functions of users on batches of rows: what they are given, and what is made of what they return.

A function gets a batch as an Arrow table, or as a polars or pandas frame if it was said so, and may return any of them,
or a dict of arrays. What it returns has to have the columns that were announced; types are converted where nothing is
lost, and anything else is a typed error which names the function. An exception of the function itself is told with its
own lines only. Functions travel to tasks, so they should be defined where they can be pickled from.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, get_args

import pyarrow as pa

from headwater.base.change import as_table
from headwater.base.errors import HeadwaterError, InputError, SchemaError
from headwater.base.packages import required

__all__ = [
    "Batch",
    "Function",
    "as_batch",
    "as_column",
    "as_result",
    "called",
    "check_batch",
    "check_function",
    "name_of",
]

Batch = Literal["arrow", "polars", "pandas"]
Function = Callable[..., Any]
_PACKAGE = str(Path(__file__).parents[2]) + os.sep
_LINES = 8


def check_batch(batch: str) -> None:
    """Refuse a kind of batch that is none."""
    if batch not in get_args(Batch):
        raise InputError.bad_argument("batch", batch, "one of 'arrow', 'polars' and 'pandas'")


def check_function(function: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(function):
        raise InputError.bad_argument("function", function, "a function that takes a batch of rows")


@contextmanager
def called(operator: str) -> Iterator[None]:
    """Around a call of a user's function, which is named: what it raises is told as a typed error.

    >>> with called("transform with shares()"):  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     1 / 0
    Traceback (most recent call last):
    headwater.base.errors.InputError: error[E1023]: transform with shares() raised ZeroDivisionError: division by zero
    """
    try:
        yield
    except HeadwaterError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InputError.function_raised(operator, said, _own_lines(error.__traceback__)) from error


def _own_lines(trace: TracebackType | None) -> str:
    """Where it was raised, from the user's function on."""
    lines = traceback.extract_tb(trace)
    first = next((n for n, line in enumerate(lines) if not line.filename.startswith(_PACKAGE)), len(lines))
    shown = [f"{os.path.basename(f.filename)}:{f.lineno} in {f.name}: {f.line}".rstrip(": ") for f in lines[first:]]
    return "\n         ".join(shown[:_LINES])


def name_of(function: Function) -> str:
    """What to call a function in messages.

    >>> name_of(len)
    'len'
    """
    return str(getattr(function, "__name__", type(function).__name__))


def as_batch(table: pa.Table, batch: str) -> Any:
    """The rows as the function wants them."""
    if batch == "polars":
        return required("polars", 'batch="polars"', "spark").from_arrow(table)
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
