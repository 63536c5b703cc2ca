"""Columns as 64-bit words that sort as their values do, and back.

Whole numbers, dates, times and decimals of up to 18 digits are their own number. A float is its bits as a double, those
below zero with all bits but the sign turned over; -0.0 becomes 0.0. Null and NaN are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import UnsupportedError

__all__ = ["check_words", "from_words", "has_words", "is_number", "to_words"]

Words = npt.NDArray[np.int64]

_ALL_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def is_number(kind: pa.DataType) -> bool:
    """Whether it is a type of numbers that has words."""
    t = pa.types
    small = t.is_integer(kind) and not t.is_uint64(kind)
    return bool(small or t.is_floating(kind) or (t.is_decimal128(kind) and kind.precision <= 18))


def has_words(kind: pa.DataType) -> bool:
    """Whether values of a type have words.

    >>> has_words(pa.timestamp("us")), has_words(pa.string())
    (True, False)
    """
    t = pa.types
    return is_number(kind) or bool(t.is_date(kind) or t.is_timestamp(kind) or t.is_duration(kind) or t.is_time(kind))


def check_words(field: pa.Field) -> None:
    """Refuse a column whose values have none."""
    if not has_words(field.type):
        hint = "numbers, dates and times have quantiles; cast wide decimals and unsigned numbers to double"
        raise UnsupportedError.column_type(field.name, str(field.type), hint)


def to_words(column: pa.ChunkedArray) -> Words:
    """The words of the values that are there.

    >>> to_words(pa.chunked_array([[2, None, -1]])).tolist()
    [2, -1]
    """
    kind = column.type
    if column.null_count:
        column = column.drop_null()
    if pa.types.is_floating(kind):
        values = np.asarray(column.cast(pa.float64()))
        missing = np.isnan(values)
        if missing.any():
            values = values[~missing]
        bits = (values + 0.0).view(np.int64)
        return bits ^ ((bits >> 63) & _ALL_BUT_SIGN)
    if pa.types.is_decimal(kind):
        return np.concatenate([np.empty(0, np.int64), *map(_unscaled, column.chunks)])
    if not pa.types.is_integer(kind):
        narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
        column = column.cast(pa.int32() if narrow else pa.int64())
    return np.asarray(column).astype(np.int64, copy=False)


def from_words(words: Words, kind: pa.DataType) -> pa.Array:
    """The values of words.

    >>> from_words(to_words(pa.chunked_array([[-1.5, 2.0]])), pa.float64()).to_pylist()
    [-1.5, 2.0]
    """
    if pa.types.is_floating(kind):
        return pa.array((words ^ ((words >> 63) & _ALL_BUT_SIGN)).view(np.float64)).cast(kind)
    if pa.types.is_decimal(kind):
        pairs = np.stack([words, words >> 63], axis=1)
        return pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(np.ascontiguousarray(pairs))])
    numbers = pa.array(words)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        numbers = pc.cast(numbers, pa.int32())
    return numbers.cast(kind)


def _unscaled(chunk: pa.Array) -> Words:
    if not len(chunk):
        return np.empty(0, np.int64)
    pairs = np.frombuffer(chunk.buffers()[1], np.int64).reshape(-1, 2)
    return pairs[chunk.offset : chunk.offset + len(chunk), 0].copy()
