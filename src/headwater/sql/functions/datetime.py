"""Dates and timestamps, in UTC: their parts, steps between them, and counts of seconds since 1970.

Patterns of texts are in `datetime_format`, time zones and the rest that needs Python in `calendar`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast, raise_form
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument, simple
from headwater.sql.interval_types import is_interval
from headwater.sql.intervals.parts import interval_part
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, family, name_of

__all__ = ["FUNCTIONS"]


def _part(op: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        return call(op, (argument("t", args[0], op),), INT)

    return build


def _shift(sign: str) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        day, count = argument("t", args[0], "date_add"), argument("I", args[1], "date_add")
        return call(f"date {sign}", (day, count), DATE, fallible=True)

    return build


def _datediff(args: Sequence[Node]) -> Node:
    return call("datediff", tuple(argument("t", a, "datediff") for a in args), INT, fallible=True)


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
        known = "year, quarter, month, week, day, dayofweek, doy, hour, minute or second"
        raise Refused(f"date_part() of {field!r}", f"use {known}")
    if is_interval(args[1].dtype):
        return interval_part(name, args[1])
    if name == "second":
        return call("second with fraction", (_moment(args[1], "date_part"),), pa.decimal128(8, 6))
    if name in ("yearofweek", "isoweekday"):
        return call(name, (argument("t", args[1], "date_part"),), INT)
    return _BY_NAME[name].build(args[1:])


def _moment(node: Node, name: str) -> Node:
    """A timestamp as a wall clock, which has parts."""
    return cast(node if family(node.dtype) == "timestamp_ntz" else argument("z", node, name), TIMESTAMP_NTZ)


def _clock(op: str) -> Builder:
    return lambda args: call(op, (_moment(args[0], op),), INT)


_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
}
_FINE = {
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}


def _unit(node: Node, units: dict[str, str], name: str) -> Literal:
    word = node.value if isinstance(node, Literal) else None
    if not isinstance(word, str) or word.lower() not in units:
        raise Refused(f"{name}() to {word!r}", f"use one of {', '.join(sorted(set(units.values())))}")
    return Literal(units[word.lower()], STRING)


def _trunc(args: Sequence[Node]) -> Node:
    return call("trunc day", (argument("t", args[0], "trunc"), _unit(args[1], _UNITS, "trunc")), DATE)


def _date_trunc(args: Sequence[Node]) -> Node:
    unit = _unit(args[0], {**_UNITS, **_FINE}, "date_trunc")
    return cast(call("trunc time", (_moment(args[1], "date_trunc"), unit), TIMESTAMP_NTZ), TIMESTAMP)


def _add_months_call(args: Sequence[Node]) -> Node:
    count = argument("I", args[1], "add_months")
    return call("add months", (argument("t", args[0], "add_months"), count), DATE, fallible=True)


def _floored(micros: int) -> Form:
    # Whole units, cut downwards: the division of whole numbers cuts towards zero.
    return f"CAST((epoch_us({{0}}) - ((epoch_us({{0}}) % {micros}) + {micros}) % {micros}) // {micros} AS BIGINT)"


def _timestamp_seconds(args: Sequence[Node]) -> Node:
    (value,) = args
    kind = family(value.dtype)
    if kind == "decimal" and value.dtype.scale > 6:
        raise Refused(f"timestamp_seconds() of {name_of(value.dtype)}", "round it to microseconds first")
    if kind not in ("integer", "decimal", "float", "null"):
        raise Refused(f"timestamp_seconds() of {name_of(value.dtype)}", "pass a number")
    if kind in ("integer", "null"):
        value = cast(value, LONG)
    return call("timestamp_seconds", (value,), TIMESTAMP, fallible=True)


def _timestamp_seconds_form(node: Call, a: list[str]) -> str:
    given = node.args[0].dtype
    if family(given) == "integer":
        return f"make_timestamptz({a[0]} * 1000000)"
    if family(given) == "decimal":
        return f"make_timestamptz(CAST(CAST({a[0]} AS DECIMAL(38,6)) * 1000000 AS BIGINT))"
    x = f"CAST({a[0]} AS DOUBLE)"
    why = raise_form("a timestamp outside the range of a bigint")
    inside = f"WHEN abs({x}) < 9e12 THEN make_timestamptz(CAST(trunc({x} * 1000000) AS BIGINT))"
    return f"(CASE WHEN {x} IS NULL OR isnan({x}) OR isinf({x}) THEN NULL {inside} ELSE {why} END)"


_WEEKDAY_NAMES: tuple[str, ...] = ("MO MON MONDAY", "TU TUE TUESDAY", "WE WED WEDNESDAY", "TH THU THURSDAY")
_WEEKDAY_NAMES += ("FR FRI FRIDAY", "SA SAT SATURDAY", "SU SUN SUNDAY")
_WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAY_NAMES, start=1) for name in names.split()}


def _next_day(args: Sequence[Node]) -> Node:
    name = args[1].value if isinstance(args[1], Literal) else None
    if not isinstance(name, str) or name.upper() not in _WEEKDAYS:
        raise Refused(f"next_day() to {name!r}", "name a day of the week, such as 'MON'")
    number = Literal(_WEEKDAYS[name.upper()], INT)
    return call("next_day", (argument("t", args[0], "next_day"), number), DATE, fallible=True)


_MONTH_UNITS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MICRO_UNITS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000}
_MICRO_UNITS |= {"HOUR": 3_600_000_000, "DAY": 86_400_000_000, "WEEK": 604_800_000_000}


def _unit_name(node: Node, name: str) -> str:
    unit = node.value if isinstance(node, Literal) else None
    word = str(unit).upper() if isinstance(unit, str) else ""
    word = "DAY" if word == "DAYOFYEAR" and name == "timestampadd" else word
    if word not in _MONTH_UNITS and word not in _MICRO_UNITS:
        raise Refused(f"{name}() by {unit!r}", "use YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE or SECOND")
    return word


def _own_timestamp(node: Node, name: str) -> Node:
    return node if family(node.dtype) == "timestamp_ntz" else argument("z", node, name)


def _timestampadd(args: Sequence[Node]) -> Node:
    if len(args) == 2:
        return _shift("+")(args)
    unit, count, moment = _unit_name(args[0], "timestampadd"), args[1], _own_timestamp(args[2], "timestampadd")
    if family(count.dtype) != "integer":
        raise Refused(f"timestampadd() of {name_of(count.dtype)}", "add a whole number of units")
    months = unit in _MONTH_UNITS
    size = Literal((_MONTH_UNITS if months else _MICRO_UNITS)[unit], INT if months else LONG)
    product = call("*", (cast(count, size.dtype), size), size.dtype, fallible=True)
    return call("add months" if months else "add micros", (moment, product), moment.dtype, fallible=True)


def _timestampdiff(args: Sequence[Node]) -> Node:
    if len(args) == 2:
        return _datediff(args)
    unit = _unit_name(args[0], "timestampdiff")
    start, end = (cast(_own_timestamp(a, "timestampdiff"), TIMESTAMP_NTZ) for a in args[1:])
    if unit in _MONTH_UNITS:
        return call("whole months", (start, end, Literal(_MONTH_UNITS[unit], LONG)), LONG, fallible=True)
    return call("timestampdiff", (start, end, Literal(_MICRO_UNITS[unit], LONG)), LONG, fallible=True)


_FIELDS = {
    alias: name
    for name, aliases in {
        "year": "year y years yr yrs",
        "yearofweek": "yearofweek",
        "quarter": "quarter qtr",
        "month": "month mon mons months",
        "weekofyear": "week w weeks",
        "day": "day d days",
        "dayofweek": "dayofweek dow",
        "isoweekday": "dayofweek_iso dow_iso",
        "dayofyear": "doy",
        "hour": "hour h hours hr hrs",
        "minute": "minute m min mins minutes",
        "second": "second s sec seconds secs",
    }.items()
    for alias in aliases.split()
}
_SECOND = "CAST(CAST((epoch_us({0}) % 60000000 + 60000000) % 60000000 AS DECIMAL(14,0)) * 0.000001 AS DECIMAL(8,6))"
_PARTS: dict[str, Form] = {
    **_INTERVALS,
    "second with fraction": _SECOND,
    "yearofweek": "CAST(isoyear({0}) AS INTEGER)",
    "isoweekday": "CAST(isodow({0}) AS INTEGER)",
}
_NEXT = "({0} + CAST((({1} - isodow({0}) + 13) % 7) + 1 AS INTEGER))"
_DIFF = "((epoch_us({1}) - epoch_us({0})) // {2})"
FUNCTIONS: tuple[Function, ...] = (
    Function("year", "datetime", _part("year"), 1, 1, _part_form("year")),
    Function("month", "datetime", _part("month"), 1, 1, _part_form("month")),
    Function("day", "datetime", _part("day"), 1, 1, _part_form("day")),
    Function("dayofmonth", "datetime", _part("day"), 1, 1),
    Function("date_add", "datetime", _shift("+"), 2, 2, {"date +": "({} + {})"}),
    Function("date_sub", "datetime", _shift("-"), 2, 2, {"date -": "({} - {})"}),
    Function("datediff", "datetime", _timestampdiff, 2, 3, {"datediff": "CAST({} - {} AS {type})"}),
    Function("date_diff", "datetime", _timestampdiff, 2, 3),
    Function("timestampdiff", "datetime", _timestampdiff, 3, 3, {"timestampdiff": _DIFF}),
    Function("dateadd", "datetime", _timestampadd, 2, 3),
    Function("timestampadd", "datetime", _timestampadd, 3, 3),
    Function("quarter", "datetime", _part("quarter"), 1, 1, _part_form("quarter")),
    Function("dayofyear", "datetime", _part("dayofyear"), 1, 1, _part_form("dayofyear")),
    Function("weekofyear", "datetime", _part("weekofyear"), 1, 1, _part_form("weekofyear")),
    Function("dayofweek", "datetime", _part("dayofweek"), 1, 1, {"dayofweek": "CAST(dayofweek({0}) + 1 AS {type})"}),
    Function("weekday", "datetime", _part("weekday"), 1, 1, {"weekday": "CAST(isodow({0}) - 1 AS {type})"}),
    Function("hour", "datetime", _clock("hour"), 1, 1, _part_form("hour")),
    Function("minute", "datetime", _clock("minute"), 1, 1, _part_form("minute")),
    Function("second", "datetime", _clock("second"), 1, 1, _part_form("second")),
    simple("dayname", "datetime", "t", STRING, "left(dayname({0}), 3)", spark=("DayName",)),
    simple("monthname", "datetime", "t", STRING, "left(monthname({0}), 3)", spark=("MonthName",)),
    simple("last_day", "datetime", "t", DATE, "last_day({0})"),
    Function("next_day", "datetime", _next_day, 2, 2, {"next_day": _NEXT}),
    Function("add_months", "datetime", _add_months_call, 2, 2),
    Function("trunc", "datetime", _trunc, 2, 2, {"trunc day": "CAST(date_trunc({1}, {0}) AS DATE)"}),
    Function("date_trunc", "datetime", _date_trunc, 2, 2, {"trunc time": "date_trunc({1}, {0})"}),
    simple("make_date", "datetime", "iii", DATE, "make_date({0}, {1}, {2})", fallible=True),
    simple("unix_seconds", "datetime", "Z", LONG, _floored(1_000_000)),
    simple("unix_millis", "datetime", "Z", LONG, _floored(1_000)),
    simple("unix_micros", "datetime", "Z", LONG, "epoch_us({0})"),
    simple("unix_date", "datetime", "T", INT, "CAST({0} - DATE '1970-01-01' AS INTEGER)"),
    simple("date_from_unix_date", "datetime", "I", DATE, "(DATE '1970-01-01' + {0})", fallible=True),
    Function(
        "timestamp_seconds",
        "datetime",
        _timestamp_seconds,
        1,
        1,
        {"timestamp_seconds": _timestamp_seconds_form},
    ),
    simple("timestamp_micros", "datetime", "L", TIMESTAMP, "make_timestamptz({0})", fallible=True),
    simple("timestamp_millis", "datetime", "L", TIMESTAMP, "make_timestamptz({0} * 1000)", fallible=True),
    Function("date_part", "datetime", _date_part, 2, 2, _PARTS),
    Function("datepart", "datetime", _date_part, 2, 2),
    Function("extract", "datetime", _date_part, 2, 2),
)
_BY_NAME = {f.name: f for f in FUNCTIONS}
