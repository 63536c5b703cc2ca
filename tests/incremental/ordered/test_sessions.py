"""Sessions: every step equals a recomputation; a gap equal to the timeout merges."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged, sorted_groups

from headwater.base.errors import InputError
from headwater.incremental.layout import Order
from headwater.incremental.operators.sessions import Sessions

SCHEMA = pa.schema(
    [pa.field("k", pa.string()), pa.field("t", pa.timestamp("us", tz="UTC")), pa.field("v", pa.int64(), nullable=False)]
)
START = datetime(1969, 12, 31, 23, 59, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def draw(rng: np.random.Generator) -> Row:
    k = None if rng.random() < 0.1 else ["a", "a key that is longer than twelve bytes"][int(rng.integers(2))]
    return (k, None if rng.random() < 0.1 else at(int(rng.integers(60))), int(rng.integers(3)))


def expected(table: Table) -> Table:
    out: Table = Counter()
    gap = timedelta(seconds=5)
    for rows, _ in sorted_groups(Counter({r: w for r, w in table.items() if r[1] is not None}), [0], [(1, Order("t"))]):
        sessions: list[list[Row]] = []
        for row in rows:
            if sessions and row[1] - sessions[-1][-1][1] <= gap:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        for session in sessions:
            for row in session:
                out[(*row, session[0][1], session[-1][1] + gap)] += 1
    return out


@pytest.mark.parametrize("seed", range(4))
def test_equals_recomputation(seed: int) -> None:
    source = Source(SCHEMA)
    play = Play(Sessions(arranged(source, ["k"], [Order("t")]), timedelta(seconds=5)), [source], [draw])
    play.check(expected, seed, steps=60, most=8)


def test_a_gap_equal_to_the_timeout_merges() -> None:
    source = Source(SCHEMA)
    play = Play(Sessions(arranged(source, ["k"], [Order("t")]), timedelta(seconds=5)), [source], [draw])
    play.step([[(("a", at(0), 0), 1), (("a", at(5), 0), 1), (("a", at(11), 0), 1)]])
    assert {row[3:] for row in play.output} == {(at(0), at(10)), (at(11), at(16))}
    out = play.step([[(("a", at(8), 0), 1)]])
    assert {row[3:] for row in play.output} == {(at(0), at(16))}
    assert len(out) == 7


def test_other_sessions_of_the_key_are_not_touched() -> None:
    source = Source(SCHEMA)
    node = Sessions(arranged(source, ["k"], [Order("t")]), timedelta(seconds=5))
    play = Play(node, [source], [draw])
    play.step([[(("a", at(10 * i), 0), 1) for i in range(1000)]])
    assert len(play.step([[(("a", at(500), 1), 1)]])) == 1
    assert len(play.step([[(("a", at(505), 1), 1)]])) == 7


def test_what_is_refused() -> None:
    source = Source(SCHEMA)
    with pytest.raises(InputError, match="more than nothing"):
        Sessions(arranged(source, ["k"], [Order("t")]), timedelta(0))
    with pytest.raises(InputError, match="a time that rises"):
        Sessions(arranged(source, ["k"], [Order("t", descending=True)]), timedelta(seconds=1))
