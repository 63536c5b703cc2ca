"""What traces cost: it follows the change, not the state, whatever the keys are. Compared by CPU time, in ratios."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

_I64 = pa.int64()
_KV = Layout(pa.schema([pa.field("k", _I64, False), pa.field("v", _I64, False)]), keys=1)


def _keys(keys: Iterable[int]) -> ZSet:
    table = pa.table({"k": list(keys)}, schema=pa.schema([_KV.schema.field(0)]))
    return ZSet.packed(Layout(table.schema, keys=1), table)


def _cpu(rows: int, keys: int) -> float:
    """Seconds of this thread for adding rows of so many keys in batches, and looking a hundred up in each."""
    rng = np.random.default_rng(5)
    trace = Trace(_KV)
    best = float("inf")
    for _ in range(3):
        trace = Trace(_KV)
        begin = time.thread_time()
        for at in range(0, rows, 10_000):
            v = rng.permutation(10_000) + at
            trace.add(ZSet.packed(_KV, pa.table({"k": v % keys, "v": v}, schema=_KV.schema)))
        trace.weights(_keys(range(min(keys, 100))))
        best = min(best, time.thread_time() - begin)
    assert len(trace.zset()) == rows
    return best


def test_a_hot_key_costs_no_more_than_many_keys() -> None:
    _cpu(10_000, 1)
    assert _cpu(200_000, 1) < 12 * _cpu(200_000, 200_000) + 0.2


def test_one_large_change_is_one_run() -> None:
    trace = Trace(_KV)
    n = 300_000
    trace.add(ZSet.packed(_KV, pa.table({"k": np.arange(n)[::-1], "v": np.arange(n)}, schema=_KV.schema)))
    assert [len(run) for run in trace.runs] == [n]
    assert trace.weights(_keys([5, n])).tolist() == [[1], [0]]
