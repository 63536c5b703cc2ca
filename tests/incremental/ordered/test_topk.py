"""Top-k: every step equals a recomputation; changes behind the first rows say nothing."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
import pytest
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged, sorted_groups
from tests.incremental.ordered.test_ranks import ORDERS, SCHEMA, draw

from headwater.base.errors import InputError
from headwater.incremental.layout import Order
from headwater.incremental.operators.ranks import Rank
from headwater.incremental.operators.topk import TopK

By = Literal["row_number", "rank", "dense_rank"]


def expected(
    table: Table, keys: list[int], order: list[Order], limit: int, offset: int, by: By, ranks: list[Rank]
) -> Table:
    at = {name: i for i, name in enumerate(SCHEMA.names)}
    out: Table = Counter()
    for rows, peers in sorted_groups(table, keys, [(at[o.column], o) for o in order]):
        for i, row in enumerate(rows):
            place = {"row_number": i + 1, "rank": peers.index(peers[i]) + 1, "dense_rank": peers[i] + 1}
            if offset < place[by] <= offset + limit:
                out[(*row, *(place[r.what] for r in ranks))] += 1
    return out


@pytest.mark.parametrize("keys", [["k"], []], ids=["by key", "one group"])
@pytest.mark.parametrize("order", range(len(ORDERS)))
@pytest.mark.parametrize(("limit", "offset"), [(1, 0), (4, 0), (3, 2), (50, 0), (0, 0)])
def test_rows_equal_recomputation(keys: list[str], order: int, limit: int, offset: int) -> None:
    source = Source(SCHEMA)
    play = Play(TopK(arranged(source, keys, ORDERS[order]), limit, offset=offset), [source], [draw])
    at = [SCHEMA.names.index(k) for k in keys]
    play.check(lambda t: expected(t, at, ORDERS[order], limit, offset, "row_number", []), seed=limit, steps=60, most=10)


@pytest.mark.parametrize("order", range(len(ORDERS)))
@pytest.mark.parametrize("by", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_ranks_equal_recomputation(by: By, order: int, limit: int) -> None:
    ranks = [Rank("n", "row_number"), Rank("r", "rank"), Rank("d", "dense_rank")]
    source = Source(SCHEMA)
    play = Play(TopK(arranged(source, ["k"], ORDERS[order]), limit, by=by, ranks=ranks), [source], [draw])
    play.check(lambda t: expected(t, [0], ORDERS[order], limit, 0, by, ranks), seed=limit + 7, steps=50, most=8)


def test_a_queue_that_is_served_from_the_front() -> None:
    source = Source(SCHEMA)
    node = TopK(arranged(source, [], [Order("t")]), 3)
    play = Play(node, [source], [draw])

    def row(i: int) -> Row:
        return ("x", float(i), None, 0)

    play.step([[(row(i), 1) for i in range(500)]])
    for i in range(300):
        play.step([[(row(i), -1), (row(500 + i), 1)]])
        assert play.output == Counter({row(i + j): 1 for j in (1, 2, 3)})
    assert len(node.traces()["first"].zset()) == 3


def test_changes_behind_say_nothing() -> None:
    source = Source(SCHEMA)
    play = Play(TopK(arranged(source, ["k"], [Order("v")]), 2), [source], [draw])
    play.step([[(("x", 1.0, "a", v), 1) for v in range(10)]])
    assert not len(play.step([[(("x", 1.0, "a", 5), -1), (("x", 1.0, "b", 7), 3)]]))
    assert len(play.step([[(("x", 1.0, "a", 0), -1)]])) == 2


def test_rollback() -> None:
    source = Source(SCHEMA)
    arrange = arranged(source, ["k"], [Order("v")])
    node = TopK(arrange, 2)
    play = Play(node, [source], [draw])
    play.step([[(("x", 1.0, "a", v), 1) for v in range(10)]])
    change = [(("x", 1.0, "a", 0), -1), (("x", 0.5, "a", 1), 1)]
    first = node.step([arrange.step([source.change(change)])]).to_arrow()
    arrange.rollback()
    node.rollback()
    play.step([change])
    assert first.num_rows == 2
    assert play.output == Counter({("x", 0.5, "a", 1): 1, ("x", 1.0, "a", 1): 1})


def test_what_is_refused() -> None:
    arrange = arranged(Source(SCHEMA), ["k"], [Order("v")])
    with pytest.raises(InputError, match="zero or more rows"):
        TopK(arrange, -1)
    with pytest.raises(InputError, match="where no ranks are asked for"):
        TopK(arrange, 1, offset=1, by="rank")
    with pytest.raises(InputError, match="row_number, rank or dense_rank"):
        TopK(arrange, 1, ranks=[Rank("n", "ntile")])


def test_random_large_groups() -> None:
    rng = np.random.default_rng(3)
    source = Source(SCHEMA)
    play = Play(TopK(arranged(source, [], [Order("t"), Order("v", descending=True)]), 7, offset=3), [source], [draw])
    play.check(
        lambda t: expected(t, [], [Order("t"), Order("v", descending=True)], 7, 3, "row_number", []),
        int(rng.integers(9)),
        60,
        most=60,
    )
