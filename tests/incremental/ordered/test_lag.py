"""lag and lead: every step equals a recomputation, whatever the order, the types and the batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged, sorted_groups

from headwater.incremental.layout import Order
from headwater.incremental.operators.lag import Lag, Shift

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64()),
        pa.field("t", pa.int64()),
        pa.field("s", pa.string(), nullable=False),
        pa.field("v", pa.int64(), nullable=False),
    ]
)
WORDS = ["", "a", "ab", "a long string of more than twelve bytes", "a long string of more than twelve bits", "b"]


def draw(rng: np.random.Generator) -> Row:
    k = None if rng.random() < 0.1 else int(rng.integers(3))
    t = None if rng.random() < 0.1 else int(rng.integers(8))
    return (k, t, WORDS[int(rng.integers(len(WORDS)))], int(rng.integers(4)))


ORDERS = [
    [Order("t")],
    [Order("t", descending=True)],
    [Order("t", nulls_first=False), Order("s", descending=True)],
    [Order("s"), Order("t", descending=True, nulls_first=True)],
    [Order("s", descending=True)],
]
SHIFTS = [
    [Shift("a", "v", 1)],
    [Shift("a", "v", -1, 77), Shift("b", "s", 2, "nobody that I would know of")],
    [Shift("a", "t", 3), Shift("b", "s", -2), Shift("c", "v", 0)],
]


def expected(table: Table, keys: list[str], order: list[Order], shifts: list[Shift]) -> Table:
    at = {name: i for i, name in enumerate(SCHEMA.names)}
    names = [*keys, *(n for n in SCHEMA.names if n not in keys)]
    out: Table = Counter()
    # The engine breaks ties by the columns in the order of the arrangement.
    moved = Counter({tuple(row[at[n]] for n in names): w for row, w in table.items()})
    place = {name: i for i, name in enumerate(names)}
    for rows, _ in sorted_groups(moved, [place[k] for k in keys], [(place[o.column], o) for o in order]):
        for i, row in enumerate(rows):
            new: list[Any] = []
            for s in shifts:
                j = i - s.offset
                new.append(rows[j][place[s.column]] if 0 <= j < len(rows) else s.default)
            out[(*row, *new)] += 1
    return out


@pytest.mark.parametrize("keys", [["k"], []], ids=["by key", "one group"])
@pytest.mark.parametrize("order", range(len(ORDERS)))
@pytest.mark.parametrize("shifts", range(len(SHIFTS)))
def test_equals_recomputation(keys: list[str], order: int, shifts: int) -> None:
    source = Source(SCHEMA)
    node = Lag(arranged(source, keys, ORDERS[order]), SHIFTS[shifts])
    play = Play(node, [source], [draw])
    play.check(lambda t: expected(t, keys, ORDERS[order], SHIFTS[shifts]), seed=order * 10 + shifts, steps=40)


def test_rows_that_do_not_change_say_nothing() -> None:
    source = Source(SCHEMA)
    play = Play(Lag(arranged(source, ["k"], [Order("t")]), [Shift("a", "v", 1)]), [source], [draw])
    play.step([[((1, t, "", t % 4), 1) for t in range(100)]])
    out = play.step([[((1, 50, "new", 3), 1)]])
    assert len(out) == 3  # the new row, and its follower as it was and is


def test_a_step_rolled_back_leaves_no_trace() -> None:
    source = Source(SCHEMA)
    arrange = arranged(source, ["k"], [Order("t")])
    node = Lag(arrange, [Shift("a", "v", 1)])
    play = Play(node, [source], [draw])
    play.step([[((1, 1, "", 1), 1), ((1, 3, "", 3), 1)]])
    delta = arrange.step([source.change([((1, 2, "", 2), 1)])])
    first = node.step([delta]).to_arrow()
    arrange.rollback()
    node.rollback()
    delta = arrange.step([source.change([((1, 2, "", 2), 1)])])
    assert node.step([delta]).to_arrow().equals(first)
    assert first.num_rows == 3


def test_the_rest_of_the_row_decides_among_peers() -> None:
    source = Source(SCHEMA)
    play = Play(Lag(arranged(source, ["k"], [Order("t")]), [Shift("a", "v", 1)]), [source], [draw])
    play.step([[((1, 1, "b", 1), 1), ((1, 1, "a", 2), 1), ((1, 1, "a", 1), 1)]])
    assert play.output == Counter({(1, 1, "a", 1, None): 1, (1, 1, "a", 2, 1): 1, (1, 1, "b", 1, 2): 1})
