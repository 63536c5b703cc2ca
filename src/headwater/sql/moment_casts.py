"""Casts between timestamps and numbers: a number is a count of seconds since 1970.

To whole numbers the fraction of a second is cut off downwards. Spark makes a decimal by way of a double, so beyond
2**32 seconds, where a double no longer holds every microsecond, a decimal is refused while the query runs. From numbers
what is less than a microsecond is cut off towards zero. Spark saturates where a number of seconds has no timestamp;
here that raises.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.decimals import scaled_form, whole_form
from headwater.sql.quoting import literal_sql
from headwater.sql.types import family

__all__ = ["PAIRS", "moment_cast_form"]

PAIRS: dict[tuple[str, str], bool] = {
    ("timestamp", "integer"): True,
    ("timestamp", "float"): False,
    ("timestamp", "decimal"): True,
    ("integer", "timestamp"): True,
    ("float", "timestamp"): True,
    ("decimal", "timestamp"): True,
}
_SECOND = 1_000_000
_EXACT = 2**32 * _SECOND
_RANGE = 9_000_000_000_000_000_000
# The same mark as `casts.ERROR_MARK`, which imports this file.
_MARK = "headwater!"


def _checked(condition: str, reason: str, sql: str) -> str:
    return f"(CASE WHEN {condition} THEN error({literal_sql(_MARK + reason)}) ELSE {sql} END)"


def moment_cast_form(x: str, source: pa.DataType, target: pa.DataType) -> str | None:
    """DuckDB's SQL of a cast in `PAIRS`, or None for other pairs.

    >>> moment_cast_form("x", pa.timestamp("us", "UTC"), pa.float64())
    '(epoch_us(x) / 1000000.0::DOUBLE)'
    """
    kind, wanted = family(source), family(target)
    if (kind, wanted) not in PAIRS:
        return None
    if kind == "timestamp":
        micros = f"epoch_us({x})"
        if wanted == "float":
            seconds = f"({micros} / 1000000.0::DOUBLE)"
            return seconds if target == pa.float64() else f"CAST({seconds} AS FLOAT)"
        if wanted == "integer":
            # // cuts towards zero.
            before = f"(CASE WHEN {micros} % {_SECOND} < 0 THEN 1 ELSE 0 END)"
            return f"CAST(({micros} // {_SECOND} - {before}) AS {duckdb_type(target)})"
        exact = f"CAST({scaled_form(micros, 18, 6)} AS {duckdb_type(target)})"
        return _checked(f"abs({micros}) > {_EXACT}", "a timestamp this far from 1970 as a decimal", exact)
    if wanted != "timestamp":
        return None
    if kind == "integer":
        micros = f"(CAST({x} AS HUGEINT) * {_SECOND})"
    elif kind == "float":
        micros = f"trunc(CAST({x} AS DOUBLE) * 1000000.0::DOUBLE)"
    else:
        whole, scale = whole_form(x, (source.precision, source.scale)), source.scale
        micros = f"({whole} * {10 ** (6 - scale)})" if scale <= 6 else f"({whole} // {10 ** (scale - 6)})"
    outside = f"NOT {micros} BETWEEN -{_RANGE} AND {_RANGE}"
    return _checked(outside, "a number of seconds without a timestamp", f"make_timestamptz(CAST({micros} AS BIGINT))")
