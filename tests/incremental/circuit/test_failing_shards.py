"""A step that fails on one shard, while another is still at work, leaves nothing behind."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest
from tests.waiting import wait_until

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.incremental.aggregates.general import UserGeneral

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int64())])
_ROWS = 10_000  # enough for threads
_failed = threading.Event()
_at_work: set[int] = set()


def _count(rows: pa.Table) -> int:
    if 13 in rows["x"].to_pylist():
        _failed.set()
        raise ValueError("thirteen")
    if rows.num_rows >= _ROWS:
        _at_work.add(threading.get_ident())
        _failed.wait(0.3)  # in vain where one shard has both keys, and this one first
        time.sleep(0.02)
        _at_work.remove(threading.get_ident())
    return int(rows.num_rows)


def test_what_the_others_staged_is_rolled_back() -> None:
    circuit = hw.Circuit(shards=2)
    t = circuit.input("t", SCHEMA)
    t.group_by("k").agg(UserGeneral("n", ("x",), pa.int64(), _count)).output("o")
    total: dict[tuple[int, int], int] = {}

    def step(rows: pa.Table) -> None:
        for r in circuit.step(t=rows)["o"].to_arrow().to_pylist():
            row = (r["k"], r["n"])
            total[row] = total.get(row, 0) + r["_weight"]

    keys = range(8)
    step(pa.table({"k": list(keys), "x": [1] * 8}))
    for bad in keys:
        good = (bad + 1) % 8
        rows = {"k": [bad] + [good] * _ROWS, "x": [13] + [2] * _ROWS}
        _failed.clear()
        with pytest.raises(HeadwaterError, match="thirteen"):
            step(pa.table(rows))
        wait_until(lambda: not _at_work, "the shard that was still at work")
        step(pa.table({"k": [bad], "x": [3]}))
    step(pa.table({"k": [*keys, *keys], "x": [1] * 8 + [3] * 8, "_weight": [-1] * 16}))
    assert not {row: n for row, n in total.items() if n}
