"""Spark's JSON of a data type, as an Arrow type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.base.errors import SchemaError
from headwater.base.schema import arrow_type, normalize_type
from headwater.sql.interval_types import interval_named
from headwater.sql.nodes import Refused
from headwater.sql.types import NULL, array_of, map_of

__all__ = ["INTERVAL", "dtype_of"]

INTERVAL = pa.month_day_nano_interval()
"""The type of an interval of months and days and microseconds at once, of which there are only constants here."""


def dtype_of(given: Any) -> pa.DataType:
    """The type, as the reader of SQL writes it.

    >>> dtype_of("decimal(10,2)"), dtype_of({"type": "array", "elementType": "long", "containsNull": True})
    (Decimal128Type(decimal128(10, 2)), ListType(list<element: int64>))
    """
    if given == "void":
        return NULL
    if given == "interval":
        return INTERVAL
    if isinstance(given, str) and given.startswith("interval "):
        return interval_named(given)
    if isinstance(given, dict):
        kind = given.get("type")
        if kind == "array":
            return array_of(dtype_of(given["elementType"]))
        if kind == "map":
            return map_of(dtype_of(given["keyType"]), dtype_of(given["valueType"]))
        if kind == "struct":
            return pa.struct([pa.field(f["name"], dtype_of(f["type"])) for f in given["fields"]])
    try:
        return normalize_type(arrow_type(given))
    except (SchemaError, KeyError, TypeError, ValueError):
        name = given if isinstance(given, str) else str(given.get("type", given)) if isinstance(given, dict) else given
        raise Refused(f"Spark's type {name}", "cast it to a type that Delta stores") from None
