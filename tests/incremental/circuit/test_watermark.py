"""Watermarks: late rows are kept out and reported, and state behind them goes."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.operators.aggregate import Aggregate
from headwater.testing.circuits import Integral

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("v", pa.int64())])
START = datetime(2024, 1, 1)


def rows(*seconds: int) -> pa.Table:
    times = pa.array([START + timedelta(seconds=s) for s in seconds], pa.timestamp("us"))
    return pa.table({"ts": times, "v": list(seconds)}, schema=SCHEMA)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_late_rows_are_reported(shards: int) -> None:
    rng = random.Random(3)
    c = hw.Circuit(shards=shards)
    marked = c.input("t", SCHEMA).watermark("ts", "10 seconds")
    marked.output("in time")
    marked.late().output("late")
    greatest: int | None = None
    now = 0
    for _ in range(60):
        now += rng.randint(0, 8)
        seconds = [max(0, now - rng.randint(0, 25)) for _ in range(rng.randint(0, 5))]
        outputs = c.step(t=rows(*seconds))
        late = [s for s in seconds if greatest is not None and s < greatest - 10]
        assert sorted(_expanded(outputs["late"])) == sorted(late)
        assert sorted(_expanded(outputs["in time"])) == sorted(s for s in seconds if s not in late)
        greatest = max([*seconds, *([greatest] if greatest is not None else [])], default=None)


def _expanded(change: hw.ChangeBatch) -> list[int]:
    table = change.to_arrow()
    pairs = zip(table["v"].to_pylist(), table["_weight"].to_pylist(), strict=True)
    return [v for v, w in pairs for _ in range(w)]


@pytest.mark.long
@pytest.mark.parametrize("shards", [1, 2])
def test_state_behind_the_watermark_goes_and_answers_stay(shards: int) -> None:
    c = hw.Circuit(shards=shards)
    marked = c.input("t", SCHEMA).watermark("ts", "5 seconds")
    marked.group_by("ts").agg(n="count(*)", total="sum(v)", hi="max(v)").output("o")
    integral = Integral()
    expected: dict[datetime, int] = {}
    for second in range(3000):
        integral.add(c.step(t=rows(second, second, max(0, second - 3)))["o"].to_arrow())
        for s in (second, second, max(0, second - 3)):
            expected[START + timedelta(seconds=s)] = expected.get(START + timedelta(seconds=s), 0) + 1
    assert {row[0]: row[1] for row in integral.rows} == expected
    held = sum(
        len(trace)
        for vertex in c.vertices
        if isinstance(vertex.node, Aggregate)
        for node in vertex.nodes
        for trace in node.traces().values()
    )
    assert held < 3 * 2 * 600, "three traces of 3000 keys would be 9000 rows"


def test_what_is_no_time_is_refused() -> None:
    c = hw.Circuit()
    t = c.input("t", SCHEMA)
    with pytest.raises(hw.InputError):
        t.watermark("v", "1 minute")
    with pytest.raises(hw.InputError):
        t.watermark("ts", "1 parsec")
    with pytest.raises(hw.NotFoundError):
        t.watermark("tss", "1 minute")
    with pytest.raises(hw.InputError):
        t.late()
