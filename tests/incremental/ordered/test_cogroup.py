"""The cogroup node itself: functions of whole groups of one or more inputs, and slices of any reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged

from headwater.base.errors import UnsupportedError
from headwater.incremental.layout import Layout, Order
from headwater.incremental.operators.cogroup import Cogroup, Groups, read_slices
from headwater.incremental.operators.lag import Lag, Shift
from headwater.incremental.operators.reach import Reach
from headwater.incremental.zset import ZSet

SCHEMA = pa.schema([pa.field("k", pa.string()), pa.field("t", pa.int64(), nullable=False)])
COUNTS = Layout(pa.schema([pa.field("one", pa.int64(), nullable=False), pa.field("two", pa.int64(), nullable=False)]))


def draw(rng: np.random.Generator) -> Row:
    return ([None, "a", "a key that is longer than twelve bytes"][int(rng.integers(3))], int(rng.integers(6)))


def counts(groups: Sequence[Groups]) -> ZSet:
    """A row (copies on the left, copies on the right) for each key that has any."""
    sizes = [np.diff(g.offsets) for g in groups]
    rows = np.zeros((len(sizes[0]), COUNTS.width), dtype=np.int64)
    rows[:, 1], rows[:, 2] = sizes[0], sizes[-1]
    rows[:, -1] = (sizes[0] + sizes[-1]) > 0
    return ZSet(COUNTS, rows)


def test_groups_of_two_inputs() -> None:
    one, two = Source(SCHEMA), Source(SCHEMA)
    node = Cogroup([arranged(one, ["k"]), arranged(two, ["k"])], COUNTS, function=counts)

    def expected(a: Table, b: Table) -> Table:
        found = [
            Counter({k: sum(w for row, w in t.items() if row[0] == k) for k in {row[0] for row in t}}) for t in (a, b)
        ]
        return Counter((found[0][k], found[1][k]) for k in {*found[0], *found[1]})

    Play(node, [one, two], [draw, draw]).check(expected, seed=1, steps=80, most=5)


def test_groups_of_one_input_and_no_key() -> None:
    source = Source(SCHEMA)
    node = Cogroup([arranged(source, [])], COUNTS, function=counts)

    def expected(a: Table) -> Table:
        n = sum(a.values())
        return Counter({(n, n): 1} if n else {})

    Play(node, [source], [draw]).check(expected, seed=2, steps=40)


def test_no_change_says_nothing() -> None:
    source = Source(SCHEMA)
    node = Cogroup([arranged(source, [])], COUNTS, function=counts)
    assert not len(node.step([node.arranged[0].empty]))


@settings(max_examples=2 * settings().max_examples)
@given(
    there=st.lists(st.integers(0, 60), max_size=40),
    changed=st.lists(st.tuples(st.integers(0, 60), st.sampled_from([-1, 1, 2])), min_size=1, max_size=6),
    preceding=st.one_of(st.none(), st.integers(0, 4)),
    following=st.one_of(st.none(), st.integers(0, 4)),
    by_value=st.booleans(),
)
def test_slices_hold_what_they_must(
    there: list[int], changed: list[tuple[int, int]], preceding: int | None, following: int | None, by_value: bool
) -> None:
    """Each row near a change is in one core, once, and everything that its result is made of is in the same slice."""
    source = Source(SCHEMA)
    arrange = arranged(source, ["k"], [Order("t")])
    old = Counter(there)
    change = Counter[int]()
    for t, w in changed:
        if old[t] + change[t] + w >= 0:
            change[t] += w
    change = Counter({t: w for t, w in change.items() if w})
    arrange.step([source.change([(("a", t), w) for t, w in old.items()])])
    arrange.commit()
    if not len(arrange.step([source.change([(("a", t), w) for t, w in change.items()])])):
        return
    reach = (Reach.values if by_value else Reach.rows)(preceding, following)
    found = read_slices(arrange.trace, reach)
    new = Counter({t: old[t] + change[t] for t in {*old, *change} if old[t] + change[t]})
    times = found.rows[:, arrange.layout.column("t").word].tolist()
    core = [t for t, is_core in zip(times, found.core, strict=True) if is_core]
    assert len(core) == len(set(core))
    infinite = 10**6
    for world, weights in ((old, found.old), (new, found.new)):
        copies = sorted(world.elements())
        for i, t in enumerate(copies):
            before, after = (
                preceding if preceding is not None else infinite,
                following if following is not None else infinite,
            )
            if by_value:
                reads = {u for u in copies if t - before <= u <= t + after}
                touched = any(t - before <= u <= t + after for u in change)
            else:
                reads = set(copies[max(0, i - before) : i + after + 1])
                edges = (
                    copies[max(0, i - before)] if i >= before else -1,
                    copies[i + after] if i + after < len(copies) else 99,
                )
                touched = any(edges[0] <= u <= edges[1] for u in change)
            if touched:
                assert t in core, (t, copies, core)
            if t in core:
                piece = found.piece[next(j for j, u in enumerate(times) if u == t and found.core[j])]
                inside = {u for u, p, w in zip(times, found.piece, weights, strict=True) if p == piece and w > 0}
                assert reads <= inside


def test_too_many_copies_are_refused() -> None:
    source = Source(SCHEMA)
    arrange = arranged(source, ["k"], [Order("t")])
    node = Lag(arrange, [Shift("x", "t", 1)])
    delta = arrange.step([source.change([(("a", 1), 2**40)])])
    with pytest.raises(UnsupportedError, match="copies"):
        node.step([delta])


def test_reach_says_what_it_is() -> None:
    assert str(Reach.whole()) == "the whole group"
    assert str(Reach.rows(2, 0)) == "0 before and 2 after, rows"
    assert str(Reach.values(None, 3)) == "3 before and all after, in value"
    assert str(Reach.chain(5)) == "5 before and 5 after, between neighbours"
