"""from_json and to_json: between JSON and typed values, as Spark has it.

from_json by its default, PERMISSIVE: a field of the wrong kind is null and its neighbours stay; a text that is no JSON,
or the beginning of one, gives a struct of nulls, or null for an array or a map (an object that is broken in its middle
raises); an element of the wrong kind spoils its whole array or map. Names are compared with their case, and of equal
names the last value of the right kind wins. Whole numbers are read from whole numbers only, booleans from booleans,
strings from anything: what is no text is written out as JSON.

to_json leaves null fields of structs out and keeps nulls in arrays and maps; moments have milliseconds.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from headwater.sql.datetime_text import Unreadable, days_of, micros_of
from headwater.sql.json_text import MALFORMED, Number, Pairs, double_text, quoted, read_json, sound, write_json
from headwater.sql.nodes import Refused
from headwater.sql.types import STRING, family, name_of
from headwater.sql.udfs import Failed

__all__ = ["reader_of", "writer_of"]

Convert = Callable[[Any], Any]
_SPECIAL = {"NaN": "nan", "INF": "inf", "+INF": "inf", "Infinity": "inf", "+Infinity": "inf", "-INF": "-inf"}
_SPECIAL["-Infinity"] = "-inf"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_EXACT = Context(prec=3000, Emax=10**9, Emin=-(10**9))
_LAST_SECOND = 253_402_300_800


class _Wrong(Exception):
    """A value of another kind than the type asks for."""


def reader_of(dtype: pa.DataType) -> Convert:
    """A function from a text to a value of the type: `from_json`."""
    t = pa.types
    convert = _converter(dtype)

    def read(text: str) -> Any:
        value = read_json(text, schema=True)
        if not text.strip(" \t\r\n"):
            return None
        nothing = {f.name: None for f in dtype} if t.is_struct(dtype) else None
        if value is MALFORMED or value is None:
            return nothing
        try:
            if t.is_list(dtype) and t.is_struct(dtype.value_type) and isinstance(value, Pairs):
                return convert([value])  # one object stands for an array of one
            return convert(value)
        except _Wrong:
            return nothing

    return read


def _converter(dtype: pa.DataType) -> Convert:
    if pa.types.is_struct(dtype):
        return _struct(dtype)
    if pa.types.is_list(dtype):
        return _array(dtype)
    if pa.types.is_map(dtype) and dtype.key_type == STRING:
        return _map(dtype)
    kind = family(dtype)
    if kind == "integer":
        return _integer(dtype.bit_width)
    if kind == "decimal":
        return _decimal(dtype)
    found = _CONVERTERS.get(dtype)
    if found is None:
        raise Refused(f"from_json() with the type {name_of(dtype)}", "read it as a string and cast that")
    return found


def _struct(dtype: pa.DataType) -> Convert:
    fields = {f.name: _converter(f.type) for f in dtype}

    def convert(value: Any) -> Any:
        if not isinstance(value, Pairs):
            raise _Wrong
        out: dict[str, Any] = dict.fromkeys(fields)
        for name, inner in value:
            if name in fields:
                # Of a name that occurs twice the last value of the right kind stays.
                with contextlib.suppress(_Wrong):
                    out[name] = None if inner is None else fields[name](inner)
        return out

    return convert


def _array(dtype: pa.DataType) -> Convert:
    element = _converter(dtype.value_type)

    def convert(value: Any) -> Any:
        if not isinstance(value, list) or isinstance(value, Pairs):
            raise _Wrong
        return [None if v is None else element(v) for v in value]

    return convert


def _map(dtype: pa.DataType) -> Convert:
    item = _converter(dtype.item_type)

    def convert(value: Any) -> Any:
        if not isinstance(value, Pairs):
            raise _Wrong
        found = [(sound(k), None if v is None else item(v)) for k, v in value]
        if len({k for k, _ in found}) != len(found):
            raise Failed("JSON has a key twice, which a map cannot hold")
        return found

    return convert


def _integer(bits: int) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, Number) or not value.whole:
            raise _Wrong
        number = int(value.text)
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise _Wrong
        return number

    return convert


def _decimal(dtype: pa.DataType) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, Number) and value.word:
            raise Failed("JSON has a NaN or an infinity where a decimal is expected")
        if isinstance(value, str):
            if not value.isascii():
                raise Failed("JSON has a text of other digits where a decimal is expected")
            text = value.replace(",", "")
            if not _DECIMAL.fullmatch(text):
                raise _Wrong
        elif isinstance(value, Number):
            text = value.text
        else:
            raise _Wrong
        exact = Decimal(text)
        if exact and exact.adjusted() > dtype.precision:
            raise _Wrong
        try:
            rounded = exact.quantize(Decimal(1).scaleb(-dtype.scale), ROUND_HALF_UP, _EXACT)
        except InvalidOperation:
            raise Failed("JSON has a number of too many digits") from None
        if rounded and rounded.adjusted() >= dtype.precision - dtype.scale:
            raise _Wrong
        return rounded or abs(rounded)

    return convert


def _boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise _Wrong
    return value


def _double(value: Any) -> Any:
    if isinstance(value, Number):
        return 0.0 if value.whole and not int(value.text) else value.double
    if isinstance(value, str) and value in _SPECIAL:
        return float(_SPECIAL[value])
    raise _Wrong


def _string(value: Any) -> Any:
    return sound(value) if isinstance(value, str) else write_json(value, astral=False)


def _read_moment(text: Any, read: Callable[[str], int | None]) -> int:
    if not isinstance(text, str):
        raise _Wrong
    try:
        found = read(text)
    except Unreadable as error:
        raise Failed(str(error) or "JSON has a moment that cannot be read here") from None
    if found is None:
        raise _Wrong
    return found


def _day(value: Any) -> Any:
    days = _read_moment(value, days_of)
    return date(1970, 1, 1) + timedelta(days=days)


def _instant(value: Any) -> Any:
    if isinstance(value, Number) and value.whole:
        seconds = int(value.text)
        if not -62_135_596_800 <= seconds < _LAST_SECOND:
            raise Failed("JSON has a moment outside the years 1 to 9999")
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    micros = _read_moment(value, lambda text: micros_of(text, zoned=True))
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


_CONVERTERS: dict[pa.DataType, Convert] = {
    pa.bool_(): _boolean,
    pa.float64(): _double,
    STRING: _string,
    pa.date32(): _day,
    pa.timestamp("us", tz="UTC"): _instant,
}


# --- writing


def writer_of(dtype: pa.DataType) -> Callable[[Any], str]:
    """A function from a value of the type to its text: `to_json`."""
    t = pa.types
    if t.is_struct(dtype):
        fields = [(f.name, quoted(f.name, astral=True), writer_of(f.type)) for f in dtype]
        return lambda v: "{" + ",".join(f"{k}:{w(v[n])}" for n, k, w in fields if v[n] is not None) + "}"
    if t.is_list(dtype):
        element = writer_of(dtype.value_type)
        return lambda v: "[" + ",".join("null" if e is None else element(e) for e in v) + "]"
    if t.is_map(dtype):
        key, item = _key_writer(dtype.key_type), writer_of(dtype.item_type)
        return lambda v: "{" + ",".join(f"{key(k)}:{'null' if e is None else item(e)}" for k, e in v) + "}"
    kind = family(dtype)
    if kind not in _WRITERS:
        raise Refused(f"to_json() of {name_of(dtype)}", "cast it to a string first")
    if kind == "float":
        single = dtype == pa.float32()
        return lambda v: double_text(v, single=single)
    return _WRITERS[kind]


def _key_writer(dtype: pa.DataType) -> Callable[[Any], str]:
    if family(dtype) not in ("string", "integer", "boolean"):
        raise Refused(f"to_json() with keys of type {name_of(dtype)}", "use keys of texts or whole numbers")
    return lambda k: quoted(k if isinstance(k, str) else str(k).lower(), astral=True)


def _wall(value: datetime) -> str:
    return f"{value.replace(tzinfo=None):%H:%M:%S}.{value.microsecond // 1000:03d}"


def _moment(value: datetime) -> str:
    return f'"{value.date().isoformat()}T{_wall(value)}{"" if value.tzinfo is None else "Z"}"'


_WRITERS: dict[str, Callable[[Any], str]] = {
    "boolean": lambda v: "true" if v else "false",
    "integer": str,
    "float": double_text,
    "decimal": lambda v: f"{v:f}",
    "string": lambda v: quoted(v, astral=True),
    "binary": lambda v: f'"{base64.b64encode(v).decode()}"',
    "date": lambda v: f'"{v.isoformat()}"',
    "timestamp": lambda v: _moment(v.astimezone(UTC)),
    "timestamp_ntz": _moment,
}
