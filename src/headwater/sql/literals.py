"""Constants change their type while the text is read, not row by row.

Spark compares ``day = '2024-01-31'`` by casting the text to a date. Doing that here, once, keeps the column bare (so
files and row groups can be skipped), and a constant that does not cast is refused before anything runs.

Invariant: `cast_literal` gives exactly the value that Spark's ANSI cast gives, or None where that cannot be said
without running it, or raises `Refused` where Spark would raise.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from headwater.sql.datetime_text import Unreadable, days_of, micros_of
from headwater.sql.nodes import Literal, Node, Refused, Wrong
from headwater.sql.number_text import nearest_single, real_of, single_of, truth_of, whole_of
from headwater.sql.types import INT, LONG, STRING, TIME, family, literal_decimal, name_of

__all__ = ["cast_literal", "number_literal", "text_literal", "time_literal"]

_TIME_TEXT = re.compile(r"([01]?\d|2[0-3]):([0-5]?\d)(?::([0-5]?\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_INTEGER_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


def text_literal(value: str) -> Literal:
    """A text constant."""
    return Literal(value, STRING)


def time_literal(text: Node) -> Literal:
    """``TIME'6:30:45.887'``, which only functions that make timestamps take.

    >>> time_literal(text_literal("6:30:45.887")).value
    datetime.time(6, 30, 45, 887000)
    """
    given = text.value if isinstance(text, Literal) else None
    match = _TIME_TEXT.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is None:
        raise Wrong(f"{given!r} is no time", "write TIME'06:30:45.887'")
    hour, minute, second, fraction = match.groups()
    return Literal(time(int(hour), int(minute), int(second or 0), int((fraction or "").ljust(6, "0") or 0)), TIME)


def number_literal(text: str, *, negative: bool = False) -> Literal:
    """A number as written, with the type Spark gives it.

    >>> number_literal("2147483648").dtype, number_literal("1.50").dtype, number_literal("1e3").dtype
    (DataType(int64), Decimal128Type(decimal128(3, 2)), DataType(double))
    """
    sign = -1 if negative else 1
    if not re.fullmatch(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text, re.ASCII):
        raise Refused(f"the number `{text}`", "write it as 12, 1.5 or 1.5e3")
    if "e" in text.lower():
        number = sign * float(text)
        if math.isinf(number):
            raise Refused(f"the number `{text}`", "a double ends at 1.8e308")
        return Literal(number, pa.float64())
    value = Decimal(text.rstrip("."))
    if "." not in text:
        whole = sign * int(text)
        if -(2**31) <= whole < 2**31:
            return Literal(whole, INT)
        if -(2**63) <= whole < 2**63:
            return Literal(whole, LONG)
    # Spark's decimals have no negative zero, and Python's multiplication may round: neither is wanted.
    value = value.copy_negate() if negative and value else value
    digits = literal_decimal(value)
    if digits is None:
        raise Refused(f"a number of more than 38 digits, `{text}`,", "use fewer digits, or a double such as 1.5e40")
    return Literal(value, pa.decimal128(*digits))


def cast_literal(node: Literal, dtype: pa.DataType) -> Literal | None:
    """The constant in another type, or None where only the engine can tell.

    >>> cast_literal(Literal("2024-02-29", STRING), pa.date32()).value
    datetime.date(2024, 2, 29)
    """
    value = node.value
    if value is None or node.dtype == dtype:
        return Literal(value, dtype)
    if isinstance(value, str):
        return _from_text(value, dtype)
    kind = family(dtype)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        return _from_exact(value, dtype)
    if isinstance(value, date) and not isinstance(value, datetime) and kind in ("timestamp", "timestamp_ntz"):
        return Literal(datetime.combine(value, time(), tzinfo=dtype.tz and UTC), dtype)
    return None


def _from_exact(value: int | Decimal, dtype: pa.DataType) -> Literal | None:
    kind = family(dtype)
    if kind == "integer" and isinstance(value, int):
        half = 1 << (_INTEGER_BITS[dtype] - 1)
        if not -half <= value < half:
            raise Wrong(f"{value} as {name_of(dtype)} is out of range", "use a wider type")
        return Literal(value, dtype)
    if dtype == pa.float64():
        return Literal(float(value), dtype)
    if dtype == pa.float32():
        return _single(value)
    if kind == "decimal":
        digits = literal_decimal(value)
        if digits is not None and digits[1] <= dtype.scale and digits[0] - digits[1] <= dtype.precision - dtype.scale:
            sign, figures, _ = Decimal(value).as_tuple()
            return Literal(Decimal((sign, figures + (0,) * (dtype.scale - digits[1]), -dtype.scale)), dtype)
    return None


def _single(value: int | Decimal) -> Literal | None:
    found = nearest_single(Fraction(value), float(value))
    return Literal(found, pa.float32()) if math.isfinite(found) else None


def _from_text(value: str, dtype: pa.DataType) -> Literal | None:
    kind = family(dtype)
    found: object = None
    if kind == "integer":
        number = whole_of(value)
        if number is not None:
            return _from_exact(number, dtype)
    elif kind == "float":
        found = real_of(value) if dtype == pa.float64() else single_of(value)
        if found is not None and not math.isfinite(found):
            return None  # written as a text and cast, which every engine knows
    elif kind == "boolean":
        found = truth_of(value)
    elif kind in ("date", "timestamp", "timestamp_ntz"):
        try:
            found = _date(value) if kind == "date" else _timestamp(value, zoned=kind == "timestamp")
        except (Unreadable, OverflowError):
            return None
    elif kind == "decimal":
        return None  # the cast rounds it
    elif dtype == pa.binary():
        found = value.encode()
    if found is None:
        raise Wrong(
            f"the text {value!r} as {name_of(dtype)} has no meaning", _HINTS.get(kind, "write a constant of that type")
        )
    return Literal(found, dtype)


_HINTS = {
    "date": "write dates as '2024-01-31'",
    "timestamp": "write timestamps as '2024-01-31 12:30:00' or '2024-01-31T12:30:00+02:00'",
    "timestamp_ntz": "write it as '2024-01-31 12:30:00', without a zone",
    "boolean": "write TRUE or FALSE",
}


def _date(value: str) -> date | None:
    days = days_of(value)
    return None if days is None else date.fromordinal(days + date(1970, 1, 1).toordinal())


def _timestamp(value: str, *, zoned: bool) -> datetime | None:
    micros = micros_of(value, zoned=zoned)
    if micros is None:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC if zoned else None) + timedelta(microseconds=micros)
