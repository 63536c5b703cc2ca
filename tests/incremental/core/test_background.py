"""Merges in the background: while the owner reads and stages, with many traces at once, and across a fork of the process."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from headwater.incremental import trace as trace_module
from headwater.incremental.layout import Layout
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

_KV = Layout(pa.schema([pa.field("k", pa.int64(), False), pa.field("s", pa.string())]), keys=1)


def _delta(rng: np.random.Generator, rows: int, keys: int) -> ZSet:
    k = rng.integers(0, keys, rows)
    table = pa.table({"k": k, "s": [f"value {i % 7:>20}" for i in k.tolist()]}, schema=_KV.schema)
    return ZSet.packed(_KV, table, rng.choice([1, 1, 1, -1], rows))


def _totals(zset: ZSet) -> Counter[int]:
    found: Counter[int] = Counter()
    for k, weight in zip(zset.rows[:, 1].tolist(), zset.weights.tolist(), strict=True):
        found[k] += weight
    return found


def _is(trace: Trace, total: Counter[int], keys: ZSet, *, staged: bool = False) -> bool:
    expected = [total[k] for k in keys.rows[:, 1].tolist()]
    return bool(trace.weights(keys, staged=staged)[:, 0].tolist() == expected)


def test_reading_and_staging_while_runs_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "_LEVELS", (50, 100, 200))
    rng = np.random.default_rng(1)
    trace = Trace(_KV)
    total: Counter[int] = Counter()
    kept = []
    for i in range(120):
        delta = _delta(rng, 400, 300)
        trace.stage(delta)
        assert _is(trace, total, delta)
        if i % 10 == 9:
            trace.rollback()
            assert _is(trace, total, delta)
            continue
        total.update(_totals(delta))
        assert _is(trace, total, delta, staged=True)
        trace.commit()
        assert len(trace.spine.runs) <= 24
        if i % 25 == 0:
            kept.append((trace.snapshot(), Counter(total)))
    trace.spine.settle()
    assert trace.spine.merged_rows > 0
    assert +_totals(trace.zset()) == +total
    for runs, then in kept:
        fork = Trace(_KV, runs)
        assert +_totals(fork.zset()) == +then


def test_many_traces_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "_LEVELS", (20,))
    rng = np.random.default_rng(2)
    traces = [Trace(_KV) for _ in range(25)]
    totals: list[Counter[int]] = [Counter() for _ in traces]
    for _ in range(15):
        for trace, total in zip(traces, totals, strict=True):
            delta = _delta(rng, 60, 50)
            trace.add(delta)
            total.update(_totals(delta))
    for trace, total in zip(traces, totals, strict=True):
        trace.spine.settle()
        assert +_totals(trace.zset()) == +total


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_of_the_process_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "_LEVELS", (20,))
    rng = np.random.default_rng(3)
    trace = Trace(_KV)
    total: Counter[int] = Counter()
    for _ in range(10):
        delta = _delta(rng, 60, 50)
        trace.add(delta)
        total.update(_totals(delta))
    trace.spine.settle()
    child = os.fork()
    if child == 0:  # no assert must leave this branch
        code = 1
        try:
            for _ in range(10):
                delta = _delta(rng, 60, 50)
                trace.add(delta)
                total.update(_totals(delta))
            trace.spine.settle()
            code = 0 if +_totals(trace.zset()) == +total else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    trace.add(_delta(rng, 60, 50))
    trace.spine.settle()
