"""Columns that are in the names of folders: ``day=2024-01-31/part-0.parquet``, as Hive and Spark write them.

A value is text; the texts of a column decide its type, as in Spark: whole numbers, numbers, dates, times (in UTC), else
text. Such a column comes after those of the files, and one that the files have too is read from the folders.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.lake import partitions

__all__ = ["folder_columns", "folder_values", "with_values"]

_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?")
_DIGITS = 38


def folder_values(path: str) -> dict[str, str | None]:
    """What the folders of a path say.

    >>> folder_values("d=2024-01-31/k=a%20b/x.parquet")
    {'d': '2024-01-31', 'k': 'a b'}
    """
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        name, equals, text = folder.partition("=")
        if name and equals:
            found[unquote(name)] = None if text == _NULL else unquote(text)
    return found


def folder_columns(paths: Iterable[str], location: str) -> pa.Schema:
    """The columns that the folders of all files have, with the types of their texts."""
    values = [folder_values(path) for path in paths]
    names = list(values[0])
    for other in values:
        if list(other) != names:
            both = f"{location}, where some files lie in folders of {names} and others of {list(other)}"
            raise InputError.bad_argument("source", both, "folders that all name the same columns")
    return pa.schema([(name, _type([v for found in values if (v := found[name]) is not None])) for name in names])


def with_values(batch: pa.RecordBatch, values: Mapping[str, str | None], columns: pa.Schema) -> pa.RecordBatch:
    """A batch with the values that its folder says."""
    arrays = {n: c for n, c in zip(batch.schema.names, batch.columns, strict=True) if n not in columns.names}
    for field in columns:
        arrays[field.name] = pa.repeat(partitions.parse(values[field.name], field.type), batch.num_rows)
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _type(texts: list[str]) -> pa.DataType:
    if texts and all(_WHOLE.fullmatch(t) for t in texts):
        largest = max(abs(int(t)) for t in texts)
        if largest < 1 << 63:
            return pa.int32() if largest < 1 << 31 else pa.int64()
        return pa.decimal128(_DIGITS, 0) if len(str(largest)) <= _DIGITS else pa.string()
    if texts and all(_NUMBER.fullmatch(t) for t in texts):
        return pa.float64()
    if texts and all(_is_time(t) for t in texts):
        return pa.date32() if all(_DAY.fullmatch(t) for t in texts) else pa.timestamp("us", "UTC")
    return pa.string()


def _is_time(text: str) -> bool:
    if not _DAY.fullmatch(text) and not _MOMENT.fullmatch(text):
        return False
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
