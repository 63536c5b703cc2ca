"""Ranks: every step equals a recomputation, and DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged, sorted_groups

from headwater.base.errors import InputError
from headwater.incremental.layout import Order
from headwater.incremental.operators.ranks import Rank, Ranks

SCHEMA = pa.schema(
    [
        pa.field("k", pa.string()),
        pa.field("t", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("v", pa.int64(), nullable=False),
    ]
)
LONG = "a string that does not fit into a slot"


def draw(rng: np.random.Generator) -> Row:
    return (
        None if rng.random() < 0.1 else ["x", LONG][int(rng.integers(2))],
        None if rng.random() < 0.1 else [0.0, -1.5, float("inf"), 2.0, 3.0, 7.5][int(rng.integers(6))],
        None if rng.random() < 0.25 else ["", LONG + "a", LONG + "b"][int(rng.integers(3))],
        int(rng.integers(3)),
    )


BY_PLACE = [Rank("n", "row_number"), Rank("r", "rank"), Rank("d", "dense_rank")]
ALL = [*BY_PLACE, Rank("p", "percent_rank"), Rank("c", "cume_dist"), Rank("t3", "ntile", 3)]
ORDERS = [
    [Order("t")],
    [Order("s", descending=True)],
    [Order("t", descending=True, nulls_first=True), Order("s", nulls_first=False)],
    [],
]


def expected(table: Table, keys: Sequence[int], order: Sequence[Order], ranks: Sequence[Rank]) -> Table:
    at = {name: i for i, name in enumerate(SCHEMA.names)}
    out: Table = Counter()
    for rows, peers in sorted_groups(table, keys, [(at[o.column], o) for o in order]):
        n = len(rows)
        for i, row in enumerate(rows):
            rank = peers.index(peers[i]) + 1
            size, more = divmod(n, 3)
            buckets = [b + 1 for b in range(3) for _ in range(size + (b < more))]
            values: dict[str, Any] = {
                "row_number": i + 1,
                "rank": rank,
                "dense_rank": peers[i] + 1,
                "percent_rank": (rank - 1) / (n - 1) if n > 1 else 0.0,
                "cume_dist": sum(p <= peers[i] for p in peers) / n,
                "ntile": buckets[i],
            }
            out[(*row, *(values[r.what] for r in ranks))] += 1
    return out


@pytest.mark.parametrize("keys", [["k"], []], ids=["by key", "one group"])
@pytest.mark.parametrize("order", range(len(ORDERS)))
@pytest.mark.parametrize(
    "ranks", [BY_PLACE, ALL, [Rank("d", "dense_rank")], [Rank("r", "rank")]], ids=["places", "all", "dense", "rank"]
)
def test_equals_recomputation(keys: list[str], order: int, ranks: list[Rank]) -> None:
    source = Source(SCHEMA)
    play = Play(Ranks(arranged(source, keys, ORDERS[order]), ranks), [source], [draw])
    at = [SCHEMA.names.index(k) for k in keys]
    play.check(lambda t: expected(t, at, ORDERS[order], ranks), seed=order, steps=40, most=8)


@pytest.mark.long
def test_equals_duckdb() -> None:
    source = Source(SCHEMA)
    play = Play(
        Ranks(arranged(source, ["k"], [Order("t")]), [r for r in ALL if r.what not in {"row_number", "ntile"}]),
        [source],
        [draw],
    )
    rng = np.random.default_rng(5)
    for _ in range(20):
        play.step(play.random(rng, 30))
        rows = [(row, 1) for row, w in play.tables[0].items() for _ in range(w)]
        with duckdb.connect() as db:
            db.register("t", source.change(rows).to_arrow())
            found = db.execute(
                "SELECT k, t, s, v, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w FROM t "
                "WINDOW w AS (PARTITION BY k ORDER BY t NULLS FIRST)"
            ).fetchall()
        assert Counter(found) == play.output


def test_rows_at_the_end_cost_what_they_are() -> None:
    source = Source(SCHEMA)
    play = Play(Ranks(arranged(source, ["k"], [Order("t")]), BY_PLACE), [source], [draw])
    play.step([[(("x", float(i), None, 0), 1) for i in range(5000)]])
    out = play.step([[(("x", 5000.0, None, 0), 2)]])
    assert [row[4:] for row in sorted(zip(*[c.to_pylist() for c in out.to_arrow().columns], strict=True))] == [
        (5001, 5001, 5001, 1),
        (5002, 5001, 5001, 1),
    ]


def test_a_step_rolled_back_leaves_no_trace() -> None:
    source = Source(SCHEMA)
    arrange = arranged(source, ["k"], [Order("t")])
    node = Ranks(arrange, BY_PLACE)
    play = Play(node, [source], [draw])
    play.step([[(("x", 1.0, None, 0), 1), (("x", 3.0, None, 0), 1)]])
    first = node.step([arrange.step([source.change([(("x", 2.0, None, 0), 1)])])]).to_arrow()
    arrange.rollback()
    node.rollback()
    assert node.step([arrange.step([source.change([(("x", 2.0, None, 0), 1)])])]).to_arrow().equals(first)


def test_state_has_a_row_for_each_row() -> None:
    source = Source(SCHEMA)
    node = Ranks(arranged(source, ["k"], [Order("t")]), BY_PLACE)
    play = Play(node, [source], [draw])
    rng = np.random.default_rng(1)
    for _ in range(20):
        play.step(play.random(rng))
        assert len(node.traces()["places"].zset()) == len(play.tables[0])


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="at least one bucket"):
        Ranks(arranged(Source(SCHEMA), ["k"], []), [Rank("n", "ntile", 0)])


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_differ_in_nulls_only(seed: int) -> None:
    schema = pa.schema([pa.field("t", pa.int64(), nullable=False), *(pa.field(n, pa.int64()) for n in "abc")])

    def zeros(rng: np.random.Generator) -> Row:
        return (int(rng.integers(2)), *(0 if rng.random() < 0.5 else None for _ in range(3)))

    def wanted(table: Table) -> Table:
        out: Table = Counter()
        for rows, peers in sorted_groups(table, [], [(0, Order("t"))]):
            for i, row in enumerate(rows):
                out[(*row, i + 1, peers.index(peers[i]) + 1, peers[i] + 1)] += 1
        return out

    source = Source(schema)
    play = Play(Ranks(arranged(source, [], [Order("t")]), BY_PLACE), [source], [zeros])
    play.check(wanted, seed, steps=150, most=4)
