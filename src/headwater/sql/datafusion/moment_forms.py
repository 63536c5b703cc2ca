"""Dates and timestamps in DataFusion, in UTC, as counts of days and microseconds.

DataFusion's own functions go by way of nanoseconds, which end in 2262; the parts of a date do not. So months and years
are put together again from parts, and everything shorter is arithmetic on the count.
"""

from __future__ import annotations

import re

from headwater.sql.datafusion.spelling import raise_form, refusal, type_name, witness
from headwater.sql.functions.function import Form
from headwater.sql.nodes import Call, Literal
from headwater.sql.quoting import literal_sql
from headwater.sql.types import DATE, STRING, family

__all__ = ["FORMS"]

_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def _part(field: str) -> Form:
    return f"CAST(date_part('{field}', {{}}) AS {{type}})"


def _moved(sign: str) -> Form:
    # Raises where the count of days leaves 32 bits.
    return f"CAST(CAST(CAST(CAST({{0}} AS INT) AS BIGINT) {sign} CAST({{1}} AS BIGINT) AS INT) AS DATE)"


def _days(x: str) -> str:
    return f"CAST(CAST({x} AS INT) AS BIGINT)"


def _month_start(x: str, months: str) -> str:
    """The first day of the month that lies ``months`` after the one of ``x``."""
    number = f"(CAST(date_part('year', {x}) AS BIGINT) * 12 + CAST(date_part('month', {x}) AS BIGINT) - 1 + {months})"
    # The division cuts towards zero: from year 0 on it is the floor. The calendar here ends after the year 262,000.
    why = raise_form("a date too far away", x, DATE)
    made = f"make_date(CAST({number} / 12 AS INT), CAST({number} % 12 + 1 AS INT), 1)"
    return f"(CASE WHEN {number} NOT BETWEEN 0 AND 2999999 THEN {why} ELSE {made} END)"


def _add_months_to_day(x: str, months: str) -> str:
    start, after = _month_start(x, months), _month_start(x, f"{months} + 1")
    length = f"({_days(after)} - {_days(start)})"
    day = f"least(CAST(date_part('day', {x}) AS BIGINT), {length})"
    return f"CAST(CAST({_days(start)} + {day} - 1 AS INT) AS DATE)"


def _add_months(node: Call, a: list[str]) -> str:
    months = f"CAST({a[1]} AS BIGINT)"
    if family(node.dtype) == "date":
        return _add_months_to_day(a[0], months)
    count, day = f"CAST({a[0]} AS BIGINT)", f"CAST({a[0]} AS DATE)"
    clock = f"({count} - {_days(day)} * {_MICROS['day']})"
    moved = f"{_days(_add_months_to_day(day, months))} * {_MICROS['day']} + {clock}"
    return f"CAST({moved} AS {type_name(node.dtype)})"


def _add_micros(node: Call, a: list[str]) -> str:
    total = f"CAST(CAST({a[0]} AS BIGINT) AS DECIMAL(20,0)) + CAST({a[1]} AS DECIMAL(20,0))"
    return f"CAST(CAST({total} AS BIGINT) AS {type_name(node.dtype)})"


def _last_day(_: Call, a: list[str]) -> str:
    return f"CAST(CAST({_days(_month_start(a[0], '1'))} - 1 AS INT) AS DATE)"


def _unit(node: Call) -> str:
    unit = node.args[1]
    if not isinstance(unit, Literal) or not isinstance(unit.value, str):
        raise refusal(f"{node.op}() with a unit that is not a constant")
    return unit.value


def _day_cut(x: str, unit: str) -> str:
    if unit == "month":
        return f"make_date(CAST(date_part('year', {x}) AS INT), CAST(date_part('month', {x}) AS INT), 1)"
    if unit == "year":
        return f"make_date(CAST(date_part('year', {x}) AS INT), 1, 1)"
    if unit == "quarter":
        month = f"CAST((date_part('quarter', {x}) - 1) * 3 + 1 AS INT)"
        return f"make_date(CAST(date_part('year', {x}) AS INT), {month}, 1)"
    assert unit == "week"
    # Day 0 was a Thursday; weeks begin on Monday.
    return f"CAST(CAST({_days(x)} - (({_days(x)} + 3) % 7 + 7) % 7 AS INT) AS DATE)"


def _trunc_day(node: Call, a: list[str]) -> str:
    return _day_cut(a[0], _unit(node))


def _trunc_time(node: Call, a: list[str]) -> str:
    unit = _unit(node)
    if unit in _MICROS:
        return f"CAST({_floor(f'CAST({a[0]} AS BIGINT)', _MICROS[unit])} * {_MICROS[unit]} AS {type_name(node.dtype)})"
    return f"CAST({_day_cut(f'CAST({a[0]} AS DATE)', unit)} AS {type_name(node.dtype)})"


def _floor(x: str, unit: int) -> str:
    return f"(({x} - (({x} % {unit}) + {unit}) % {unit}) / {unit})"


def _floored(unit: int) -> Form:
    return lambda _, a: _floor(f"CAST({a[0]} AS BIGINT)", unit)


_PICTURES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def _strftime(picture: object) -> str:
    """A plain pattern of Java's, in the spelling known here."""
    parts = re.findall(r"[A-Za-z]+|[ :/.,_-]+", picture) if isinstance(picture, str) else []
    if "".join(parts) != picture or any(p[0].isalpha() and p not in _PICTURES for p in parts):
        raise refusal(f"the pattern {picture!r}")
    return "".join(_PICTURES.get(p, p) for p in parts)


def _date_format(node: Call, a: list[str]) -> str:
    picture = node.args[1]
    written = literal_sql(_strftime(picture.value if isinstance(picture, Literal) else None))
    why = raise_form("a year outside 1000 to 9999 has no common text", witness(node.args, a), STRING)
    inside = f"date_part('year', {a[0]}) BETWEEN 1000 AND 9999"
    null = "CAST(NULL AS VARCHAR)"
    return f"(CASE WHEN {a[0]} IS NULL THEN {null} WHEN {inside} THEN to_char({a[0]}, {written}) ELSE {why} END)"


FORMS: dict[str, Form] = {
    "year": _part("year"),
    "month": _part("month"),
    "day": _part("day"),
    "quarter": _part("quarter"),
    "dayofyear": _part("doy"),
    "weekofyear": _part("week"),
    "dayofweek": _part("dow"),
    "weekday": lambda _, a: f"CAST((({_days(a[0])} + 3) % 7 + 7) % 7 AS INT)",
    "hour": _part("hour"),
    "minute": _part("minute"),
    "second": _part("second"),
    "date +": _moved("+"),
    "date -": _moved("-"),
    "datediff": "CAST(CAST(CAST({0} AS INT) AS BIGINT) - CAST(CAST({1} AS INT) AS BIGINT) AS {type})",
    "add months": _add_months,
    "add micros": _add_micros,
    "last_day": _last_day,
    "trunc day": _trunc_day,
    "trunc time": _trunc_time,
    "make_date": "make_date({0}, {1}, {2})",
    "unix_timestamp": "(CAST({0} AS BIGINT) / 1000000)",
    "unix_seconds": _floored(1_000_000),
    "unix_millis": _floored(1_000),
    "unix_micros": "CAST({0} AS BIGINT)",
    "unix_date": "CAST({0} AS INT)",
    "date_from_unix_date": "CAST({0} AS DATE)",
    "timestamp_micros": "CAST({0} AS {type})",
    "timestamp_millis": "CAST(CAST(CAST({0} AS DECIMAL(19,0)) * 1000 AS BIGINT) AS {type})",
    "date_format": _date_format,
}
