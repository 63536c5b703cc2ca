"""Spark's ANSI typing, on Arrow types: which type two operands meet in, and what arithmetic gives.

Integers widen byte -> short -> int -> long; an integer meets a float in double; a decimal meets an integer in a decimal
that holds both, and a float in double; a text meets a number in bigint or double, and a date, timestamp or boolean in
that type. Decimal results follow Spark's digits exactly; where Spark would have to drop digits after the point to stay
within 38, sums and products are refused, because no other engine drops the same ones.

Invariant: these functions are total. None means that Spark has no common type, or that we refuse it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from headwater.base.errors import SchemaError
from headwater.base.schema import normalize_type, spark_type
from headwater.sql.interval_types import IntervalType, has_interval, wider_interval

__all__ = [
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "EMPTY_MAP",
    "INT",
    "LONG",
    "NULL",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "array_of",
    "column_type",
    "decimal_result",
    "digits_of",
    "family",
    "has_float",
    "has_void",
    "is_comparable",
    "is_key",
    "literal_decimal",
    "map_of",
    "name_of",
    "rounded_product",
    "tighter",
    "wider",
]

BOOLEAN, INT, LONG, DOUBLE = pa.bool_(), pa.int32(), pa.int64(), pa.float64()
STRING, DATE, NULL = pa.string(), pa.date32(), pa.null()
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
TIME = pa.time64("us")  # of constants only: no column and no value of an engine is of it

_RANK = {pa.int8(): 1, pa.int16(): 2, pa.int32(): 3, pa.int64(): 4, pa.float32(): 5, pa.float64(): 6}
_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_FAMILY = {
    pa.bool_(): "boolean",
    pa.float32(): "float",
    pa.float64(): "float",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    TIME: "time",
    NULL: "null",
}
_MOST_DIGITS = 38


def family(dtype: pa.DataType) -> str:
    """The family a type belongs to: operators are defined on families.

    >>> family(pa.int8()), family(pa.decimal128(5, 2)), family(pa.list_(pa.int8()))
    ('integer', 'decimal', 'nested')
    """
    if dtype in _INTEGER_DIGITS:
        return "integer"
    if pa.types.is_decimal(dtype):
        return "decimal"
    if isinstance(dtype, IntervalType):
        return "day interval" if dtype.of_days else "month interval"
    return _FAMILY.get(dtype, "nested")


def array_of(element: pa.DataType) -> pa.DataType:
    """The array of a type.

    >>> array_of(pa.int8())
    ListType(list<element: int8>)
    """
    return pa.list_(pa.field("element", element))


def map_of(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    """The map of two types.

    >>> map_of(pa.int8(), pa.bool_())
    MapType(map<int8, bool>)
    """
    return pa.map_(pa.field("key", key, False), pa.field("value", value))


# What `map()` is: Spark's map<void,void>, which Arrow cannot hold, since the keys of its maps are never null.
EMPTY_MAP = map_of(STRING, NULL)


def has_void(dtype: pa.DataType) -> bool:
    """Is the type, or a part of it, that of ``NULL`` and ``array()``?

    >>> has_void(array_of(NULL)), has_void(array_of(INT))
    (True, False)
    """
    if pa.types.is_nested(dtype):
        return any(has_void(dtype.field(i).type) for i in range(dtype.num_fields))
    return bool(dtype == NULL)


def is_comparable(dtype: pa.DataType) -> bool:
    """Can two values of the type be compared? Only maps cannot, and what holds one.

    >>> is_comparable(array_of(INT)), is_comparable(array_of(map_of(INT, INT)))
    (True, False)
    """
    if pa.types.is_map(dtype):
        return False
    if pa.types.is_nested(dtype):
        return all(is_comparable(dtype.field(i).type) for i in range(dtype.num_fields))
    return True


def has_float(dtype: pa.DataType) -> bool:
    """Is the type, or a part of it, a float?

    >>> has_float(array_of(DOUBLE)), has_float(map_of(STRING, INT))
    (True, False)
    """
    if pa.types.is_nested(dtype):
        return any(has_float(dtype.field(i).type) for i in range(dtype.num_fields))
    return family(dtype) == "float"


def is_key(dtype: pa.DataType) -> bool:
    """Can rows be grouped by it? Not by maps, and here not by floats inside of arrays and structs,
    whose zeros have signs.
    """
    return family(dtype) != "nested" or (is_comparable(dtype) and not has_float(dtype))


def name_of(dtype: pa.DataType) -> str:
    """Spark's name of a type, for messages.

    >>> name_of(pa.int64()), name_of(pa.null())
    ('bigint', 'void')
    """
    if dtype == NULL:
        return "void"
    if dtype == TIME:
        return "time(6)"
    if isinstance(dtype, IntervalType):
        return dtype.name
    if dtype == EMPTY_MAP:
        return "map<void,void>"
    if pa.types.is_list(dtype):
        return f"array<{name_of(dtype.value_type)}>"
    if pa.types.is_struct(dtype) and has_interval(dtype):
        return f"struct<{','.join(f'{f.name}:{name_of(f.type)}' for f in dtype)}>"
    try:
        return spark_type(dtype)
    except SchemaError:
        return str(dtype)


def column_type(dtype: pa.DataType) -> pa.DataType | None:
    """The Spark type of a stored column, or None when DuckDB would read it as another type.

    >>> column_type(pa.large_string())
    DataType(string)
    >>> column_type(pa.uint8()) is None
    True
    """
    t = pa.types
    if has_interval(dtype) or has_void(dtype):  # of a subquery
        return dtype
    if t.is_dictionary(dtype):
        return column_type(dtype.value_type)
    foreign = (
        t.is_unsigned_integer(dtype)
        or t.is_float16(dtype)
        or t.is_date64(dtype)
        or t.is_time(dtype)
        or (t.is_timestamp(dtype) and dtype.unit != "us")
    )
    if foreign:
        return None
    try:
        return normalize_type(dtype)
    except SchemaError:
        return None


def digits_of(dtype: pa.DataType) -> tuple[int, int] | None:
    """Precision and scale of an exact number's decimal form.

    >>> digits_of(pa.int32()), digits_of(pa.decimal128(5, 2)), digits_of(pa.float64())
    ((10, 0), (5, 2), None)
    """
    if pa.types.is_decimal(dtype):
        return dtype.precision, dtype.scale
    return (_INTEGER_DIGITS[dtype], 0) if dtype in _INTEGER_DIGITS else None


def literal_decimal(value: int | Decimal) -> tuple[int, int] | None:
    """The tightest decimal of a constant, as Spark gives it to literals; None above 38 digits.

    >>> literal_decimal(Decimal("0.05")), literal_decimal(120)
    ((2, 2), (3, 0))
    """
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int) and exponent <= 0, "literals are written without an exponent"
    scale = -exponent
    precision = max(len(digits), scale)
    return (precision, scale) if precision <= _MOST_DIGITS else None


def _wider_decimal(a: tuple[int, int], b: tuple[int, int]) -> pa.DataType:
    scale = max(a[1], b[1])
    precision = max(a[0] - a[1], b[0] - b[1]) + scale
    # Beyond 38 digits Spark keeps those before the point and rounds after it.
    return pa.decimal128(min(precision, _MOST_DIGITS), max(0, scale - max(0, precision - _MOST_DIGITS)))


def wider(a: pa.DataType, b: pa.DataType, *, promote_text: bool = True) -> pa.DataType | None:
    """The type in which Spark compares or unites ``a`` and ``b``, or None.

    >>> wider(pa.int32(), pa.decimal128(5, 2))
    Decimal128Type(decimal128(12, 2))
    >>> wider(pa.string(), pa.int8())
    DataType(int64)
    >>> wider(pa.bool_(), pa.int8()) is None
    True
    """
    if b in (a, NULL):
        return a
    if a == NULL:
        return b
    if a in _RANK and b in _RANK:
        best = max(a, b, key=_RANK.__getitem__)
        return DOUBLE if best == pa.float32() else best
    families = {family(a), family(b)}
    if families <= {"integer", "decimal"}:
        left, right = digits_of(a), digits_of(b)
        assert left is not None and right is not None
        return _wider_decimal(left, right)
    if families == {"decimal", "float"}:
        return DOUBLE
    if isinstance(a, IntervalType) and isinstance(b, IntervalType):
        return wider_interval(a, b)
    if families <= {"date", "timestamp", "timestamp_ntz"}:
        return TIMESTAMP if "timestamp" in families else TIMESTAMP_NTZ
    if families == {"nested"}:
        return _nested_meeting(a, b, functools.partial(wider, promote_text=promote_text))
    if "string" in families and promote_text:
        other = b if family(a) == "string" else a
        return _text_meets(other)
    return None


def _nested_meeting(
    a: pa.DataType, b: pa.DataType, meet: Callable[[pa.DataType, pa.DataType], pa.DataType | None]
) -> pa.DataType | None:
    """Arrays, maps and structs of the same shape meet part by part; fields keep the names of the left side."""
    t = pa.types
    if t.is_list(a) and t.is_list(b):
        element = meet(a.value_type, b.value_type)
        return None if element is None else array_of(element)
    if t.is_map(a) and t.is_map(b):
        if EMPTY_MAP in (a, b):
            return b if a == EMPTY_MAP else a
        key, value = meet(a.key_type, b.key_type), meet(a.item_type, b.item_type)
        return None if key is None or value is None else map_of(key, value)
    if not (t.is_struct(a) and t.is_struct(b)) or [f.name.lower() for f in a] != [f.name.lower() for f in b]:
        return None
    parts = [meet(x.type, y.type) for x, y in zip(a, b, strict=True)]
    return None if None in parts else pa.struct([pa.field(f.name, p) for f, p in zip(a, parts, strict=True)])


def tighter(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type in which Spark's functions of arrays and maps, and its comparisons of nested values, let two types meet.

    Unlike `wider`, no decimal meets another type. A float that meets a whole number would lose digits: that is None
    here.

    >>> tighter(array_of(INT), array_of(LONG)), tighter(INT, pa.decimal128(5, 2))
    (ListType(list<element: int64>), None)
    """
    if b in (a, NULL) or a == NULL:
        return a if b in (a, NULL) else b
    if a in _RANK and b in _RANK:
        mixed = pa.float32() in (a, b) and "integer" in (family(a), family(b))
        return None if mixed else max(a, b, key=_RANK.__getitem__)
    return _nested_meeting(a, b, tighter) if family(a) == family(b) == "nested" else None


def _text_meets(other: pa.DataType) -> pa.DataType | None:
    kind = family(other)
    if kind == "integer":
        return LONG
    if kind in ("float", "decimal"):
        return DOUBLE
    return other if kind in ("date", "timestamp", "timestamp_ntz", "boolean") else None


def decimal_result(op: str, a: tuple[int, int], b: tuple[int, int]) -> pa.DataType | None:
    """Spark's result type of decimal arithmetic; None where it would round what other engines do not.

    >>> decimal_result("*", (10, 2), (1, 0))
    Decimal128Type(decimal128(12, 2))
    >>> decimal_result("/", (10, 2), (1, 0))
    Decimal128Type(decimal128(14, 6))
    >>> decimal_result("*", (32, 4), (16, 2))
    Decimal128Type(decimal128(38, 6))
    >>> decimal_result("*", (38, 10), (38, 10)) is None
    True
    """
    (p1, s1), (p2, s2) = a, b
    if op in ("+", "-"):
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif op == "*":
        scale, precision = s1 + s2, p1 + p2 + 1
    elif op == "/":
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    if precision <= _MOST_DIGITS:
        return pa.decimal128(precision, scale)
    kept = max(_MOST_DIGITS - (precision - scale), min(scale, 6))
    return pa.decimal128(_MOST_DIGITS, kept) if kept == scale or op == "/" else None


def rounded_product(a: tuple[int, int], b: tuple[int, int]) -> pa.DataType:
    """Spark's type of a product that needs more than 38 digits: it loses digits behind the point, down to six.

    >>> rounded_product((36, 2), (10, 10))
    Decimal128Type(decimal128(38, 6))
    """
    precision, scale = a[0] + b[0] + 1, a[1] + b[1]
    return pa.decimal128(_MOST_DIGITS, max(_MOST_DIGITS - (precision - scale), min(scale, 6)))
