"""Interval joins: every step equals a recomputation by trying all pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged
from tests.incremental.ordered.test_asof import RIGHT, draw_right

import headwater as hw
from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.layout import Order
from headwater.incremental.operators.interval_join import CLASS, IntervalJoin, intervals
from headwater.incremental.store import Store

LEFT = pa.schema(
    [pa.field("lo", pa.int64()), pa.field("k", pa.string()), pa.field("hi", pa.int64()), pa.field("a", pa.string())]
)


def draw_left(rng: np.random.Generator) -> Row:
    lo, hi = (None if rng.random() < 0.1 else int(rng.integers(-15, 25)) for _ in range(2))
    if lo is not None and rng.random() < 0.5:
        hi = lo + int(rng.integers(0, 4))
    if rng.random() < 0.05:
        lo, hi = -(2**63), 2**63 - 1
    return (lo, draw_right(rng)[0], hi, ["a", None, "a text that has more than twelve bytes"][int(rng.integers(3))])


def expected(left: Table, right: Table) -> Table:
    out: Table = Counter()
    for a, v in left.items():
        for b, w in right.items():
            if a[1] is not None and a[1] == b[0] and None not in {a[0], a[2], b[1]} and a[0] <= b[1] <= a[2]:
                out[(*a, *b[1:])] += v * w
    return out


def build() -> tuple[IntervalJoin, Source, Source]:
    left, right = Source(LEFT), Source(RIGHT)
    node = IntervalJoin(
        intervals(left, ["k"], "lo", "hi"),
        arranged(right, ["k"], [Order("t")]),
        [("lo", "lo"), ("k", "k"), ("hi", "hi"), ("a", "a")],
        [("t", "t"), ("seq", "seq"), ("q", "q")],
        hi="hi",
    )
    return node, left, right


@pytest.mark.parametrize("seed", range(6))
def test_equals_recomputation(seed: int) -> None:
    node, left, right = build()
    play = Play(node, [left, right], [draw_left, draw_right])
    play.check(expected, seed, steps=50, most=10)


def test_classes_are_those_that_there_ever_were() -> None:
    node, left, right = build()
    play = Play(node, [left, right], [])
    play.step([[((0, "x", 0, None), 1), ((0, "x", 5, None), 2), ((0, "x", 7, None), 1), ((None, "x", 7, None), 1)], []])
    classes = node.traces()["classes"]
    assert classes.zset().to_arrow().to_pydict() == {CLASS: [0, 3], "_weight": [1, 1]}
    play.step([[((0, "x", 0, None), -1)], [(("x", 6, 0, None), 1)]])
    assert classes.zset().to_arrow().to_pydict() == {CLASS: [0, 3], "_weight": [1, 1]}
    assert play.output == Counter({(0, "x", 7, None, 6, 0, None): 1})


@pytest.mark.parametrize("shards", [(1, 2), (2, 3), (3, 1)])
def test_every_shard_knows_the_classes_after_a_restore(shards: tuple[int, int], tmp_path: Path) -> None:
    def circuit(count: int) -> hw.Circuit:
        c = hw.Circuit("spans", shards=count)
        spans = c.input("spans", pa.schema([("k", pa.int64()), ("lo", pa.int64()), ("hi", pa.int64())]))
        times = c.input("times", pa.schema([("k", pa.int64()), ("t", pa.int64())]))
        spans.join_between(times, ("lo", "hi"), "t", by="k").select("k").output("found")
        return c

    keys = list(range(50))
    before, after = map(circuit, shards)
    before.step({"spans": pa.table({"k": keys, "lo": [0] * 50, "hi": keys})})
    store = Store(tmp_path)
    before.checkpoint(store)
    after.restore(store)
    found = after.step({"times": pa.table({"k": keys, "t": [0] * 50})})["found"].to_arrow()
    assert sorted(found["k"].to_pylist()) == keys


def test_what_is_refused() -> None:
    left, right = Source(LEFT), Source(RIGHT)
    with pytest.raises(UnsupportedError, match="both ends are"):
        intervals(left, ["k"], "lo", "a")
    with pytest.raises(InputError, match="the key and the type"):
        IntervalJoin(arranged(left, ["k"], [Order("lo")]), arranged(right, ["k"], [Order("t")]), [], [], hi="hi")
