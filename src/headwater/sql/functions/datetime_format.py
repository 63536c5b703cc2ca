"""Dates and timestamps to and from texts, by Java's patterns: date_format, to_timestamp, from_unixtime and their kin.

What a pattern means is in `headwater.sql.datetime_pattern`. A constant pattern is checked while the query is read.
Plain patterns of ``yyyy MM dd HH mm ss`` are written by DuckDB itself where the year has four digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, try_cast
from headwater.sql.datetime_pattern import PatternError, formatter, parser
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import DATE, LONG, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, family, name_of
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS", "date_format"]

_REMEDY = "write a format of letters that are known here, such as 'yyyy-MM-dd HH:mm:ss'"
_DEFAULT = Literal("yyyy-MM-dd HH:mm:ss", STRING)
_PICTURES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def _format(micros: int, pattern: str) -> str:
    try:
        return formatter(pattern)(micros)
    except PatternError as why:
        raise Failed(f"{why} is not known here", _REMEDY) from None
    except OverflowError:
        raise Failed("a timestamp outside the years 1 to 9999 has no common text") from None


def _parse(text: str, pattern: str) -> int:
    found = _try_parse(text, pattern)
    if found is None:
        raise Failed(f"a text does not follow the pattern {pattern!r}")
    return found


def _try_parse(text: str, pattern: str) -> int | None:
    try:
        return parser(pattern)(text)
    except PatternError as why:
        raise Failed(f"{why} is not known here", _REMEDY) from None
    except OverflowError as why:
        raise Failed(f"{why} is not known here") from None


_FORMAT = define("format_timestamp", "BIGINT VARCHAR", pa.string(), _format)
_PARSE = define("parse_timestamp", "VARCHAR VARCHAR", pa.int64(), _parse)
_TRY_PARSE = define("try_parse_timestamp", "VARCHAR VARCHAR", pa.int64(), _try_parse)


def _pattern(node: Node, name: str, *, reads: bool) -> Node:
    if node.dtype not in (STRING, NULL):
        raise Refused(f"{name}() with a pattern of type {name_of(node.dtype)}", "write it as a text")
    if isinstance(node, Literal) and isinstance(node.value, str):
        try:
            _ = parser(node.value) if reads else formatter(node.value)
        except PatternError as why:
            raise Refused(f"{why} in {node.value!r}", "use the letters y M d H h m s S a and E") from None
    return cast(node, STRING)


def date_format(args: Sequence[Node]) -> Node:
    moment = cast(argument("z", args[0], "date_format"), TIMESTAMP_NTZ)
    return call("date_format", (moment, _pattern(args[1], "date_format", reads=False)), STRING, fallible=True)


def _from_unixtime(args: Sequence[Node]) -> Node:
    pattern = _pattern(args[1], "from_unixtime", reads=False) if len(args) == 2 else _DEFAULT
    return call("from_unixtime", (argument("l", args[0], "from_unixtime"), pattern), STRING, fallible=True)


def _native(node: Node) -> str | None:
    """A plain pattern in strftime's spelling."""
    picture = node.value if isinstance(node, Literal) else None
    if not isinstance(picture, str):
        return None
    parts = re.findall(r"[A-Za-z]+|[ :/.,_-]+", picture)
    if "".join(parts) != picture or any(p[0].isalpha() and p not in _PICTURES for p in parts):
        return None
    return "".join(_PICTURES.get(p, p) for p in parts)


def _date_format_form(node: Call, a: list[str]) -> str:
    general = f"{_FORMAT}(epoch_us({a[0]}), {a[1]})"
    native = _native(node.args[1])
    if native is None:
        return general
    return f"(CASE WHEN year({a[0]}) BETWEEN 1000 AND 9999 THEN strftime({a[0]}, '{native}') ELSE {general} END)"


def _from_unixtime_form(_: Call, a: list[str]) -> str:
    return f"{_FORMAT}({a[0]} * 1000000, {a[1]})"


def _parsed(name: str, dtype: pa.DataType, *, safe: bool = False) -> Builder:
    """to_timestamp and to_date: a cast, or with a pattern a reading of the text."""

    def build(args: Sequence[Node]) -> Node:
        value = args[0]
        if len(args) == 1:
            return try_cast(value, dtype) if safe else cast(value, dtype)
        pattern = _pattern(args[1], name, reads=True)
        if family(value.dtype) in ("date", "timestamp", "timestamp_ntz"):
            return cast(value, dtype)
        if family(value.dtype) not in ("string", "null"):
            raise Refused(f"{name}() of {name_of(value.dtype)} with a pattern", "cast it to a string first")
        op = "try_parse_timestamp" if safe else "parse_timestamp"
        wall = call(op, (cast(value, STRING), pattern), TIMESTAMP, fallible=True)
        return cast(wall, dtype)

    return build


def _unix(args: Sequence[Node]) -> Node:
    value = args[0]
    if family(value.dtype) in ("string", "null"):
        pattern = args[1] if len(args) == 2 else _DEFAULT
        value = _parsed("unix_timestamp", TIMESTAMP)((value, pattern))
    return call("unix_timestamp", (argument("z", value, "unix_timestamp"),), LONG)


_FORMS: dict[str, Form] = {
    "parse_timestamp": f"make_timestamptz({_PARSE}({{0}}, {{1}}))",
    "try_parse_timestamp": f"make_timestamptz({_TRY_PARSE}({{0}}, {{1}}))",
}
_NOTE = "patterns of y M d D H h k K m s S a E Q; years 1 to 9999"
FUNCTIONS: tuple[Function, ...] = (
    Function("date_format", "datetime", date_format, 2, 2, {"date_format": _date_format_form}, note=_NOTE),
    Function("from_unixtime", "datetime", _from_unixtime, 1, 2, {"from_unixtime": _from_unixtime_form}, note=_NOTE),
    Function("to_timestamp", "datetime", _parsed("to_timestamp", TIMESTAMP), 1, 2, _FORMS, note=_NOTE),
    Function("to_timestamp_ltz", "datetime", _parsed("to_timestamp_ltz", TIMESTAMP), 1, 2, note=_NOTE),
    Function("to_timestamp_ntz", "datetime", _parsed("to_timestamp_ntz", TIMESTAMP_NTZ), 1, 2, note=_NOTE),
    Function("try_to_timestamp", "datetime", _parsed("try_to_timestamp", TIMESTAMP, safe=True), 1, 2, note=_NOTE),
    Function("to_date", "datetime", _parsed("to_date", DATE), 1, 2, note=_NOTE),
    Function("try_to_date", "datetime", _parsed("try_to_date", DATE, safe=True), 1, 2, note=_NOTE),
    Function("date", "datetime", _parsed("date", DATE), 1, 1),
    Function("timestamp", "datetime", _parsed("timestamp", TIMESTAMP), 1, 1),
    Function("unix_timestamp", "datetime", _unix, 1, 2, {"unix_timestamp": "(epoch_us({0}) // 1000000)"}, note=_NOTE),
    Function("to_unix_timestamp", "datetime", _unix, 1, 2, note=_NOTE),
)
