"""Sessions behind a watermark: closed ones go, and open ones stay with all their rows, however old."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.incremental.circuit.late_histories import (
    STEPS,
    Answer,
    Row,
    Side,
    Table,
    play,
    settled,
    table,
)

import headwater as hw
from headwater.incremental.operators.aggregate import Aggregate
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.trace import Trace


def recomputed(gap: int) -> Answer:
    """Sort the rows of each key, and cut where a gap is too wide."""

    def answer(tables: Mapping[str, Table]) -> Table:
        by_key: dict[Any, list[Row]] = {}
        for row in tables["t"]:
            if row[0] is not None:
                by_key.setdefault(row[1], []).append(row)
        out: Table = Counter()
        for rows in by_key.values():
            rows.sort()
            cuts = [0, *(i for i in range(1, len(rows)) if rows[i][0] - rows[i - 1][0] > gap), len(rows)]
            for a, b in itertools.pairwise(cuts):
                for row in rows[a:b]:
                    out[(*row, rows[a][0], rows[b - 1][0] + gap)] += tables["t"][row]
        return out

    return answer


@pytest.mark.long
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("gap", [1, 3, 8])
@pytest.mark.parametrize("lateness", [0, 10])
def test_equals_recomputation(tmp_path: Path, gap: int, lateness: int, shards: int) -> None:
    play(
        lambda s: s["t"].session("ts", gap, by="k"),
        recomputed(gap),
        {"t": Side(lateness)},
        folder=tmp_path,
        seed=f"{gap} {lateness} {shards}",
        shards=shards,
        steps=2 * STEPS,
    )


@pytest.mark.usefixtures("eager")
def test_two_gaps_over_one_arrangement(tmp_path: Path) -> None:
    def build(s: Mapping[str, Any]) -> Any:
        return s["t"].session("ts", 2, by="k").plus(s["t"].session("ts", 9, by="k"))

    def answer(tables: Mapping[str, Table]) -> Table:
        return recomputed(2)(tables) + recomputed(9)(tables)

    play(build, answer, {"t": Side(6)}, folder=tmp_path, seed="two", shards=1, steps=STEPS)


@pytest.mark.long
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("shards", [1, 2])
def test_groups_of_sessions_forget_too(tmp_path: Path, shards: int) -> None:
    def build(s: Mapping[str, Any]) -> Any:
        return s["t"].session("ts", 3, by="k").group_by("k", "session_start", "session_end").agg(n="count(*)")

    def answer(tables: Mapping[str, Table]) -> Table:
        found: Table = Counter()
        for row, weight in recomputed(3)(tables).items():
            found[row[1], row[3], row[4]] += weight
        return Counter({(*key, n): 1 for key, n in found.items()})

    play(build, answer, {"t": Side(6)}, folder=tmp_path, seed=f"groups {shards}", shards=shards, steps=STEPS)


@pytest.mark.long
@pytest.mark.usefixtures("eager")
def test_the_begin_of_a_session_may_be_old(tmp_path: Path) -> None:
    def build(s: Mapping[str, Any]) -> Any:
        return s["t"].session("ts", 6, by="k").group_by("session_start").agg(n="count(*)")

    def answer(tables: Mapping[str, Table]) -> Table:
        found: Table = Counter()
        for row, weight in recomputed(6)(tables).items():
            found[row[3],] += weight
        return Counter({(*key, n): 1 for key, n in found.items()})

    play(build, answer, {"t": Side(3)}, folder=tmp_path, seed="begins", shards=1, steps=STEPS)
    assert set(circuit().outputs["o"].marks) == {"session_end"}


def circuit() -> hw.Circuit:
    c = hw.Circuit()
    marked = c.input("t", table([]).schema.remove(3)).watermark("ts", 50)
    sessions = marked.session("ts", 10, by="k")
    sessions.output("o")
    sessions.group_by("session_end", "k").agg(n="count(*)").output("groups")
    return c


@pytest.mark.long
def test_state_stays_bounded() -> None:
    c = circuit()
    rng = random.Random(5)
    held = rows_of(c)
    sizes = []
    for step in range(200):
        rows = [((100 * step + rng.randrange(80), str(rng.randrange(200)), 1), 1) for _ in range(200)]
        c.step(t=table(rows))
        if step in {9, 199}:
            settled(c)
            sizes.append(len(held))
    assert sizes[1] < 2 * sizes[0] + 2_000, "the history was 20 times as long"
    assert sizes[1] < 4_000, "of 40,000 rows"
    groups = next(v.node for v in c.vertices if isinstance(v.node, Aggregate))
    assert all(t.bound is not None and t.bound[1] > 100 * 199 - 50 for t in groups.traces().values())


def rows_of(c: hw.Circuit) -> Trace:
    return next(v.node.trace for v in c.vertices if isinstance(v.node, Arrange))


def loud(step: int) -> list[tuple[Row, int]]:
    return [((100 * step + i // 6, f"loud {i}", 1), 1) for i in range(400)]


def test_a_session_that_stays_open_keeps_its_first_row() -> None:
    c = circuit()
    for step in range(60):
        steady = [((t, "steady", t), 1) for t in range(100 * step, 100 * step + 100, 10)]
        c.step(t=table([*loud(step), *steady]))
        settled(c)
    assert len(rows_of(c)) < 10_000, "of 24,000 rows"
    changed = c.step(t=table([((6_000, "steady", 6_000), 1)]))["o"].to_arrow().to_pylist()
    starts = Counter((r["session_start"], r["session_end"], r["_weight"]) for r in changed)
    assert starts == {(0, 6_000, -1): 600, (0, 6_010, 1): 601}
    apart = c.step(t=table([((5_980, "steady", 5_980), -1)]))["o"].to_arrow().to_pylist()
    starts = Counter((r["session_start"], r["session_end"], r["_weight"]) for r in apart)
    assert starts == {(0, 6_010, -1): 601, (0, 5_980, 1): 598, (5_990, 6_010, 1): 2}
    for step in range(61, 120):
        c.step(t=table(loud(step)))
        settled(c)
    assert "steady" not in rows_of(c).zset().to_arrow()["k"].to_pylist(), "it is closed"


def test_a_row_that_was_taken_back_does_not_hold_a_session_open() -> None:
    c = circuit()
    c.step(t=table([((0, "k", 1), 1), ((8, "k", 1), 1), ((16, "k", 1), 1)]))
    c.step(t=table([((8, "k", 1), -1)]))
    for step in range(60):
        c.step(t=table(loud(step)))
        settled(c)
    assert "k" not in rows_of(c).zset().to_arrow()["k"].to_pylist()


def test_explain_says_what_goes() -> None:
    details = [node.detail for node in circuit().graph().nodes]
    assert any(d.endswith("; lets go sessions closed 10 below ts") for d in details)
    assert any(d.endswith("; lets go below session_end") for d in details)
