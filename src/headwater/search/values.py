"""Values: what is written in a query, as the index has it.

The bounds of ranges, the members of sets and words that are asked of a field that is not text come as strings. Each
kind of field has one reading, the same for queries and, from typed constants, for standard predicates.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, date, datetime, timedelta
from typing import Any

from headwater.base.errors import SearchQueryError
from headwater.search.fields import Field

__all__ = ["days_of", "microseconds_of", "read_value"]

_DAY_0 = date(1970, 1, 1)
_TIME_0 = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST = 2**63
_EXPECTED = {
    "integer": "a whole number, such as 42",
    "float": "a number, such as 3.5",
    "boolean": "true or false",
    "date": "a date, such as 2024-01-31",
    "timestamp": "a time, such as 2024-01-31T10:00:00Z",
    "binary": "hexadecimal digits, such as 00ff",
    "ip": "an address, such as 10.0.0.1",
}


def read_value(f: Field, text: str) -> Any:
    """The value that a string stands for in a field."""
    try:
        return _read(f.kind, text.strip() if f.kind not in ("text", "keyword", "json") else text)
    except (ValueError, OverflowError):
        raise SearchQueryError.bad_value(f.column, f"of kind {f.kind}", text, _EXPECTED[f.kind]) from None


def _read(kind: str, text: str) -> Any:
    if kind == "integer":
        value = int(text)
        if not -_MOST <= value < _MOST:
            raise OverflowError
        return value
    if kind == "float":
        number = float(text)
        return 0.0 if number == 0 else number
    if kind == "boolean":
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _fail()
    if kind == "date":
        return days_of(date.fromisoformat(text))
    if kind == "timestamp":
        return microseconds_of(datetime.fromisoformat(text))
    if kind == "binary":
        return bytes.fromhex(text)
    if kind == "ip":
        return str(ipaddress.ip_address(text))
    return text


def _fail() -> Any:
    raise ValueError


def days_of(value: date) -> int:
    """A date as the index has it."""
    return (value - _DAY_0).days


def microseconds_of(value: datetime) -> int:
    """A timestamp as the index has it; one without a zone is counted as if it were in UTC."""
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return (moment - _TIME_0) // _MICROSECOND
