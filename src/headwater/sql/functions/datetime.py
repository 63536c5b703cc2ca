"""Dates and timestamps, in UTC: their parts, and steps between them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import DATE, INT, LONG, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, family, name_of

__all__ = ["FUNCTIONS"]


def _as_date(node: Node, what: str) -> Node:
    if family(node.dtype) == "date" or isinstance(node, Literal):
        return cast(node, DATE)
    raise Refused(f"{what} of {name_of(node.dtype)}", "cast it to a date first: CAST(x AS DATE)")


def _part(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        (arg,) = args
        if family(arg.dtype) in ("timestamp", "timestamp_ntz"):
            arg = cast(arg, DATE)
        return call(op, (_as_date(arg, f"{op}()"),), INT)

    return build


def _shift(sign: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        day, count = _as_date(args[0], "date_add()"), args[1]
        if count.dtype not in (pa.int8(), pa.int16(), INT, NULL):
            raise Refused(f"date_add() with a count of type {name_of(count.dtype)}", "cast the count to int")
        return call(f"date {sign}", (day, cast(count, INT)), DATE, fallible=True)

    return build


def _datediff(args: Sequence[Node]) -> Node:
    return call("datediff", tuple(_as_date(a, "datediff()") for a in args), INT, fallible=True)


def _add_months(node: Call, a: list[str]) -> str:
    if family(node.dtype) == "date":
        return f"CAST({a[0]} + to_months({a[1]}) AS DATE)"
    wall = a[0] if family(node.dtype) == "timestamp_ntz" else f"make_timestamp(epoch_us({a[0]}))"
    moved = f"({wall} + to_months({a[1]}))"
    return moved if family(node.dtype) == "timestamp_ntz" else f"make_timestamptz(epoch_us({moved}))"


def _add_micros(node: Call, a: list[str]) -> str:
    make = "make_timestamptz" if family(node.dtype) == "timestamp" else "make_timestamp"
    return f"{make}(epoch_us({a[0]}) + {a[1]})"


_INTERVALS: dict[str, Form] = {"add months": _add_months, "add micros": _add_micros}


def _part_form(name: str) -> dict[str, Form]:
    return {name: f"CAST({name}({{}}) AS {{type}})"}


def _date_part(args: Sequence[Node]) -> Node:
    field = args[0].value if isinstance(args[0], Literal) else None
    name = _FIELDS.get(field.lower()) if isinstance(field, str) else None
    if name is None:
        raise Refused(
            f"date_part() of {field!r}", "use year, quarter, month, week, day, dayofweek, doy, hour or minute"
        )
    return _BY_NAME[name].build(args[1:])


def _clock(op: str) -> Builder:
    """hour, minute, second: of a timestamp, in UTC."""

    def build(args: Sequence[Node]) -> Node:
        if family(args[0].dtype) not in ("timestamp", "timestamp_ntz"):
            raise Refused(f"{op}() of {name_of(args[0].dtype)}", "cast it to a timestamp first")
        return call(op, (cast(args[0], TIMESTAMP_NTZ),), INT)

    return build


_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
}
_FINE = {**dict.fromkeys(("day", "dd"), "day"), "hour": "hour", "minute": "minute", "second": "second"}


def _unit(node: Node, units: dict[str, str], name: str) -> Literal:
    word = node.value if isinstance(node, Literal) else None
    if not isinstance(word, str) or word.lower() not in units:
        raise Refused(f"{name}() to {word!r}", f"use one of {', '.join(sorted(set(units.values())))}")
    return Literal(units[word.lower()], STRING)


def _trunc(args: Sequence[Node]) -> Node:
    return call("trunc day", (_as_date(args[0], "trunc()"), _unit(args[1], _UNITS, "trunc")), DATE)


def _date_trunc(args: Sequence[Node]) -> Node:
    unit, value = _unit(args[0], {**_UNITS, **_FINE}, "date_trunc"), args[1]
    if family(value.dtype) not in ("date", "timestamp", "timestamp_ntz"):
        raise Refused(f"date_trunc() of {name_of(value.dtype)}", "cast it to a timestamp first")
    return cast(call("trunc time", (cast(value, TIMESTAMP_NTZ), unit), TIMESTAMP_NTZ), TIMESTAMP)


def _add_months_call(args: Sequence[Node]) -> Node:
    count = argument("i", args[1], "add_months")
    return call("add months", (_as_date(args[0], "add_months()"), count), DATE, fallible=True)


def _to_date(args: Sequence[Node]) -> Node:
    return cast(args[0], DATE)


def _unix(args: Sequence[Node]) -> Node:
    return call("unix_timestamp", (argument("z", args[0], "unix_timestamp"),), LONG)


_PICTURES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def _date_format(args: Sequence[Node]) -> Node:
    value, picture = args[0], args[1].value if isinstance(args[1], Literal) else None
    if family(value.dtype) not in ("timestamp", "timestamp_ntz", "date") or not isinstance(picture, str):
        raise Refused("date_format() of this", "format a date or timestamp with a constant pattern")
    parts = re.findall(r"[A-Za-z]+|[ :/.,_-]+", picture)
    if "".join(parts) != picture or any(p[0].isalpha() and p not in _PICTURES for p in parts):
        raise Refused(f"the pattern {picture!r}", "use yyyy, MM, dd, HH, mm and ss")
    written = "".join(_PICTURES.get(p, p) for p in parts)
    return call("date_format", (cast(value, TIMESTAMP_NTZ), Literal(written, STRING)), STRING, fallible=True)


def _date_format_form(_: Call, a: list[str]) -> str:
    why = raise_form("a year outside 1000 to 9999 has no common text")
    inside = f"year({a[0]}) BETWEEN 1000 AND 9999"
    return f"(CASE WHEN {a[0]} IS NULL THEN NULL WHEN {inside} THEN strftime({a[0]}, {a[1]}) ELSE {why} END)"


def _floored(micros: int) -> Form:
    # Whole units, cut downwards: the division of whole numbers cuts towards zero.
    return f"CAST((epoch_us({{0}}) - ((epoch_us({{0}}) % {micros}) + {micros}) % {micros}) // {micros} AS BIGINT)"


_FIELDS = {"year": "year", "years": "year", "yr": "year", "month": "month", "mon": "month", "months": "month"}
_FIELDS |= {"quarter": "quarter", "qtr": "quarter", "week": "weekofyear", "weeks": "weekofyear", "w": "weekofyear"}
_FIELDS |= {"dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear", "hour": "hour", "minute": "minute"}
_FIELDS |= {"day": "day", "d": "day", "days": "day"}
FUNCTIONS: tuple[Function, ...] = (
    Function("year", "datetime", _part("year"), 1, 1, _part_form("year")),
    Function("month", "datetime", _part("month"), 1, 1, _part_form("month")),
    Function("day", "datetime", _part("day"), 1, 1, _part_form("day")),
    Function("dayofmonth", "datetime", _part("day"), 1, 1),
    Function("date_add", "datetime", _shift("+"), 2, 2, {"date +": "({} + {})"}),
    Function("date_sub", "datetime", _shift("-"), 2, 2, {"date -": "({} - {})"}),
    Function("datediff", "datetime", _datediff, 2, 2, {"datediff": "CAST({} - {} AS {type})"}),
    Function("date_diff", "datetime", _datediff, 2, 2),
    Function("dateadd", "datetime", _shift("+"), 2, 2),
    Function("quarter", "datetime", _part("quarter"), 1, 1, _part_form("quarter")),
    Function("dayofyear", "datetime", _part("dayofyear"), 1, 1, _part_form("dayofyear")),
    Function("weekofyear", "datetime", _part("weekofyear"), 1, 1, _part_form("weekofyear")),
    Function("dayofweek", "datetime", _part("dayofweek"), 1, 1, {"dayofweek": "CAST(dayofweek({0}) + 1 AS {type})"}),
    Function("weekday", "datetime", _part("weekday"), 1, 1, {"weekday": "CAST(isodow({0}) - 1 AS {type})"}),
    Function("hour", "datetime", _clock("hour"), 1, 1, _part_form("hour")),
    Function("minute", "datetime", _clock("minute"), 1, 1, _part_form("minute")),
    Function("second", "datetime", _clock("second"), 1, 1, _part_form("second")),
    simple("last_day", "datetime", "t", DATE, "last_day({0})"),
    Function("add_months", "datetime", _add_months_call, 2, 2),
    Function("trunc", "datetime", _trunc, 2, 2, {"trunc day": "CAST(date_trunc({1}, {0}) AS DATE)"}),
    Function("date_trunc", "datetime", _date_trunc, 2, 2, {"trunc time": "date_trunc({1}, {0})"}),
    Function("to_date", "datetime", _to_date, 1, 1),
    Function("date", "datetime", _to_date, 1, 1),
    simple("make_date", "datetime", "iii", DATE, "make_date({0}, {1}, {2})", fallible=True),
    Function("unix_timestamp", "datetime", _unix, 1, 1, {"unix_timestamp": "(epoch_us({0}) // 1000000)"}),
    simple("unix_seconds", "datetime", "z", LONG, _floored(1_000_000)),
    simple("unix_millis", "datetime", "z", LONG, _floored(1_000)),
    simple("unix_micros", "datetime", "z", LONG, "epoch_us({0})"),
    simple("unix_date", "datetime", "t", INT, "CAST({0} - DATE '1970-01-01' AS INTEGER)"),
    simple("date_from_unix_date", "datetime", "i", DATE, "(DATE '1970-01-01' + {0})", fallible=True),
    simple("timestamp_micros", "datetime", "l", TIMESTAMP, "make_timestamptz({0})", fallible=True),
    simple("timestamp_millis", "datetime", "l", TIMESTAMP, "make_timestamptz({0} * 1000)", fallible=True),
    Function(
        "date_format",
        "datetime",
        _date_format,
        2,
        2,
        {"date_format": _date_format_form},
        note="patterns of yyyy MM dd HH mm ss; years 1000 to 9999",
    ),
    Function("date_part", "datetime", _date_part, 2, 2, _INTERVALS),
    Function("extract", "datetime", _date_part, 2, 2),
)
_BY_NAME = {f.name: f for f in FUNCTIONS}
