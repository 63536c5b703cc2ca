"""Thinned series: a function of the rows alone, few enough, and with everything that stands out."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timeseries.cutting import CutAtRandom

import headwater as hw
from headwater.base.errors import InputError, NotFoundError, UnsupportedError
from headwater.timeseries.methods.plotting import chart_of
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.thinned import Thinned
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream

Point = tuple[int, float]


def _table(seed: int, count: int, kind: str) -> pa.Table:
    rng = random.Random(seed)
    span = rng.choice([5, 1000, 10**6, 2**62])
    values = [None, math.nan, math.inf, 0.0, -0.0, 1.0, 1.0]
    times: list[Any] = [rng.choice([rng.randint(-span, span) for _ in range(30)]) for _ in range(count)]
    kinds = {"integer": pa.int64(), "timestamp": pa.timestamp("us"), "date": pa.date32()}
    if kind == "date":
        times = [None if t is None else t % 2**20 for t in times]
    return pa.table(
        {
            "s": pa.array([rng.choice(["a", "a", "a", "b", "c", None]) for _ in range(count)], pa.string()),
            "k": pa.array([rng.choice([0.0, -0.0, math.nan, None]) for _ in range(count)], pa.float64()),
            "t": pa.array(times, pa.int32() if kind == "date" else pa.int64()).cast(kinds[kind]),
            "v": pa.array([rng.choice([*values, rng.gauss(0, 5)]) for _ in range(count)], pa.float64()),
            "n": pa.array([rng.choice([None, rng.randint(-9, 9)]) for _ in range(count)], pa.int32()),
        }
    )


def _points(found: pa.Table, by: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = []
    for row in found.to_pylist():
        key = tuple(repr(row[name]) for name in by)
        rows.append((key, row["__hw_column"], row["__hw_level"], row["__hw_time"], repr(row["__hw_value"])))
    return sorted(rows)


def _by_hand(table: pa.Table, by: tuple[str, ...], columns: tuple[str, ...], rows: int) -> list[tuple[Any, ...]]:
    """All series, in plain Python, by the same rule."""
    kinds = table.schema.field("t").type
    times = table["t"].cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(kinds) else table["t"].cast(pa.int64())
    series: dict[Any, list[Point]] = defaultdict(list)
    for time, row in zip(times.to_pylist(), table.drop_columns("t").to_pylist(), strict=True):
        if time is None:
            continue
        key = tuple(repr(0.0 if row[name] == 0 else row[name]) for name in by)
        for number, name in enumerate(columns):
            value = row[name]
            usable = value is not None and math.isfinite(value)
            series[key, number].append((time, float(value) if usable else math.nan))
    found = []
    for (key, number), points in series.items():
        level = -1
        kept = points
        if len(points) > rows:
            level = next(e for e in range(64) if len({t >> e for t, _ in points}) <= rows // 4)
            kept = []
            steps: dict[int, list[Point]] = defaultdict(list)
            for point in points:
                steps[point[0] >> level].append(point)
            for inside in steps.values():
                full = [p for p in inside if not math.isnan(p[1])]
                if full:
                    chosen = [
                        min(full),
                        max(full),
                        min(full, key=lambda p: (p[1], p[0])),
                        min(full, key=lambda p: (-p[1], p[0])),
                    ]
                    kept += sorted({(t, v + 0.0) for t, v in chosen})
                else:
                    kept.append(min(inside, key=lambda p: p[0]))
        found += [(key, number, level, t, repr(v)) for t, v in kept]
    return sorted(found)


@pytest.mark.parametrize("kind", ["integer", "timestamp", "date"])
@given(st.integers(0, 10**6), st.integers(0, 300), st.sampled_from([8, 16, 1000]), st.integers(1, 4))
def test_a_function_of_the_rows(kind: str, seed: int, count: int, rows: int, parts: int) -> None:
    table = _table(seed, count, kind)
    by = [("s",), (), ("s", "k"), ("k",)][seed % 4]
    node = Thinned(Values(table), "t", by, ("v", "n"), rows=rows, series=100)
    found = run_here(node, pieces=CutAtRandom(seed), parts=parts)
    assert _same(_points(found, by)) == _same(_by_hand(table, by, ("v", "n"), rows))
    each: dict[Any, int] = defaultdict(int)
    for key, number, *_ in _points(found, by):
        each[key, number] += 1
    assert max(each.values(), default=0) <= rows


def _same(points: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Zeros are one, with and without a sign, and equal points of a step are one."""
    shown = [(k, c, level, t, "0.0" if v == "-0.0" else v) for k, c, level, t, v in points]
    whole = [p for p in shown if p[2] < 0]
    return sorted([*whole, *{p for p in shown if p[2] >= 0}])


@given(st.integers(0, 10**6))
def test_the_first_series(seed: int) -> None:
    rng = random.Random(seed)
    names = [rng.choice([None, *"abcdefgh"]) for _ in range(60)]
    table = pa.table({"s": pa.array(names, pa.string()), "t": range(60), "v": [1.0] * 60})
    node = Thinned(Values(table), "t", ("s",), ("v",), rows=8, series=3)
    found = run_here(node, pieces=CutAtRandom(seed))
    wanted = sorted({n or "" for n in names})[:4]
    assert sorted({s or "" for s in found["s"].to_pylist()}) == wanted
    chart = chart_of(found, node, "line")
    assert [part.label for part in chart.parts] == [name or "null" for name in wanted[:3]]
    assert chart.note.startswith("the first 3 series") == (len(set(names)) > 3)


def test_what_stands_out_is_there() -> None:
    count = 100_000
    values = [math.sin(i / 1000) for i in range(count)]
    values[54_321] = 40.0
    values[77_777] = -40.0
    node = Thinned(Values(pa.table({"t": range(count), "v": values})), "t", (), ("v",), rows=400, series=8)
    found = run_here(node, pieces=lambda t: [t.slice(k, 7_000) for k in range(0, count, 7_000)])
    assert found.num_rows <= 400
    points = set(zip(found["__hw_time"].to_pylist(), found["__hw_value"].to_pylist(), strict=True))
    assert {(54_321, 40.0), (77_777, -40.0), (0, 0.0), (count - 1, values[-1])} <= points


def test_what_is_refused() -> None:
    rows = pa.table({"s": ["a"], "t": [1], "v": [1.0], "l": [[1]]})
    stream = Stream(Values(rows), Ordering("t", ("s",)))
    with pytest.raises(UnsupportedError, match="`l`"):
        stream.plot("l")
    with pytest.raises(UnsupportedError):
        stream.plot("v", by="l")
    with pytest.raises(NotFoundError):
        stream.plot("price")
    with pytest.raises(InputError, match="line, points or bars"):
        stream.plot("v", kind="pie")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 8"):
        stream.plot("v", rows=3)
    with pytest.raises(InputError, match="at least 1"):
        stream.plot("v", series=0)
    with pytest.raises(InputError, match="columns of numbers"):
        Stream(Values(rows.select(["s", "t"])), Ordering("t", ("s",))).plot()
    with pytest.raises(InputError, match="time"):
        Stream(Values(rows)).plot("v")


def test_on_spark(spark: Any, tmp_path: Any) -> None:
    start = dt.datetime(2024, 3, 10, tzinfo=dt.UTC)
    rng = random.Random(3)
    rows = pa.table(
        {
            "s": [rng.choice(["a", "b", "c"]) for _ in range(3_000)],
            "ts": pa.array([start + dt.timedelta(seconds=k) for k in range(3_000)], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(k % 100) for k in range(3_000)], pa.decimal128(10, 2)),
            "up": [k % 2 == 0 for k in range(3_000)],
            "what": ["x"] * 3_000,
        }
    )
    lake = hw.connect(tmp_path, spark=spark)
    for begin in range(0, 3_000, 1_000):
        lake.write("trades", rows.slice(begin, 1_000))
    trades = lake.stream("trades", time="ts", by="s")
    node = Thinned(Values(rows), "ts", ("s",), ("price", "up"), rows=100, series=2)
    wanted = chart_of(run_here(node), node, "line")
    chart = trades.plot(rows=100, series=2)
    assert chart.svg() == wanted.svg()
    assert [part.label for part in chart.parts] == ["a · price", "a · up", "b · price", "b · up"]
    assert chart.note == "the first 2 series; thinned to 100 points of each"
    assert all(len(part.times) <= 100 for part in chart.parts)
    mean = trades.resample("10 minutes", {"mean": "avg(price)"}).plot(by=(), kind="bars", title="mean price")
    assert mean.title == "mean price"
    assert [(part.label, part.kind, len(part.times)) for part in mean.parts] == [("mean", "bars", 15)]  # type: ignore[union-attr]
