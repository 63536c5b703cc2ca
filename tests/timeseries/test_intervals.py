"""Interval sets: made disjoint, put together, stacked and unstacked, against every single moment in plain Python."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import answer

import headwater as hw
from headwater.base.errors import InputError
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.disjoint import Disjoint
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream

_KINDS = {
    "whole": pa.int64(),
    "narrow": pa.int32(),
    "timestamp": pa.timestamp("us"),
    "zoned": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}
_VALUES = {"a": pa.int64(), "b": pa.string(), "c": pa.list_(pa.int64())}
Row = dict[str, Any]


def _moment(number: int, kind: str) -> Any:
    if kind in ("whole", "narrow"):
        return number
    if kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=number)
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC if kind == "zoned" else None) + dt.timedelta(microseconds=number)


def _rows(seed: int, rows: int = 30) -> list[Row]:
    """Random intervals; what a column says at a time is a function of the time's tens, so that overlaps agree."""
    rng = random.Random(seed)
    found = []
    for _ in range(rng.randint(0, rows)):
        ten = rng.randrange(0, 5) * 10
        start = ten + rng.randrange(10)
        end = min(ten + 10, start + rng.randrange(0, 8))
        found.append(
            {
                "s": rng.choice(["x", "x", "y", None]),
                "start": start,
                "end": end,
                "a": rng.choice([None, ten]),
                "b": rng.choice([None, None, f"b{ten // 20}"]),
                "c": rng.choice([None, [ten, None]]),
            }
        )
    return found


def _table(rows: list[Row], kind: str) -> pa.Table:
    times = [("start", _KINDS[kind]), ("end", _KINDS[kind])]
    schema = pa.schema([("s", pa.string()), *times, *_VALUES.items()])
    made = [{**r, "start": _moment(r["start"], kind), "end": _moment(r["end"], kind)} for r in rows]
    return pa.Table.from_pylist(made, schema)


def _expected(rows: list[Row]) -> list[Row]:
    """Every moment by itself, and neighbours that are equal put together."""
    found: list[Row] = []
    for series in dict.fromkeys(r["s"] for r in rows):
        for now in range(60):
            holding = [r for r in rows if r["s"] == series and r["start"] <= now < r["end"]]
            if not holding:
                continue
            values = {n: next((r[n] for r in holding if r[n] is not None), None) for n in _VALUES}
            last = found[-1] if found else None
            same = last is not None and last["s"] == series and last["end"] == now
            if last is not None and same and {n: last[n] for n in _VALUES} == values:
                last["end"] = now + 1
            else:
                found.append({"s": series, "start": now, "end": now + 1, **values})
    return found


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda r: (str(r["s"]), r["start"]))


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_equals_every_moment_by_itself(kind: str, seed: int) -> None:
    rows = _rows(seed)
    sets = Stream(Values(_table(rows, kind))).intervals(start="start", end="end", by="s")
    wanted = [{**r, "start": _moment(r["start"], kind), "end": _moment(r["end"], kind)} for r in _expected(rows)]
    found = answer(sets.disjoint().to_stream().plan, seed, by="")
    assert _in_order(found) == _in_order(wanted)
    again = run_here(sets.disjoint().disjoint().to_stream().plan)
    assert _in_order(again.to_pylist()) == _in_order(wanted)


def _disjoint(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    table = pa.table(
        {
            "start": [r[0] for r in rows],
            "end": [r[1] for r in rows],
            "a": pa.array([r[2] for r in rows], pa.int64()),
            "b": pa.array([r[3] for r in rows], pa.int64()),
        }
    )
    node = Disjoint(Values(table), "start", "end", ())
    return sorted(tuple(row.values()) for row in run_here(node).to_pylist())


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        # An overlap, one inside of another, the same start, the same end, the same bounds, apart and touching.
        ([(10, 14, 5, None), (9, 11, None, 0)], [(9, 10, None, 0), (10, 11, 5, 0), (11, 14, 5, None)]),
        ([(9, 14, 5, None), (10, 11, None, 0)], [(9, 10, 5, None), (10, 11, 5, 0), (11, 14, 5, None)]),
        ([(9, 14, 5, None), (9, 11, None, 0)], [(9, 11, 5, 0), (11, 14, 5, None)]),
        ([(9, 14, 5, None), (11, 14, None, 0)], [(9, 11, 5, None), (11, 14, 5, 0)]),
        ([(1, 2, None, 4), (1, 2, 7, None)], [(1, 2, 7, 4)]),
        ([(1, 2, 1, None), (4, 5, 1, None)], [(1, 2, 1, None), (4, 5, 1, None)]),
        ([(1, 2, 1, None), (2, 5, 2, None)], [(1, 2, 1, None), (2, 5, 2, None)]),
        # Touching and equal: one. All null: it holds, and says nothing. Of no length: it never holds.
        ([(1, 2, 1, None), (2, 5, 1, None)], [(1, 5, 1, None)]),
        ([(1, 3, None, None), (2, 5, 1, None)], [(1, 2, None, None), (2, 5, 1, None)]),
        ([(3, 3, 9, 9), (2, 5, 1, None)], [(2, 5, 1, None)]),
        ([], []),
    ],
)
def test_the_kinds_of_overlap(rows: Any, wanted: Any) -> None:
    assert _disjoint(rows) == wanted


def test_several_that_hang_together() -> None:
    rows = [(14, 17, 1, None), (14, 16, None, 1), (9, 11, 3, None), (10, 14, 3, None), (16, 21, None, 2)]
    wanted = [(9, 14, 3, None), (14, 16, 1, 1), (16, 17, 1, 2), (17, 21, None, 2)]
    assert _disjoint(rows) == wanted


def test_values_that_differ_are_refused() -> None:
    with pytest.raises(InputError, match="overlap at 13 differ in `b`") as refused:
        _disjoint([(13, 15, None, 4), (12, 14, 6, 3)])
    assert refused.value.code == "E1025"
    # Far apart in order: the long one reaches over those between.
    with pytest.raises(InputError, match="differ in `a`"):
        _disjoint([(0, 50, 1, None), *((n, n + 1, None, n) for n in range(1, 40)), (45, 46, 2, None)])


def test_what_is_no_interval() -> None:
    with pytest.raises(InputError, match="ends before it begins: from 5 to 4") as refused:
        _disjoint([(5, 4, 1, None)])
    assert refused.value.code == "E1026"
    rows = pa.table({"start": [1], "end": pa.array([None], pa.int64())})
    with pytest.raises(InputError, match="the time column `end` is null"):
        run_here(Disjoint(Values(rows), "start", "end", ()))
    rows = pa.table({"start": pa.array([None], pa.int64()), "end": [1]})
    with pytest.raises(InputError, match="the time column `start` is null"):
        run_here(Disjoint(Values(rows), "start", "end", ()))


def test_union_and_stacks_there_and_back() -> None:
    rows = _table(_rows(3), "whole").select(["s", "start", "end", "a"])
    stream = Stream(Values(rows)).ordered("start", by="s")
    sets = stream.intervals(end="end")
    assert repr(sets) == "Intervals(from start to end by s: a)"
    both = run_here(sets.union(sets).to_stream().plan)
    assert both.num_rows == 2 * rows.num_rows
    assert _in_order(run_here(sets.union(sets).disjoint().to_stream().plan).to_pylist()) == _in_order(
        run_here(sets.disjoint().to_stream().plan).to_pylist()
    )
    wide = pa.table({"start": [9, 9], "end": [14, 11], "a": [5, None], "b": [None, 0]})
    stacked = Stream(Values(wide)).intervals(start="start", end="end").stacked(name="what", value="v")
    long = [(9, 14, "a", 5), (9, 11, "b", 0)]
    assert [tuple(r.values()) for r in run_here(stacked.plan).to_pylist()] == long
    again = stacked.intervals(start="start", end="end", name="what", value="v", names=["a", "b"])
    assert run_here(again.to_stream().plan).to_pydict() == wide.to_pydict()
    some = stacked.intervals(start="start", end="end", name="what", value="v", names=["b"])
    assert run_here(some.to_stream().plan).to_pydict() == {"start": [9], "end": [11], "b": [0]}


def test_states_are_intervals() -> None:
    doors = Stream(Values(pa.table({"t": [1, 2, 5, 9], "open": [True, True, False, True]}))).ordered("t")
    states = doors.state_intervals("open").filter("until IS NOT NULL").select("start", "until", "open")
    found = run_here(states.intervals(start="start", end="until").disjoint().to_stream().plan)
    assert found.to_pydict() == {"start": [1, 5], "until": [5, 9], "open": [True, False]}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"start": "start", "end": "start"}, "`end`"),
        ({"start": "start", "end": "day"}, "`end`"),
        ({"end": "end"}, "`time`"),
        ({"start": "start", "end": "end", "by": "end"}, "`by`"),
        ({"start": "start", "end": "end", "name": "what"}, "`names`"),
        ({"start": "start", "end": "end", "name": "a", "value": "a", "names": ["x"]}, "`name`"),
        ({"start": "start", "end": "end", "name": "what", "value": "a", "names": ["start"]}, "`names`"),
    ],
)
def test_arguments(arguments: Any, says: str) -> None:
    rows = pa.table({"start": [1], "end": [2], "day": pa.array([1], pa.date32()), "what": ["x"], "a": [1]})
    with pytest.raises(InputError, match=says):
        Stream(Values(rows)).intervals(**arguments)


def test_other_sets_are_refused() -> None:
    rows = pa.table({"start": [1], "end": [2], "a": [1]})
    sets = Stream(Values(rows)).intervals(start="start", end="end")
    with pytest.raises(InputError, match="`other`"):
        sets.union(rows)
    with pytest.raises(InputError, match="`other`"):
        sets.union(Stream(Values(rows)).intervals(start="end", end="start"))
    with pytest.raises(InputError, match="at least one column"):
        Stream(Values(rows.select(["start", "end"]))).intervals(start="start", end="end").stacked()


def test_on_spark(spark: Any, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake", spark=spark)
    rows = _rows(5, 60)
    lake.write("shifts", _table(rows, "zoned"))
    sets = lake.stream("shifts", time="start", by="s").intervals(end="end").disjoint()
    wanted = [{**r, "start": _moment(r["start"], "zoned"), "end": _moment(r["end"], "zoned")} for r in _expected(rows)]
    stream = sets.to_stream()
    assert stream.ordering == Ordering("start", ("s",), ("end",))
    assert _in_order(stream.collect().to_pylist()) == _in_order(wanted)
