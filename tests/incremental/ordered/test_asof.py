"""As-of joins: every step equals a recomputation by trying all pairs, whichever side changed."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged, compared

from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.layout import Order
from headwater.incremental.operators.asof import AsOf

LEFT = pa.schema([pa.field("k", pa.string()), pa.field("t", pa.int64()), pa.field("a", pa.string())])
RIGHT = pa.schema(
    [
        pa.field("k", pa.string()),
        pa.field("t", pa.int64()),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("q", pa.string()),
    ]
)
LONG = "a text that has more than twelve bytes"


def _key(rng: np.random.Generator) -> Any:
    return [None, "x", LONG, LONG + "!"][int(rng.integers(4))]


def _time(rng: np.random.Generator) -> Any:
    return None if rng.random() < 0.1 else int(rng.integers(-10, 20))


def draw_left(rng: np.random.Generator) -> Row:
    return (_key(rng), _time(rng), [None, "a", LONG][int(rng.integers(3))])


def draw_right(rng: np.random.Generator) -> Row:
    return (_key(rng), _time(rng), int(rng.integers(2)), [None, "q", LONG + "q"][int(rng.integers(3))])


def match(row: Row, right: Table, direction: str, tolerance: int | None, strict: bool) -> Row | None:
    def rank(other: Row) -> tuple[Any, ...]:  # time, sequence, then the whole row: a null text is like an empty one
        return (other[1], other[2], other[3] or "", other[3] is None)

    if row[0] is None or row[1] is None:
        return None
    some = [r for r in right if r[0] == row[0] and r[1] is not None and not (strict and r[1] == row[1])]
    some = [r for r in some if tolerance is None or abs(r[1] - row[1]) <= tolerance]
    before = max((r for r in some if r[1] <= row[1]), key=rank, default=None)
    after = min((r for r in some if r[1] >= row[1]), key=rank, default=None)
    if direction == "backward":
        return before
    if direction == "forward":
        return after
    if before is None or after is None:
        return before or after
    return after if after[1] - row[1] < row[1] - before[1] else before


def expected(left: Table, right: Table, direction: str, tolerance: int | None, strict: bool, how: str) -> Table:
    out: Table = Counter()
    for row, weight in left.items():
        found = match(row, right, direction, tolerance, strict)
        if found is not None or how == "left":
            out[(*row, *((None, None, None) if found is None else found[1:]))] += weight
    return out


CASES = list(product(["backward", "forward", "nearest"], [None, 0, 3], [False, True], ["inner", "left"]))


def build(direction: Any, tolerance: Any, strict: bool, how: Any) -> tuple[AsOf, Source, Source]:
    left, right = Source(LEFT), Source(RIGHT)
    node = AsOf(
        arranged(left, ["k"], [Order("t")]),
        arranged(right, ["k"], [Order("t"), Order("seq")]),
        [("k", "k"), ("t", "t"), ("a", "a")],
        [("t", "t2"), ("seq", "seq"), ("q", "q")],
        direction=direction,
        tolerance=tolerance,
        strict=strict,
        how=how,
    )
    return node, left, right


@pytest.mark.parametrize(("direction", "tolerance", "strict", "how"), CASES)
def test_equals_recomputation(direction: str, tolerance: int | None, strict: bool, how: str) -> None:
    node, left, right = build(direction, tolerance, strict, how)
    play = Play(node, [left, right], [draw_left, draw_right])
    play.check(
        lambda a, b: expected(a, b, direction, tolerance, strict, how), seed=len(direction) + strict, steps=40, most=10
    )


def test_one_group_and_other_types() -> None:
    left, right = (
        Source(pa.schema([pa.field("t", pa.timestamp("us", tz="UTC")), pa.field("v", pa.decimal128(20, 1))]))
        for _ in range(2)
    )
    node = AsOf(
        arranged(left, [], [Order("t")]),
        arranged(right, [], [Order("t")]),
        [("t", "t")],
        [("v", "v")],
        tolerance=timedelta(seconds=2),
    )
    play = Play(node, [left, right], [])
    start = datetime(1970, 1, 1, tzinfo=UTC)
    play.step([[((start + timedelta(seconds=i), None), 1) for i in range(5)], [((start, Decimal("1.5")), 1)]])
    play.step([[], [((start + timedelta(seconds=4), Decimal("2.5")), 1)]])
    assert [v for _, v in sorted(play.output)] == [Decimal("1.5")] * 3 + [None, Decimal("2.5")]


def draw_text(rng: np.random.Generator) -> Row:
    return (["", "a", LONG, LONG + "!", "zz"][int(rng.integers(5))],)


def test_ordered_by_texts() -> None:
    left, right = (Source(pa.schema([pa.field("t", pa.string())])) for _ in range(2))
    for direction in ("backward", "forward"):
        node = AsOf(
            arranged(left, [], [Order("t")]),
            arranged(right, [], [Order("t")]),
            [("t", "t")],
            [("t", "u")],
            direction=direction,
        )
        play = Play(node, [left, right], [draw_text] * 2)

        def wanted(a: Table, b: Table, direction: str = direction) -> Table:
            out: Table = Counter()
            for (t,), w in a.items():
                some = [u for (u,) in b if (compared(u, t) <= 0 if direction == "backward" else compared(u, t) >= 0)]
                out[t, (max if direction == "backward" else min)(some, default=None)] += w
            return out

        play.check(wanted, seed=1, steps=40, most=5)


def test_a_change_on_the_right_reaches_to_the_next_row() -> None:
    node, left, right = build("backward", None, False, "left")
    play = Play(node, [left, right], [])
    play.step([[(("x", t, None), 1) for t in range(1000)], [(("x", 100 * i, 0, "q"), 1) for i in range(10)]])
    assert len(play.step([[], [(("x", 550, 0, "new"), 1)]])) == 100
    assert len(play.step([[], [(("x", 550, 1, "newer"), 1)]])) == 100
    assert not len(play.step([[], [(("x", 550, 0, "older"), 1)]]))  # the greater sequence wins


def test_extreme_times() -> None:
    node, left, right = build("nearest", 2**63 - 1, False, "inner")
    play = Play(node, [left, right], [])
    play.step([[(("x", -(2**63), None), 1), (("x", 2**63 - 1, None), 1)], [(("x", 0, 0, None), 1)]])
    assert {row[1] for row in play.output} == {2**63 - 1}
    play.step([[], [(("x", 2**63 - 1, 0, None), 1), (("x", -(2**63), 0, None), 1)]])
    assert {(row[1], row[3]) for row in play.output} == {(2**63 - 1, 2**63 - 1), (-(2**63), -(2**63))}


def test_what_is_refused() -> None:
    left, right = Source(LEFT), Source(RIGHT)
    with pytest.raises(InputError, match="a time that rises"):
        AsOf(arranged(left, ["k"], [Order("t", descending=True)]), arranged(right, ["k"], [Order("t")]), [], [])
    with pytest.raises(InputError, match="of the same types"):
        AsOf(arranged(left, ["k"], [Order("a")]), arranged(right, ["k"], [Order("t")]), [], [])
    with pytest.raises(UnsupportedError, match="distances are of"):
        AsOf(arranged(left, ["k"], [Order("a")]), arranged(right, ["k"], [Order("q")]), [], [], direction="nearest")
    with pytest.raises(InputError, match="zero or more"):
        AsOf(arranged(left, ["k"], [Order("t")]), arranged(right, ["k"], [Order("t")]), [], [], tolerance=-1)
