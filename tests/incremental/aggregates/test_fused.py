"""The fused step: its kernel is asked for after many steps, and until it is there the pieces do the same."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.operators import fused
from headwater.incremental.operators.aggregate import _WORTH_PIECES
from headwater.testing.circuits import Integral


def _circuit() -> hw.Circuit:
    c = hw.Circuit()
    t = c.input("t", pa.schema([("g", pa.int64()), ("v", pa.int64())]))
    t.group_by("g").agg(n="count(*)", s="sum(v)", lo="min(v)", hi="max(v)").output("o")
    return c


def _batch(rng: random.Random) -> pa.RecordBatch:
    n = rng.randrange(1, 60)
    return pa.record_batch(
        {
            "g": pa.array([rng.randrange(40) for _ in range(n)], pa.int64()),
            "v": pa.array([rng.randrange(-9, 9) for _ in range(n)], pa.int64()),
        }
    )


def test_the_kernel_is_asked_for_after_many_steps_and_used_when_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    now = [0]

    def is_ready(kernel: Any) -> bool:
        asked.append(now[0])
        return now[0] >= 8

    monkeypatch.setattr(fused, "_WORTH_COMPILING", 4)
    monkeypatch.setattr(fused, "is_loaded", lambda *_: False)
    monkeypatch.setattr(fused, "is_ready", is_ready)
    used: list[int] = []
    whole = fused.Fused.step

    def stepped(self: fused.Fused, delta: Any) -> Any:
        used.append(now[0])
        return whole(self, delta)

    monkeypatch.setattr(fused.Fused, "step", stepped)
    c, rng, integral, live = _circuit(), random.Random(2), Integral(), list[tuple[int, int]]()
    for now[0] in range(1, 16):
        batch = _batch(rng)
        live += zip(batch["g"].to_pylist(), batch["v"].to_pylist(), strict=True)
        integral.add(c.step(t=batch)["o"].to_arrow())
        values = {g: [v for h, v in live if h == g] for g, _ in live}
        assert integral.rows == Counter((g, len(v), sum(v), min(v), max(v)) for g, v in values.items())
    assert asked == [5, 6, 7, 8]
    assert used == list(range(8, 16))


def test_small_steps_in_one_call_and_large_ones_in_pieces_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are kept in slots by the one, and in runs by the other."""
    monkeypatch.setattr(fused.Fused, "is_due", lambda _: True)
    c, rng = _circuit(), random.Random(3)
    found, given = Integral(), []
    for number in range(12):
        batch = _batch(rng) if number % 4 else _large(rng)
        given.append(batch)
        found.add(c.step(t=batch)["o"].to_arrow())
    whole = Integral()
    whole.add(_circuit().step(t=pa.Table.from_batches(given))["o"].to_arrow())
    assert found == whole


def _large(rng: random.Random) -> pa.RecordBatch:
    n = _WORTH_PIECES + 5
    groups, values = [rng.randrange(60) for _ in range(n)], [rng.randrange(-9, 9) for _ in range(n)]
    return pa.record_batch({"g": pa.array(groups, pa.int64()), "v": pa.array(values, pa.int64())})
