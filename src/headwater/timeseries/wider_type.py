"""The type in which the values of two columns meet: of a union's sides, and of the keys of a join."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["wider"]


def wider(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The one of two types that holds the values of both, as Spark has it; None if neither does.

    >>> wider(pa.int8(), pa.int32()), wider(pa.decimal128(5, 2), pa.decimal128(6, 0)), wider(pa.int32(), pa.string())
    (DataType(int32), Decimal128Type(decimal128(8, 2)), None)
    """
    t = pa.types
    if a == b:
        return a
    if t.is_null(a) or t.is_null(b):
        return b if t.is_null(a) else a
    if (t.is_signed_integer(a) and t.is_signed_integer(b)) or (t.is_floating(a) and t.is_floating(b)):
        return a if a.bit_width >= b.bit_width else b
    if t.is_decimal128(a) and t.is_decimal128(b):
        scale = max(a.scale, b.scale)
        digits = max(a.precision - a.scale, b.precision - b.scale) + scale
        return pa.decimal128(digits, scale) if digits <= 38 else None
    if {str(a), str(b)} <= {"string", "large_string", "string_view"}:
        return pa.large_string()
    return None
