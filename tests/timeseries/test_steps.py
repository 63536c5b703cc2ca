"""Steps of the calendar: windows, bars, resampled rows and grids by month, against plain Python."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.timeseries.series_cases import answer

from headwater.base.errors import InputError
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here
from headwater.timeseries.steps import MonthSteps, begin_of, ends_of, number_of
from headwater.timeseries.stream import Stream
from headwater.timeseries.windows import Hopping, OnEvent, Session, Sliding, Tumbling

_EPOCH = dt.date(1970, 1, 1)
_KINDS = {"date": pa.date32(), "timestamp": pa.timestamp("us"), "zoned": pa.timestamp("us", "UTC")}


def _rows(seed: int, kind: str, rows: int = 60) -> pa.Table:
    rng = random.Random(seed)
    found = []
    for n in range(rows):
        day = dt.date(1968, 1, 1) + dt.timedelta(days=rng.randrange(1500))
        at: Any = day
        if kind != "date":
            zone = dt.UTC if kind == "zoned" else None
            at = dt.datetime.combine(day, dt.time(rng.choice([0, 23]), rng.choice([0, 59])), zone)
        found.append({"s": rng.choice("ab"), "t": at, "n": n, "v": float(rng.randrange(9))})
    schema = pa.schema([("s", pa.string()), ("t", _KINDS[kind]), ("n", pa.int64()), ("v", pa.float64())])
    return pa.Table.from_pylist(found, schema)


def _stream(rows: pa.Table) -> Stream:
    return Stream(Values(rows)).ordered("t", by="s", tiebreak="n")


def _start(at: Any, months: int, first: int = 0) -> Any:
    """The first day of the step that a time lies in."""
    number = (at.year * 12 + at.month - 1 - 1970 * 12 - first) // months * months + first
    year, month = divmod(number + 1970 * 12, 12)
    day = dt.date(year, month + 1, 1)
    return dt.datetime.combine(day, dt.time(), at.tzinfo) if isinstance(at, dt.datetime) else day


def _next(start: Any, months: int) -> Any:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return start.replace(year=year, month=month + 1)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(("size", "months", "origin"), [("1 month", 1, None), ("1 quarter", 3, None), ("1y", 12, 4)])
def test_windows_of_months(kind: str, size: str, months: int, origin: int | None) -> None:
    rows = _rows(months, kind)
    start = None if origin is None else dt.date(2020, origin, 1)
    node = _stream(rows).window(Tumbling(size, origin=start)).agg(n="count(*)", last="last(n)").plan
    wanted: dict[Any, list[Any]] = {}
    for row in sorted(rows.to_pylist(), key=lambda r: (r["t"], r["n"])):
        begin = _start(row["t"], months, 0 if origin is None else origin - 1)
        wanted.setdefault((row["s"], begin, _next(begin, months)), []).append(row["n"])
    found = {(r["s"], r["window_start"], r["window_end"]): (r["n"], r["last"]) for r in answer(node, by="")}
    assert found == {key: (len(of), of[-1]) for key, of in wanted.items()}


def test_so_far_bars_vwap_and_resample() -> None:
    rows = _rows(5, "zoned")
    stream = _stream(rows)
    running = answer(stream.window(Tumbling("1 month"), trigger=OnEvent()).agg(c="count(*)").plan, by="n")
    for row in running:
        assert row["window_start"] == _start(row["t"], 1)
        assert row["window_end"] == _next(row["window_start"], 1)
    bars = run_here(stream.bars("1 month", price="v").plan)
    starts = sorted({(r["s"], _start(r["t"], 1)) for r in rows.to_pylist()})
    assert sorted(zip(bars["s"].to_pylist(), bars["t"].to_pylist(), strict=True)) == starts
    traded = run_here(stream.vwap("v", "n", every="1 month").plan)
    assert sorted(zip(traded["s"].to_pylist(), traded["t"].to_pylist(), strict=True)) == starts
    grouped = run_here(stream.grouped_stats("1 month", columns="v").plan)
    assert sorted(zip(grouped["s"].to_pylist(), grouped["window_start"].to_pylist(), strict=True)) == starts


@pytest.mark.parametrize("kind", _KINDS)
def test_filled_months_have_no_holes(kind: str) -> None:
    rows = _rows(7, kind, 12)
    filled = answer(_stream(rows).resample("1 month", {"n": "count(*)"}, fill="zero").plan, by="")
    for series in "ab":
        there = sorted(_start(r["t"], 1) for r in rows.to_pylist() if r["s"] == series)
        wanted = [there[0]]
        while wanted[-1] < there[-1]:
            wanted.append(_next(wanted[-1], 1))
        assert sorted(r["t"] for r in filled if r["s"] == series) == wanted
    grid = answer(_stream(rows).interpolate("1 month", "ffill", columns="v").plan, by="")
    assert all(_start(r["t"], 1) == r["t"] for r in grid)


def test_numbers_and_begins_are_each_others_inverse() -> None:
    rng = np.random.default_rng(1)
    times = rng.integers(-40_000, 40_000, 500)
    for months in (1, 2, 3, 5, 12):
        step = MonthSteps(months, int(rng.integers(0, months)), days=True)
        begin = begin_of(number_of(times, step), step)
        assert ((begin <= times) & (times < ends_of(begin, step))).all()
        assert (number_of(begin, step) == number_of(times, step)).all()
        days = [_EPOCH + dt.timedelta(days=int(d)) for d in begin]
        assert all(d.day == 1 and (d.month - 1 + (d.year - 1970) * 12 - step.first) % months == 0 for d in days)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda s: s.window(Tumbling("1 month", offset="1 day")).agg(n="count(*)"), "`offset`"),
        (lambda s: s.window(Tumbling("1 month", origin="2024-01-15")).agg(n="count(*)"), "`origin`"),
        (lambda s: s.resample("0 months"), "`every`"),
        (lambda s: s.window(Hopping("2 months", "1 month")), "`size` is '2 months'\n.*no fixed length"),
        (lambda s: s.window(Session("1 month")), "`gap` is '1 month'\n.*no fixed length"),
        (lambda s: s.window(Sliding("1 month")), "`before` is '1 month'\n.*no fixed length"),
        (lambda s: s.join_asof(s, tolerance="1 month"), "`tolerance` is '1 month'\n.*no fixed length"),
        (lambda s: s.join_asof(s, tolerance="5 parsecs"), "`tolerance` is '5 parsecs'\n.*`30 sec`"),
        (lambda s: s.join_range(s, before="x"), "`before` is 'x'"),
        (lambda s: s.rolling("1 month", a="sum(v)"), "`size` is '1 month'\n.*no fixed length"),
        (lambda s: s.ema("v", half_life="1 year"), "`half_life` is '1 year'"),
        (lambda s: s.interpolate("1s", limit="1 month"), "`limit` is '1 month'"),
        (lambda s: s.interpolate("1 snail"), "`every` is '1 snail'"),
        (lambda s: s.resample("1 snail"), "`every` is '1 snail'"),
        (lambda s: s.vwap("v", "n", every="1 snail"), "`every` is '1 snail'"),
    ],
)
def test_refused_where_only_a_fixed_length_works(make: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make(_stream(_rows(1, "timestamp")))


def test_whole_numbers_have_no_months() -> None:
    stream = Stream(Values(pa.table({"t": [1]})), Ordering("t"))
    with pytest.raises(InputError, match=r"`size` is '1 month'\n.*a whole number"):
        stream.window(Tumbling("1 month")).agg(n="count(*)")
