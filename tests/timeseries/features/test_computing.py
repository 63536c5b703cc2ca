"""What a region of a large table is computed from is sifted in this process, and given to Spark only where too much is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.timeseries.features import computing
from headwater.timeseries.features.computing import Computation, within
from headwater.timeseries.features.following import followed
from headwater.timeseries.features.region import region_of
from headwater.timeseries.node import Node
from headwater.timeseries.running.here import run_here
from headwater.timeseries.running.narrowing import narrowed

ROWS, CARDS = 2_000, 50


def plan_within(lake: hw.Lake, cards: list[int]) -> Node:
    stream = lake.stream("payments", time="ts", by="card", tiebreak="id").rolling(40, n="count(*)", s="sum(amount)")
    plan = narrowed(stream.plan)
    times = [np.full(len(cards), end) for end in (500, 1_500)]
    return within(plan, followed(plan, stream.ordering), region_of(pa.table({"card": cards}), *times))


@pytest.fixture
def lake(tmp_path: Path) -> hw.Lake:
    made = hw.connect(tmp_path)
    ids = np.arange(ROWS)
    made.write("payments", pa.table({"id": ids, "card": ids * 7 % CARDS, "ts": ids, "amount": ids % 90}))
    return made


def test_few_rows_of_many_are_computed_here(lake: hw.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_within(lake, [3, 11])
    expected = run_here(plan).sort_by("id")
    assert 0 < expected.num_rows < 60
    monkeypatch.setattr(computing, "HERE_ROWS", 200)
    assert Computation.of(plan).engine == "spark"
    found = Computation.of_region(plan)
    assert (found.engine, found.rows) == ("local", ROWS)
    assert found.collect(lake.environment(), plan.schema).sort_by("id").equals(expected)


def test_many_rows_are_not(lake: hw.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "HERE_ROWS", 200)
    assert Computation.of_region(plan_within(lake, list(range(CARDS)))).engine == "spark"
    monkeypatch.setattr(computing, "HERE_BYTES", 100)
    assert Computation.of_region(plan_within(lake, [3])).engine == "spark"
    monkeypatch.undo()
    monkeypatch.setattr(computing, "HERE_ROWS", 200)
    monkeypatch.setattr(computing, "SIFTED_ROWS", ROWS - 1)
    assert Computation.of_region(plan_within(lake, [3])).engine == "spark"


def test_rows_lie_in_the_order_of_their_times(lake: hw.Lake) -> None:
    """So that those of a change of late are found in the last row groups."""

    def velocity(lake: hw.Lake) -> hw.Stream:
        return lake.stream("payments", time="ts", by="card", tiebreak="id").rolling(40, n="count(*)")

    table = lake.features("velocity", velocity, refresh=True)
    assert table.to_arrow()["ts"].to_pylist() == list(range(ROWS))
    assert table.verify().equal
