"""Dates and timestamps, in UTC: their parts, and steps between them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.nodes import Call, Literal, Node, Refused, call
from headwater.sql.types import DATE, INT, NULL, family, name_of

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


_FIELDS = {"year": "year", "years": "year", "yr": "year", "month": "month", "mon": "month", "months": "month"}
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
    Function("date_part", "datetime", _date_part, 2, 2, _INTERVALS),
    Function("extract", "datetime", _date_part, 2, 2),
)
_BY_NAME = {f.name: f for f in FUNCTIONS}
