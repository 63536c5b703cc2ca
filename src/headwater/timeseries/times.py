"""Times as numbers: what all arithmetic of time in this room is done on.

A time is a 64-bit whole number in the unit in which lengths are measured (`headwater.base.spans.span`): microseconds of
a timestamp, with and without a zone, days of a date, and whole numbers as they are. No time is 0, with a flag beside
it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import UnsupportedError

__all__ = ["moved", "time_field", "time_numbers"]

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def time_numbers(column: pa.ChunkedArray) -> tuple[Numbers, Flags | None]:
    """Times as numbers in the unit of lengths (`headwater.base.spans.span`), and which are there (None: all).

    >>> time_numbers(pa.chunked_array([pa.array([0, None, 1], pa.timestamp("ms"))]))[0].tolist()
    [0, 0, 1000]
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)) if kind.unit != "us" else column
        column = column.cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    valid = np.asarray(pc.is_valid(column)) if column.null_count else None
    numbers = (column.fill_null(0) if column.null_count else column).to_numpy()
    return numbers.astype(np.int64, copy=False), valid


def time_field(schema: pa.Schema, name: str) -> pa.Field:
    """A time column whose distances can be measured.

    >>> time_field(pa.schema([("t", pa.date32())]), "t").type
    DataType(date32[day])
    """
    field = schema.field(name)
    kind = field.type
    finer = pa.types.is_timestamp(kind) and kind.unit == "ns"
    known = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind)
    if finer or not known or kind == pa.uint64():
        hint = "times are timestamps of microseconds, dates or whole numbers of at most 63 bits: cast it first"
        raise UnsupportedError.column_type(name, str(kind), hint)
    return field


def moved(times: Numbers, by: int) -> Numbers:
    """Times so much later, or earlier, as far as there are times."""
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return np.minimum(times, high - by) + by if by >= 0 else np.maximum(times, low - by) + by
