"""Spark's two types of intervals: of days to seconds, counted in microseconds, and of years to months, counted in
months.

A type also says its first and its last unit (``interval day to hour``). Values do not depend on that, but casts do: an
interval becomes a number of its last unit, and a text of all of them. Arrow has no such types, so these are extensions
of whole numbers, and they live only while a query is read: `lowering` leaves the whole numbers.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = [
    "DAY",
    "DAY_TO_SECOND",
    "DAY_UNITS",
    "MONTH_UNITS",
    "YEAR_TO_MONTH",
    "IntervalType",
    "has_interval",
    "interval_named",
    "is_interval",
    "storage_of",
    "wider_interval",
]

DAY_UNITS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
"""Microseconds."""
MONTH_UNITS = {"year": 12, "month": 1}


class IntervalType(pa.ExtensionType):  # type: ignore[misc, unused-ignore]
    """An interval from its ``first`` to its ``last`` unit.

    >>> IntervalType("day", "hour").name, IntervalType("year", "year").storage_type
    ('interval day to hour', DataType(int32))
    """

    def __init__(self, first: str, last: str) -> None:
        self.first, self.last = first, last
        self.name = f"interval {first}" if first == last else f"interval {first} to {last}"
        super().__init__(pa.int64() if first in DAY_UNITS else pa.int32(), f"headwater.{self.name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntervalType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __arrow_ext_serialize__(self) -> bytes:
        return self.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> IntervalType:
        return interval_named(serialized.decode())

    @property
    def of_days(self) -> bool:
        """Is it counted in microseconds, and not in months?"""
        return self.first in DAY_UNITS

    @property
    def units(self) -> tuple[str, ...]:
        """The units from the first to the last."""
        names = tuple(DAY_UNITS if self.of_days else MONTH_UNITS)
        return names[names.index(self.first) : names.index(self.last) + 1]

    @property
    def unit(self) -> int:
        """The length of the last unit, in microseconds or months."""
        return (DAY_UNITS if self.of_days else MONTH_UNITS)[self.last]


def interval_named(name: str) -> IntervalType:
    """The type that Spark calls by a name.

    >>> interval_named("interval day to second") == DAY_TO_SECOND
    True
    """
    first, _, last = name.removeprefix("interval ").partition(" to ")
    return IntervalType(first, last or first)


DAY, DAY_TO_SECOND, YEAR_TO_MONTH = (
    IntervalType("day", "day"),
    IntervalType("day", "second"),
    IntervalType("year", "month"),
)


def is_interval(dtype: pa.DataType) -> bool:
    """Is it one of Spark's intervals?"""
    return isinstance(dtype, IntervalType)


def has_interval(dtype: pa.DataType) -> bool:
    """Is the type, or a part of it, an interval?

    >>> has_interval(pa.list_(DAY)), has_interval(pa.int64())
    (True, False)
    """
    if pa.types.is_nested(dtype):
        return any(has_interval(dtype.field(i).type) for i in range(dtype.num_fields))
    return is_interval(dtype)


def wider_interval(a: IntervalType, b: IntervalType) -> IntervalType | None:
    """The type from the first unit of both to the last; None for months with days.

    >>> wider_interval(DAY, IntervalType("hour", "minute")).name
    'interval day to minute'
    """
    if a.of_days != b.of_days:
        return None
    order = tuple(DAY_UNITS if a.of_days else MONTH_UNITS)
    return IntervalType(min(a.first, b.first, key=order.index), max(a.last, b.last, key=order.index))


def storage_of(dtype: pa.DataType) -> pa.DataType:
    """The type with whole numbers in the place of intervals; the same object where there are none.

    >>> storage_of(pa.struct([("took", DAY)]))
    StructType(struct<took: int64>)
    """
    if isinstance(dtype, IntervalType):
        return dtype.storage_type
    if not has_interval(dtype):
        return dtype
    parts = [dtype.field(i).with_type(storage_of(dtype.field(i).type)) for i in range(dtype.num_fields)]
    if pa.types.is_struct(dtype):
        return pa.struct(parts)
    if pa.types.is_map(dtype):
        key, value = storage_of(dtype.key_type), storage_of(dtype.item_type)
        return pa.map_(pa.field("key", key, False), pa.field("value", value))
    return pa.list_(parts[0])
