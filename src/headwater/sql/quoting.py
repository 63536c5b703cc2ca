"""Names and values inside DuckDB's SQL, so that no name or value can become code.

DuckDB's rules are short: an identifier stands between ``"`` with ``"`` doubled, a text between ``'`` with ``'``
doubled, and there are no other escapes in either. Every other value is written as a text of known alphabet
inside a CAST, so its type is never left to the engine's guess.

Invariant: reading back ``SELECT <literal_sql(v)>`` gives ``v``, bit by bit.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.schema import duckdb_type

__all__ = ["literal_sql", "quote_identifier"]


def quote_identifier(name: str) -> str:
    """A name as a DuckDB identifier.

    >>> quote_identifier('we"ird')
    '"we""ird"'
    """
    if not name or not _is_utf8(name):
        raise InputError.bad_argument("name", name, "a non-empty name of valid Unicode")
    return '"' + name.replace('"', '""') + '"'


def literal_sql(value: object, dtype: pa.DataType | None = None) -> str:
    """A Python value as a DuckDB constant of ``dtype``, by default the natural type of the value.

    >>> literal_sql("it's")
    "'it''s'"
    >>> literal_sql(Decimal("-1.50"))
    "CAST('-1.50' AS DECIMAL(3,2))"
    >>> literal_sql(7, pa.int64())
    'CAST(7 AS BIGINT)'
    """
    if value is None:
        return "NULL" if dtype is None or pa.types.is_null(dtype) else f"CAST(NULL AS {duckdb_type(dtype)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    kind = dtype if dtype is not None else _natural_type(value)
    if isinstance(value, int) and kind == pa.int32() and 0 <= value < 2**31:
        return str(value)
    return f"CAST({_spelled(value)} AS {duckdb_type(kind)})"


def _text(value: str) -> str:
    if not _is_utf8(value):
        raise InputError.bad_argument("value", value, "valid Unicode text")
    quoted = "'" + value.replace("'", "''") + "'"
    # A NUL is legal in a value, but not every road to the engine carries one inside SQL text.
    return "(" + quoted.replace("\0", "' || chr(0) || '") + ")" if "\0" in value else quoted


def _spelled(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "'nan'"
        return f"'{value!r}'"  # 'inf', '-inf' and '-0.0' are read back as such
    if isinstance(value, Decimal):
        return f"'{value:f}'"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return f"'{value.isoformat(' ')}'"
        return f"'{value.astimezone(UTC).isoformat(' ')}'"
    assert isinstance(value, date)
    return f"'{value.isoformat()}'"


def _natural_type(value: object) -> pa.DataType:
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
    if isinstance(value, int) and abs(value) < 10**38:
        return pa.decimal128(38, 0)
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, Decimal) and value.is_finite():
        _, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        scale = max(0, -exponent)
        precision = max(len(digits) + max(0, exponent), scale, 1)
        if precision <= 38:
            return pa.decimal128(precision, scale)
    if isinstance(value, datetime):
        return pa.timestamp("us", tz="UTC" if value.tzinfo else None)
    if isinstance(value, date):
        return pa.date32()
    raise InputError.bad_argument("value", value, "a value that a column can hold, of at most 38 digits")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
