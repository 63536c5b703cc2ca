"""The calendar where DuckDB does not know it as Spark does: months between, time zones, timestamps from their parts."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from headwater.sql.casts import cast
from headwater.sql.datetime_text import zone_of
from headwater.sql.functions.function import Builder, Form, Function
from headwater.sql.functions.typing import argument
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    family,
    name_of,
)
from headwater.sql.udfs import Failed, define

__all__ = ["FUNCTIONS"]

# Zones without a region. What they were before 1980 differs from one edition of the zones' rules to another.
_BARE_ZONES = frozenset(["CET", "EET", "WET", "MET", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT"])
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock, in UTC
_MICRO = timedelta(microseconds=1)
_MONTH_SECONDS = 31 * 86_400
_RANGE = "a timestamp outside the years 1 to 9999 is not known here"


def _wall(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise Failed(_RANGE) from None


def _months_between(first: int, second: int, rounds: bool) -> float:
    a, b = _wall(first), _wall(second)
    months = float((a.year - b.year) * 12 + a.month - b.month)
    last = [t.day == calendar.monthrange(t.year, t.month)[1] for t in (a, b)]
    if a.day == b.day or all(last):
        return months
    seconds = [(t.hour * 60 + t.minute) * 60 + t.second for t in (a, b)]
    difference = (a.day - b.day) * 86_400 + seconds[0] - seconds[1]
    exact = months + difference / float(_MONTH_SECONDS)
    if not rounds:
        return exact
    scaled = Decimal(exact * 1e8)
    return int((scaled + Decimal("0.5")).to_integral_value("ROUND_FLOOR")) / 1e8


def _whole_months(start: int, end: int, size: int) -> int:
    a, b = _wall(start), _wall(end)
    clocks = [t - t.replace(hour=0, minute=0, second=0, microsecond=0) for t in (a, b)]
    day = b.toordinal()
    # A last day that is not complete does not count.
    if a.toordinal() < day and clocks[1] < clocks[0]:
        day -= 1
    elif a.toordinal() > day and clocks[1] > clocks[0]:
        day += 1
    last = datetime.fromordinal(day)
    days = (last.year * 12 + last.month - a.year * 12 - a.month) * 32 + last.day - a.day
    months = abs(days) // 32 // size
    return months if days >= 0 else -months


def _shifted(micros: int, source: str, target: str) -> int:
    """A wall clock of one zone as the wall clock of another at the same moment."""
    zones = [_zone_named(name) for name in (source, target)]
    if zones[0] is None or zones[1] is None:
        raise Failed(f"the time zone {source if zones[0] is None else target!r} is not known here")
    try:
        moment = _wall(micros).replace(tzinfo=zones[0]).astimezone(UTC).astimezone(zones[1])
    except OverflowError:
        raise Failed(_RANGE) from None
    if moment.year < 1980 and not _BARE_ZONES.isdisjoint((source, target)):
        raise Failed(f"the zone {source if source in _BARE_ZONES else target!r} before 1980", "name it by its region")
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICRO


def _zone_named(name: str) -> tzinfo | None:
    return ZoneInfo(name) if name in _BARE_ZONES else zone_of(name)


def _made(year: int, month: int, day: int, hour: int, minute: int, second: Decimal, zone: str) -> int:
    whole = int(second)
    micros = int((second - whole) * 1_000_000)
    # 60 seconds are the next minute, but nothing after them.
    carried = 60 if whole == 60 and micros == 0 else 0
    if not 1 <= year <= 9999:
        raise Failed(_RANGE)
    try:
        wall = datetime(year, month, day, hour, minute, 0 if carried else whole, micros)  # noqa: DTZ001
        wall += timedelta(seconds=carried)
    except (ValueError, OverflowError):
        raise Failed("these parts are no timestamp") from None
    return _shifted((wall - _EPOCH) // _MICRO, zone, "UTC")


def _made_or_none(*parts: Any) -> int | None:
    try:
        return _made(*parts)
    except Failed:
        # A zone that is not known, and years that Spark has and this has not, are no mistakes in the parts.
        if not 1 <= parts[0] <= 9999 or _zone_named(parts[-1]) is None:
            raise
        return None


_MONTHS = define("months_between", "BIGINT BIGINT BOOLEAN", DOUBLE, _months_between)
_WHOLE_MONTHS = define("whole_months", "BIGINT BIGINT BIGINT", pa.int64(), _whole_months)
_SHIFT = define("shift_zone", "BIGINT VARCHAR VARCHAR", pa.int64(), _shifted)
_MAKE = define("make_timestamp", "INTEGER INTEGER INTEGER INTEGER INTEGER DECIMAL(16,6) VARCHAR", pa.int64(), _made)
_TRY_MAKE = define(
    "try_make_timestamp",
    "INTEGER INTEGER INTEGER INTEGER INTEGER DECIMAL(16,6) VARCHAR",
    pa.int64(),
    _made_or_none,
)
_UTC = Literal("UTC", STRING)


def _zone(node: Node, name: str) -> Node:
    if node.dtype not in (STRING, NULL):
        raise Refused(f"{name}() with a zone of type {name_of(node.dtype)}", "name the zone as 'Europe/Berlin'")
    if isinstance(node, Literal) and isinstance(node.value, str) and _zone_named(node.value) is None:
        raise Refused(f"the time zone {node.value!r}", "write it as 'Europe/Berlin' or '+02:00'")
    return cast(node, STRING)


def _months(args: Sequence[Node]) -> Node:
    moments = [cast(argument("z", a, "months_between"), TIMESTAMP_NTZ) for a in args[:2]]
    rounds = cast(argument("b", args[2], "months_between"), BOOLEAN) if len(args) == 3 else Literal(True, BOOLEAN)
    return call("months_between", (*moments, rounds), DOUBLE, fallible=True)


def _utc(name: str, *, back: bool) -> Builder:
    def build(args: Sequence[Node]) -> Node:
        moment = cast(argument("z", args[0], name), TIMESTAMP_NTZ)
        zone = _zone(args[1], name)
        zones = (zone, _UTC) if back else (_UTC, zone)
        return cast(call("shift zone", (moment, *zones), TIMESTAMP_NTZ, fallible=True), TIMESTAMP)

    return build


def _convert(args: Sequence[Node]) -> Node:
    source, target, moment = (_UTC, *args) if len(args) == 2 else args
    if family(moment.dtype) not in ("timestamp_ntz", "timestamp", "date"):
        raise Refused(f"convert_timezone() of {name_of(moment.dtype)}", "cast it to timestamp_ntz first")
    zones = (_zone(source, "convert_timezone"), _zone(target, "convert_timezone"))
    return call("shift zone", (cast(moment, TIMESTAMP_NTZ), *zones), TIMESTAMP_NTZ, fallible=True)


def _at_time(name: str, dtype: pa.DataType, args: Sequence[Node]) -> Node:
    """The time of a constant on a date, on the clocks of a zone where one is given."""
    day, clock = cast(argument("t", args[0], name), TIMESTAMP_NTZ), args[1]
    assert isinstance(clock, Literal) and isinstance(clock.value, time)
    since = datetime.combine(_EPOCH, clock.value) - _EPOCH
    moment: Node = call("add micros", (day, Literal(since // _MICRO, LONG)), TIMESTAMP_NTZ, fallible=True)
    if len(args) == 3:
        moment = call("shift zone", (moment, _zone(args[2], name), _UTC), TIMESTAMP_NTZ, fallible=True)
    return cast(moment, dtype)


def _make(name: str, dtype: pa.DataType, *, safe: bool = False) -> Builder:
    op = "try_make_timestamp" if safe else "make_timestamp"

    def build(args: Sequence[Node]) -> Node:
        if len(args) == 1 and args[0].dtype in (DATE, NULL):
            return cast(args[0], dtype)
        if len(args) in (2, 3) and args[1].dtype == TIME:
            return _at_time(name, dtype, args)
        if len(args) < 6:
            raise Refused(f"{name}() with {len(args)} argument(s)", "give year, month, day, hour, minute and second")
        parts = tuple(argument("i", a, name) for a in args[:5])
        if family(args[5].dtype) not in ("integer", "decimal", "null"):
            raise Refused(f"{name}() with seconds of type {name_of(args[5].dtype)}", "cast them to decimal(16,6)")
        zone = _zone(args[6], name) if len(args) == 7 else _UTC
        seconds = cast(args[5], pa.decimal128(16, 6))
        return cast(call(op, (*parts, seconds, zone), TIMESTAMP_NTZ, fallible=not safe), dtype)

    return build


_ZONES: dict[str, Form] = {"shift zone": f"make_timestamp({_SHIFT}(epoch_us({{0}}), {{1}}, {{2}}))"}
_PARTS = ", ".join(f"{{{i}}}" for i in range(7))
_NOTE = "years 1 to 9999; zones by region or offset"
FUNCTIONS: tuple[Function, ...] = (
    Function(
        "months_between",
        "datetime",
        _months,
        2,
        3,
        {
            "months_between": f"{_MONTHS}(epoch_us({{0}}), epoch_us({{1}}), {{2}})",
            "whole months": f"{_WHOLE_MONTHS}(epoch_us({{0}}), epoch_us({{1}}), {{2}})",
        },
    ),
    Function("from_utc_timestamp", "datetime", _utc("from_utc_timestamp", back=False), 2, 2, _ZONES, note=_NOTE),
    Function("to_utc_timestamp", "datetime", _utc("to_utc_timestamp", back=True), 2, 2, note=_NOTE),
    Function("convert_timezone", "datetime", _convert, 2, 3, note=_NOTE),
    Function(
        "make_timestamp",
        "datetime",
        _make("make_timestamp", TIMESTAMP),
        1,
        7,
        {
            "make_timestamp": f"make_timestamp({_MAKE}({_PARTS}))",
            "try_make_timestamp": f"make_timestamp({_TRY_MAKE}({_PARTS}))",
        },
        note=_NOTE,
        spark=("MakeTimestampFromDateTime",),
    ),
    Function("make_timestamp_ltz", "datetime", _make("make_timestamp_ltz", TIMESTAMP), 2, 7, note=_NOTE),
    Function("make_timestamp_ntz", "datetime", _make("make_timestamp_ntz", TIMESTAMP_NTZ), 2, 6, note=_NOTE),
    *(
        Function(name, "datetime", _make(name, dtype, safe=True), least, most, note=_NOTE)
        for name, dtype, least, most in (
            ("try_make_timestamp", TIMESTAMP, 1, 7),
            ("try_make_timestamp_ltz", TIMESTAMP, 2, 7),
            ("try_make_timestamp_ntz", TIMESTAMP_NTZ, 2, 6),
        )
    ),
)
