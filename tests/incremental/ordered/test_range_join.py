"""Range joins: every step equals a recomputation by trying all pairs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.incremental.ordered.histories import Play, Source, Table, arranged
from tests.incremental.ordered.test_asof import LEFT, RIGHT, draw_left, draw_right

from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.layout import Order
from headwater.incremental.operators.range_join import RangeJoin


def expected(left: Table, right: Table, below: int | None, above: int | None) -> Table:
    out: Table = Counter()
    for a, v in left.items():
        for b, w in right.items():
            if a[0] is None or a[0] != b[0] or a[1] is None or b[1] is None:
                continue
            if (below is None or a[1] - below <= b[1]) and (above is None or b[1] <= a[1] + above):
                out[(*a, *b[1:])] += v * w
    return out


def build(below: int | None, above: int | None) -> tuple[RangeJoin, Source, Source]:
    left, right = Source(LEFT), Source(RIGHT)
    node = RangeJoin(
        arranged(left, ["k"], [Order("t")]),
        arranged(right, ["k"], [Order("t"), Order("seq")]),
        [("k", "k"), ("t", "t"), ("a", "a")],
        [("t", "t2"), ("seq", "seq"), ("q", "q")],
        below=below,
        above=above,
    )
    return node, left, right


@pytest.mark.parametrize(
    ("below", "above"), [(0, 0), (2, 0), (0, 3), (5, 5), (-1, 4), (3, -2), (None, 0), (1, None), (None, None), (-3, 1)]
)
def test_equals_recomputation(below: int | None, above: int | None) -> None:
    node, left, right = build(below, above)
    play = Play(node, [left, right], [draw_left, draw_right])
    play.check(lambda a, b: expected(a, b, below, above), seed=3, steps=40, most=8)


def test_timestamps_at_their_ends() -> None:
    schema = pa.schema([pa.field("t", pa.timestamp("us", tz="UTC"))])
    left, right = Source(schema), Source(schema)
    node = RangeJoin(
        arranged(left, [], [Order("t")]),
        arranged(right, [], [Order("t")]),
        [("t", "a")],
        [("t", "b")],
        below=timedelta(seconds=1),
        above=timedelta(0),
    )
    play = Play(node, [left, right], [])
    start = datetime(1970, 1, 1, tzinfo=UTC)
    play.step([[((start,), 1)], [((start - timedelta(seconds=i),), 1) for i in range(3)]])
    assert {b for _, b in play.output} == {start, start - timedelta(seconds=1)}


def test_extreme_numbers() -> None:
    node, left, right = build(2**70, 5)
    play = Play(node, [left, right], [])
    play.step([[(("x", 2**63 - 1, None), 1)], [(("x", -(2**63), 0, None), 1), (("x", 2**63 - 1, 0, None), 2)]])
    assert sorted((row[3], w) for row, w in play.output.items()) == [(-(2**63), 1), (2**63 - 1, 2)]


def test_what_is_refused() -> None:
    left, right = Source(LEFT), Source(RIGHT)
    with pytest.raises(InputError, match="of the same types"):
        RangeJoin(arranged(left, ["k"], [Order("a")]), arranged(right, ["k"], [Order("t")]), [], [], below=0, above=0)
    with pytest.raises(UnsupportedError, match="distances are of"):
        RangeJoin(arranged(left, ["k"], [Order("a")]), arranged(right, ["k"], [Order("q")]), [], [], below=0, above=0)
