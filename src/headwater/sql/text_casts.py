"""Casts between texts and what engines print and read in their own ways: numbers, truth values, timestamps, binaries.

Forms where DuckDB has one that is known to be Spark's, Python functions (`headwater.sql.udfs`) for the rest:
- doubles and floats print as Java prints them; the few whose digits depend on the version of Java raise
  (`java_numbers`);
- timestamps print natively between the years 1 and 9999, outside which they raise;
- binaries become texts if they are UTF-8, and raise if they are not, since Spark would carry broken texts along;
- dates and timestamps in their full form are read natively, all other forms that Spark knows by `datetime_text`;
- numbers in their plain form are read natively, all others by `number_text`.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.datetime_text import Unreadable, days_of, micros_of
from headwater.sql.java_numbers import java_text
from headwater.sql.number_text import FALSE, TRUE, decimal_text, real_of, single_of, truth_of, whole_of
from headwater.sql.types import family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["PAIRS", "text_cast_form"]

# (from, to) -> may a row fail?
PAIRS: dict[tuple[str, str], bool] = {
    ("float", "string"): True,
    ("timestamp", "string"): True,
    ("timestamp_ntz", "string"): True,
    ("binary", "string"): True,
    ("string", "binary"): False,
    ("string", "integer"): True,
    ("string", "decimal"): True,
    ("string", "float"): True,
    ("string", "boolean"): True,
    ("string", "date"): True,
    ("string", "timestamp"): True,
    ("string", "timestamp_ntz"): True,
}
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = f"{_DAY} ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,6}})?"


def _number_text(single: bool) -> Callable[[float], str]:
    def call(value: float) -> str:
        text = java_text(value, single=single)
        if text is None:
            raise Failed(f"the digits of {value!r} as a text depend on the version of Java")
        return text

    return call


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Failed("a binary that is not UTF-8 has no text") from None


def _reader(read: Callable[[str], int | None], name: str, *, safe: bool) -> Callable[[str], int | None]:
    def call(text: str) -> int | None:
        try:
            found = read(text)
        except Unreadable as why:
            raise Failed(f"{why} is not known here") from None
        if found is None and not safe:
            raise Failed(f"a text cannot be cast to {name}")
        return found

    return call


def _plain_whole(text: str) -> str | None:
    found = whole_of(text)
    return None if found is None else str(found)


# Other texts than the plain ones, as a value or as a plain text; null for those that Spark does not read.
_ODD = {
    "integer": define("whole_of_text", "VARCHAR", pa.string(), _plain_whole),
    "decimal": define("decimal_of_text", "VARCHAR", pa.string(), decimal_text),
    "double": define("double_of_text", "VARCHAR", pa.float64(), real_of),
    "float": define("float_of_text", "VARCHAR", pa.float32(), single_of),
    "boolean": define("boolean_of_text", "VARCHAR", pa.bool_(), truth_of),
}
_PLAIN = {
    "integer": "[+-]?[0-9]{1,40}",
    "decimal": "[+-]?[0-9]{1,60}([.][0-9]{1,60})?",
    "double": "[+-]?[0-9]{1,60}([.][0-9]{1,60})?([eE][+-]?[0-9]{1,2})?",
}
_DOUBLE = define("text_of_double", "DOUBLE", pa.string(), _number_text(False))
_FLOAT = define("text_of_float", "FLOAT", pa.string(), _number_text(True))
_DECODED = define("text_of_binary", "BLOB", pa.string(), _decoded)
_READERS: dict[tuple[str, bool], str] = {}
for _safe in (False, True):
    _try = "try_" if _safe else ""
    _READERS["date", _safe] = define(f"{_try}date_of_text", "VARCHAR", pa.int32(), _reader(days_of, "date", safe=_safe))
    _READERS["timestamp", _safe] = define(
        f"{_try}timestamp_of_text", "VARCHAR", pa.int64(), _reader(micros_of, "timestamp", safe=_safe)
    )
    _READERS["timestamp_ntz", _safe] = define(
        f"{_try}timestamp_ntz_of_text",
        "VARCHAR",
        pa.int64(),
        _reader(lambda t: micros_of(t, zoned=False), "timestamp_ntz", safe=_safe),
    )


def text_cast_form(x: str, source: pa.DataType, target: pa.DataType, *, safe: bool = False) -> str | None:
    """DuckDB's SQL of a cast in `PAIRS`, or None for other pairs; ``safe`` gives a null for what cannot be read."""
    kind, wanted = family(source), family(target)
    if (kind, wanted) not in PAIRS:
        return None
    if kind == "float":
        return f"{_FLOAT if source == pa.float32() else _DOUBLE}({x})"
    if kind == "binary":
        return f"{_DECODED}({x})"
    if kind in ("timestamp", "timestamp_ntz"):
        wall = x if kind == "timestamp_ntz" else f"make_timestamp(epoch_us({x}))"
        why = "error('headwater!a timestamp outside the years 1 to 9999 has no common text')"
        return f"(CASE WHEN year({wall}) NOT BETWEEN 1 AND 9999 THEN {why} ELSE CAST({wall} AS VARCHAR) END)"
    if wanted == "binary":
        return f"encode({x})"
    if wanted not in ("date", "timestamp", "timestamp_ntz"):
        return _number_form(x, target, safe)
    word = "TRY_CAST" if safe else "CAST"
    read = f"{_READERS[wanted, safe]}({x})"
    plain = f"'{_DAY if wanted == 'date' else _MOMENT}'"
    # A year 0 is a date for DuckDB and for Spark, but not here.
    native = f"regexp_full_match({x}, {plain}) AND {x} > '0001'"
    if wanted == "date":
        return f"(CASE WHEN {native} THEN {word}({x} AS DATE) ELSE DATE '1970-01-01' + {read} END)"
    make = "make_timestamp" if wanted == "timestamp_ntz" else "make_timestamptz"
    return f"(CASE WHEN {native} THEN {make}(epoch_us({word}({x} AS TIMESTAMP))) ELSE {make}({read}) END)"


def _number_form(x: str, target: pa.DataType, safe: bool) -> str:
    name, word = duckdb_type(target), "TRY_CAST" if safe else "CAST"
    kind = name_of(target) if family(target) == "float" else family(target)
    read = f"{_ODD[kind]}({x})"
    odd = f"{word}({read} AS {name})" if kind in ("integer", "decimal") else read
    why = f"error('headwater!a text cannot be cast to {name_of(target)}')"
    lines = [f"WHEN {x} IS NULL THEN NULL"]
    if kind == "boolean":
        lines += [f"WHEN lower({x}) IN {words} THEN {truth}" for words, truth in ((TRUE, "TRUE"), (FALSE, "FALSE"))]
    elif kind in _PLAIN:
        lines.append(f"WHEN regexp_full_match({x}, '{_PLAIN[kind]}') THEN {word}({x} AS {name})")
    if not safe:
        lines.append(f"WHEN {read} IS NULL THEN {why}")
    return f"(CASE {' '.join(lines)} ELSE {odd} END)"
