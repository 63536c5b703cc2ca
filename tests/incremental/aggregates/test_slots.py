"""Sums in slots: full slots, steps that do not happen, restarts, keys that do not fit, against a dictionary."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental import slots
from headwater.incremental.operators import fused
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.store import Store
from headwater.testing.circuits import Integral

LONG = "a key of more than twelve bytes, number "


def circuit(key: pa.DataType) -> hw.Circuit:
    c = hw.Circuit()
    t = c.input("t", pa.schema([("g", key), ("v", pa.int64())]))
    grouped = t.group_by("g").agg(n="count(*)", s="sum(v)", lo="min(v)", hi="max(v)")
    grouped.output("o")
    grouped.with_columns(bad="1 div (s - 1000000)").output("p")  # fails if a sum is a million
    return c


def sums_of(c: hw.Circuit) -> Any:
    return next(v.node for v in c.vertices if isinstance(v.node, Aggregate)).traces()["sums"]


@pytest.fixture(autouse=True)
def small_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_FIRST", 16)
    monkeypatch.setattr(slots, "_MOST", 128)
    monkeypatch.setattr(fused.Fused, "is_due", lambda _: True)


@pytest.mark.parametrize("kind", ["whole numbers", "texts", "long texts among them"])
@pytest.mark.parametrize("seed", range(4))
def test_slots_equal_a_dictionary(kind: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{kind} {seed}")
    dtype = pa.int64() if kind == "whole numbers" else pa.string()
    c = circuit(dtype)
    live: list[tuple[Any, int]] = []
    integral = Integral()
    with Store(str(tmp_path / "state")) as store:
        for step in range(120):
            rows: list[tuple[Any, int, int]] = []
            for _ in range(rng.choice([0, 1, 5, 30, 30, 200])):
                g: Any = rng.choice([rng.randrange(5), rng.randrange(300), None])
                if g is not None and kind != "whole numbers":
                    g = f"{LONG if g % 97 == 7 and kind.startswith('long') else 'g'}{g}"
                rows.append((g, rng.randrange(-50, 50), 1))
            gone = rng.sample(live, min(len(live), rng.randrange(20)))
            table = pa.table(
                {
                    "g": pa.array([r[0] for r in rows] + [g for g, _ in gone], dtype),
                    "v": pa.array([r[1] for r in rows] + [v for _, v in gone], pa.int64()),
                    "_weight": pa.array([1] * len(rows) + [-1] * len(gone), pa.int64()),
                }
            )
            if rng.random() < 0.2:  # a step that does not happen
                key = rows[0][0] if rows else None
                total = sum(v for g, v in live if g == key)
                more = 1_000_000 - total - sum(v for g, v, _ in rows if g == key) + sum(v for g, v in gone if g == key)
                bad = pa.table({"g": pa.array([key], dtype), "v": [more], "_weight": [1]})
                with pytest.raises(hw.ExpressionError):
                    c.step(t=pa.concat_tables([table, bad]))
            for pair in gone:
                live.remove(pair)
            live += [(g, v) for g, v, _ in rows]
            integral.add(c.step(t=table)["o"].to_arrow())
            if rng.random() < 0.1:
                c.checkpoint(store)
            if rng.random() < 0.05:
                c.checkpoint(store)
                c = circuit(dtype)
                c.restore(store)
            if step % 10 == 9:
                groups: dict[Any, list[int]] = {}
                for g, v in live:
                    groups.setdefault(g, []).append(v)
                right = Counter({(g, len(v), sum(v), min(v), max(v)): 1 for g, v in groups.items()})
                assert Counter(integral.rows) == right


def test_what_is_in_slots_is_seen_by_whoever_looks_at_the_trace() -> None:
    c = circuit(pa.int64())
    for _ in range(3):
        c.step(t=pa.table({"g": [1, 2], "v": [5, 6]}))
    trace = sums_of(c)
    assert trace.slots.differ
    assert len(trace) == 2 and not trace.slots.differ
    c.step(t=pa.table({"g": [1], "v": [1]}))
    assert sorted(row["_weight"] > 0 for row in trace.zset().to_arrow().to_pylist()) == [True, True]
    assert c.step(t=pa.table({"g": [1], "v": [1]}))["o"].to_arrow().num_rows == 2


def test_sums_too_large_for_slots_go_to_the_trace() -> None:
    c = circuit(pa.int64())
    c.step(t=pa.table({"g": [1, 2], "v": [1, 4], "_weight": [1, 1]}))
    many = (1 << 31) - 2
    c.step(t=pa.table({"g": [1], "v": [1 << 31], "_weight": [many]}))
    assert sums_of(c).slots.is_off
    found = c.step(t=pa.table({"g": [2, 1], "v": [5, 7]}))["o"].to_arrow().to_pylist()
    now = {r["g"]: (r["n"], r["s"]) for r in found if r["_weight"] > 0}
    assert now == {1: (many + 2, (many << 31) + 8), 2: (2, 9)}
