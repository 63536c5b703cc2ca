"""Histories large enough for traces of several runs: the same answers as DuckDB's windows and as-of joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.amounts import everyday
from tests.incremental.ordered.histories import Play, Row, Source, arranged

from headwater.incremental.layout import Order
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.asof import AsOf
from headwater.incremental.operators.frames import Frame, FrameFunction, Frames
from headwater.incremental.operators.lag import Lag, Shift
from headwater.incremental.operators.node import Node
from headwater.incremental.operators.range_join import RangeJoin
from headwater.incremental.operators.ranks import Rank, Ranks
from headwater.incremental.operators.topk import TopK

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("t", pa.int64(), nullable=False),
        pa.field("v", pa.int64()),
        pa.field("s", pa.string()),
    ]
)
NAMES = [(n, n) for n in SCHEMA.names]
OVER = "OVER (PARTITION BY k ORDER BY t"

CASES: dict[str, tuple[Callable[[Arrange, Arrange], Node], str]] = {
    "lag": (
        lambda a, _: Lag(a, [Shift("x", "s", 2), Shift("y", "v", -3, -1)]),
        f"SELECT *, lag(s, 2) {OVER}), lead(v, 3, -1) {OVER}) FROM a",
    ),
    "rows": (
        lambda a, _: Frames(
            a, [FrameFunction("x", "sum", "v"), FrameFunction("y", "max", "s")], frame=Frame("rows", -4, 2)
        ),
        f"SELECT *, sum(v) {OVER} ROWS BETWEEN 4 PRECEDING AND 2 FOLLOWING)::BIGINT, max(s) {OVER} ROWS BETWEEN 4 PRECEDING AND 2 FOLLOWING) FROM a",
    ),
    "range": (
        lambda a, _: Frames(
            a, [FrameFunction("x", "count", "v"), FrameFunction("y", "min", "v")], frame=Frame("range", -900, 100)
        ),
        f"SELECT *, count(v) {OVER} RANGE BETWEEN 900 PRECEDING AND 100 FOLLOWING), min(v) {OVER} RANGE BETWEEN 900 PRECEDING AND 100 FOLLOWING) FROM a",
    ),
    "running": (
        lambda a, _: Frames(a, [FrameFunction("x", "sum", "v"), FrameFunction("y", "first_value", "s")]),
        f"SELECT *, sum(v) {OVER})::BIGINT, first_value(s) {OVER}) FROM a",
    ),
    "places": (
        lambda a, _: Ranks(a, [Rank("x", "row_number"), Rank("y", "dense_rank")]),
        f"SELECT *, row_number() {OVER}), dense_rank() {OVER}) FROM a",
    ),
    "tiles": (
        lambda a, _: Ranks(a, [Rank("x", "ntile", 7), Rank("y", "cume_dist")]),
        f"SELECT *, ntile(7) {OVER}), cume_dist() {OVER}) FROM a",
    ),
    "top": (
        lambda a, _: TopK(a, 20, offset=3),
        f"SELECT * FROM a QUALIFY row_number() {OVER}) BETWEEN 4 AND 23",
    ),
    "as-of": (
        lambda a, b: AsOf(a, b, NAMES, [("t", "u"), ("s", "x")]),
        "SELECT a.*, b.t, b.s FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.t >= b.t",
    ),
    "as-of, forward, strict": (
        lambda a, b: AsOf(a, b, NAMES, [("t", "u"), ("s", "x")], direction="forward", strict=True, how="inner"),
        "SELECT a.*, b.t, b.s FROM a ASOF JOIN b ON a.k = b.k AND a.t < b.t",
    ),
    "range join": (
        lambda a, b: RangeJoin(a, b, NAMES, [("t", "u"), ("s", "x")], below=20, above=50),
        "SELECT a.*, b.t, b.s FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 20 AND a.t + 50",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_equals_duckdb(name: str) -> None:
    build, query = CASES[name]
    one, two = Source(SCHEMA), Source(SCHEMA)
    left, right = arranged(one, ["k"], [Order("t")]), arranged(two, ["k"], [Order("t")])
    node = build(left, right)
    sources = [one, two][: len(node.inputs)]
    play = Play(node, sources, [])
    rng = np.random.default_rng(len(name))
    runs = 0
    for number in range(everyday(7, soak=14)):
        changes = []
        for table in play.tables:
            taken = {row[:2] for row in table}
            rows = list(table)
            gone = rng.permutation(len(rows))[: int(rng.integers(0, 250))]
            change: list[tuple[Row, int]] = [(rows[at], -1) for at in gone]
            for _ in range(3000 if number == 0 else int(rng.integers(0, 300))):
                place = (int(rng.integers(2)), int(rng.integers(20_000)))
                if place not in taken:  # one row at a place, so that the order is total
                    taken.add(place)
                    change.append(
                        ((*place, int(rng.integers(100)) or None, f"a text of some length, {rng.integers(50)}"), 1)
                    )
            changes.append(change)
        runs = max(runs, len(left.trace.runs))
        play.step(changes)
        with duckdb.connect() as db:
            for alias, source, table in zip("ab", sources, play.tables, strict=False):
                db.register(alias, source.change(table.items()).to_arrow().drop(["_weight"]))
            assert Counter(db.execute(query).fetchall()) == play.output, f"step {number}"
    assert runs > 1
