"""Values in JSON: how each type of a table is written, and read back.

| type | in JSON |
|---|---|
| integers, booleans, strings | themselves |
| floats | numbers; what is no number is `"NaN"`, `"Infinity"` or `"-Infinity"` |
| decimals | strings with every digit |
| dates, timestamps | ISO 8601; a timestamp with a zone ends in `Z` |
| binary | base64 |
| lists | arrays of these |

Reading takes what writing makes. Columns of numbers without nulls are handed to orjson as numpy arrays, without a
Python object for each value.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import RequestError

__all__ = ["json_column", "json_list", "parse_values"]

_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_NUMPY = orjson.OPT_SERIALIZE_NUMPY
_SECONDS = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}


def json_column(column: pa.Array) -> Any:
    """The values of a column, as orjson takes them.

    >>> json_column(pa.array([1.5, float("nan"), None]))
    [1.5, 'NaN', None]
    >>> json_column(pa.array([b"ab"])), json_column(pa.array([0], pa.timestamp("ms", "UTC")))
    (['YWI='], ['1970-01-01T00:00:00.000Z'])
    """
    kind = column.type
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_integer(kind) and not column.null_count:
        return column.to_numpy()
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in column.to_pylist()]
    if pa.types.is_date(kind):
        return _moments(column, "D", "")
    if pa.types.is_timestamp(kind):
        return _moments(column, _SECONDS[kind.unit], "Z" if kind.tz else "")
    if pa.types.is_binary(kind):
        return [None if value is None else base64.b64encode(value).decode() for value in column.to_pylist()]
    if pa.types.is_list(kind):
        return _lists(column)
    return column.to_pylist()


def json_list(column: pa.Array) -> list[Any]:
    """The values of a column as a list of Python objects that JSON has."""
    values = json_column(column)
    if not isinstance(values, np.ndarray):
        return list(values)
    if values.dtype == np.float32:  # written as short as they are by column
        found: list[Any] = orjson.loads(orjson.dumps(np.ascontiguousarray(values), option=_NUMPY))
        return found
    return list(values.tolist())


def _floats(column: pa.Array) -> Any:
    if not column.null_count:
        values = column.to_numpy(zero_copy_only=False)
        if np.isfinite(values).all():
            return values if values.dtype != np.float16 else values.astype(np.float32)
    return [_float(value) for value in _shortest(column).to_pylist()]


def _shortest(column: pa.Array) -> pa.Array:
    """The column in a type whose Python values are written as short as those of numpy: 0.1 of 32 bits is not 0.1."""
    if pa.types.is_float64(column.type):
        return column
    numbers = column.cast(pa.float32()).fill_null(0).to_numpy(zero_copy_only=False)
    finite = np.isfinite(numbers)
    shortest = np.array(orjson.loads(orjson.dumps(np.where(finite, numbers, 0), option=_NUMPY)), np.float64)
    found = np.where(finite, shortest, numbers.astype(np.float64))
    return pa.array(found, mask=column.is_null().to_numpy(zero_copy_only=False))


def _float(value: float | None) -> Any:
    if value is None or -float("inf") < value < float("inf"):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _moments(column: pa.Array, unit: Any, zone: str) -> list[str] | list[str | None]:
    raw = column.cast(pa.int32() if unit == "D" else pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    texts: list[str] = np.datetime_as_string(raw.astype(np.int64).view(f"datetime64[{unit}]"), unit=unit).tolist()
    if not column.null_count:
        return [text + zone for text in texts] if zone else texts
    valid = column.is_valid().to_pylist()
    return [text + zone if there else None for text, there in zip(texts, valid, strict=True)]


def _lists(column: pa.Array) -> list[Any]:
    items = json_list(column.flatten())
    lengths = pc.list_value_length(column).to_pylist()
    found: list[Any] = []
    at = 0
    for length in lengths:
        if length is None:
            found.append(None)
        else:
            found.append(items[at : at + length])
            at += length
    return found


def parse_values(values: Sequence[Any], kind: pa.DataType, column: str) -> pa.Array:
    """Values of a JSON array as an Arrow array; an error for those that are none of the type.

    >>> parse_values(["2024-05-01", None], pa.date32(), "day").to_pylist()
    [datetime.date(2024, 5, 1), None]
    """
    try:
        return _parse(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, binascii.Error) as error:
        why = str(error).partition("\n")[0]
        raise RequestError.values(column, str(kind), why) from None


def _parse(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        if not all(value is None or isinstance(value, list) for value in values):
            raise TypeError("there is a value that is no array")
        items = _parse([item for value in values if value is not None for item in value], kind.value_type)
        ends = np.cumsum([0, *(len(value) if value is not None else 0 for value in values)]).astype(np.int32)
        nulls = [value is None for value in values]
        mask = pa.array(nulls) if any(nulls) else None
        return pa.ListArray.from_arrays(pa.array(ends), items, type=kind, mask=mask)
    if pa.types.is_boolean(kind):
        _require(values, bool, "true or false")
        return pa.array(values, kind)
    if pa.types.is_integer(kind):
        _require(values, int, "a whole number")
        return pa.array(values, kind)
    if pa.types.is_floating(kind):
        numbers = [_WORDS.get(value, value) if isinstance(value, str) else value for value in values]
        _require(numbers, (int, float), "a number")
        return pa.array(numbers, pa.float64()).cast(kind, safe=False)
    if pa.types.is_binary(kind):
        _require(values, str, "base64")
        return pa.array([None if v is None else base64.b64decode(v, validate=True) for v in values], kind)
    if pa.types.is_string(kind):
        _require(values, str, "a string")
        return pa.array(values, kind)
    # Decimals, dates and timestamps are strings.
    if pa.types.is_decimal(kind):
        values = [str(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]
    _require(values, str, "a string")
    return pa.array(values, pa.string()).cast(kind)


def _require(values: Sequence[Any], kind: type | tuple[type, ...], what: str) -> None:
    wants_bool = kind is bool
    for value in values:
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool) is not wants_bool):
            raise TypeError(f"there is a value that is not {what}")
