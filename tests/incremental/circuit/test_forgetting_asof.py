"""As-of joins behind a watermark: what is let go is never asked for again, and what is asked for is still there."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.incremental.circuit.late_histories import (
    STEPS,
    Answer,
    Build,
    Row,
    Side,
    Table,
    play,
    settled,
    table,
)

import headwater as hw
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.asof import AsOf
from headwater.incremental.store import Store

DIRECTIONS = ("backward", "forward", "nearest")


def joined(**options: Any) -> Build:
    return lambda s: s["a"].join_asof(s["b"], "ts", by="k", **options)


def recomputed(direction: str, tolerance: int | None, *, strict: bool, how: str) -> Answer:
    """The join by definition: look at all rows."""

    def match(row: Row, others: list[Row]) -> Row | None:
        ts = row[0]
        near = [r for r in others if tolerance is None or abs(r[0] - ts) <= tolerance]
        before = max((r for r in near if (r[0] < ts if strict else r[0] <= ts)), default=None)
        after = min((r for r in near if (r[0] > ts if strict else r[0] >= ts)), default=None)
        if direction != "nearest":
            return before if direction == "backward" else after
        if before is None or (after is not None and after[0] - ts < ts - before[0]):
            return after
        return before

    def answer(tables: Mapping[str, Table]) -> Table:
        by_key: dict[str, list[Row]] = {}
        for ts, k, v in tables["b"]:
            if ts is not None and k is not None:
                by_key.setdefault(k, []).append((ts, v))
        out: Table = Counter()
        for row, weight in tables["a"].items():
            found = None if row[0] is None or row[1] is None else match(row, by_key.get(row[1], []))
            if found is not None or how == "left":
                out[(*row, *(found or (None, None)))] += weight
        return out

    return answer


WAYS = list(itertools.product(DIRECTIONS, (None, 7), (False, True)))


@pytest.mark.long
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(("direction", "tolerance", "strict"), WAYS)
def test_equals_recomputation(tmp_path: Path, direction: str, tolerance: int | None, strict: bool, shards: int) -> None:
    plays = [((0, 0), "left"), ((0, 25), "inner")] if shards == 1 else [((25, 0), "left")]
    for n, (behind, how) in enumerate(plays):
        sides = {"a": Side(12, behind[0]), "b": Side(9, behind[1])}
        build = joined(direction=direction, tolerance=tolerance, strict=strict, how=how)
        answer = recomputed(direction, tolerance, strict=strict, how=how)
        seed = f"{direction} {tolerance} {strict} {shards} {n}"
        play(build, answer, sides, folder=tmp_path / str(n), seed=seed, shards=shards, steps=STEPS)


@pytest.mark.long
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("marked", ["a", "b"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("tolerance", [None, 7])
def test_of_one_side_only(tmp_path: Path, direction: str, tolerance: int | None, marked: str) -> None:
    sides = {name: Side(8 if name == marked else None) for name in "ab"}
    answer = recomputed(direction, tolerance, strict=False, how="left")
    build = joined(direction=direction, tolerance=tolerance)
    play(build, answer, sides, folder=tmp_path, seed=f"{direction} {marked}", shards=1, steps=STEPS)


def circuit(**options: Any) -> hw.Circuit:
    c = hw.Circuit()
    a, b = (c.input(n, table([]).schema.remove(3)).watermark("ts", 50) for n in "ab")
    joined(**options)({"a": a, "b": b}).output("o")
    return c


@functools.cache
def _long_history() -> list[dict[str, pa.Table]]:
    """200 steps of both sides."""
    rng = random.Random("long")

    def rows(step: int) -> pa.Table:
        return table([((100 * step + rng.randrange(100), str(rng.randrange(40)), 1), 1) for _ in range(200)])

    return [{side: rows(step) for side in "ab"} for step in range(200)]


@pytest.mark.long
@pytest.mark.parametrize(("direction", "tolerance", "strict"), WAYS)
def test_state_stays_bounded(direction: str, tolerance: int | None, strict: bool) -> None:
    c = circuit(direction=direction, tolerance=tolerance, strict=strict)
    sizes = []
    for step, sides in enumerate(_long_history()):
        for side, rows in sides.items():
            c.step({side: rows})
        if step in {9, 199}:
            sizes.append(settled(c))
    assert sizes[1] < 2 * sizes[0] + 4_000, "the history was 20 times as long"
    assert sizes[1] < 16_000, "of 80,000 rows"


def asked(c: hw.Circuit, ts: int, key: str) -> list[tuple[int | None, int | None]]:
    found = c.step(a=table([((ts, key, 1), 1)]))["o"].to_arrow().to_pylist()
    return [(r["ts_right"], r["v_right"]) for r in found]


@pytest.mark.parametrize("direction", ["backward", "nearest"])
def test_a_key_that_was_silent_for_long_is_answered(direction: str) -> None:
    c = circuit(direction=direction)
    c.step(b=table([((3, "quiet", 1), 1), ((7, "quiet", 1), 1), ((7, "quiet", 2), 2), ((9, "quiet", 1), 1)]))
    c.step(b=table([((9, "quiet", 1), -1), ((7, "quiet", 2), -1)]))
    for step in range(60):
        rows = table([((100 * step + i // 5, f"loud {i % 7}", i), 1) for i in range(500)])
        c.step(a=rows, b=rows)
        settled(c)
    right = next(v.node for v in c.vertices if isinstance(v.node, AsOf)).inputs[1]
    assert sum(map(len, right.traces().values())) < 15_000, "of 30,000 rows"
    assert asked(c, 6_000, "quiet") == [(7, 2)]
    assert asked(c, 6_000, "nobody") == [(None, None)]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("direction", ["backward", "nearest"])
def test_a_row_that_another_run_takes_back_stands_for_nothing(direction: str) -> None:
    c = circuit(direction=direction)
    loud = [((i, "loud", i), 1) for i in range(30)]
    c.step(a=table(loud), b=table([((3, "k", 1), 1), ((7, "k", 1), 1), *loud]))
    settled(c)
    c.step(b=table([((7, "k", 1), -1)]))
    for ts in range(100, 200, 5):
        rows = table([((ts, "loud", i), 1) for i in range(10)])
        c.step(a=rows, b=rows)
        settled(c)
    right = next(v.node for v in c.vertices if isinstance(v.node, AsOf)).inputs[1]
    assert sum(map(len, right.traces().values())) < 180, "of 232 rows"
    assert asked(c, 200, "k") == [(3, 1)]


def test_strict_and_nearest_a_row_at_the_time_of_the_last_waits_with_the_one_before() -> None:
    c = circuit(direction="nearest", strict=True)
    c.step(b=table([((3, "k", 1), 1), ((100, "k", 2), 1)]), a=table([((100, "k", 5), 1)]))
    for step in range(60):
        rows = table([((100 + 2 * step + i % 2, f"loud {i % 7}", i), 1) for i in range(500)])
        c.step(a=rows, b=rows)
        settled(c)
    changed = c.step(b=table([((180, "k", 3), 1)]))["o"].to_arrow().to_pylist()
    assert sorted((r["ts_right"], r["_weight"]) for r in changed) == [(3, -1), (180, 1)]


def test_explain_says_what_goes() -> None:
    assert "; lets go below ts but the newest" in shown(circuit())
    assert "; lets go below ts what is matched" in shown(circuit(direction="forward"))
    kept = hw.Circuit()
    a, b = (kept.input(n, table([]).schema.remove(3)) for n in "ab")
    a.watermark("ts", 5).join_asof(b, "ts", by="k").output("o")
    assert "lets go" not in shown(kept)


def shown(c: hw.Circuit) -> str:
    assert ("lets go" in c.explain()) == any("lets go" in node.detail for node in c.graph().nodes)
    return "\n".join(node.detail for node in c.graph().nodes)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("direction", "tolerance", "column"),
    [("backward", None, "ts"), ("backward", 7, "ts_right"), ("forward", None, "ts_right"), ("nearest", 7, "ts_right")],
)
def test_what_follows_forgets_too(tmp_path: Path, direction: str, tolerance: int | None, column: str) -> None:
    inner = recomputed(direction, tolerance, strict=False, how="left")

    def answer(tables: Mapping[str, Table]) -> Table:
        out: Table = Counter()
        for row, weight in inner(tables).items():
            out[row[0] if column == "ts" else row[3],] += weight
        return Counter({(*key, n): 1 for key, n in out.items()})

    def build(s: Mapping[str, Any]) -> Any:
        return joined(direction=direction, tolerance=tolerance)(s).group_by(column).agg(n="count(*)")

    sides = {"a": Side(12), "b": Side(9)}
    play(build, answer, sides, folder=tmp_path, seed=f"{direction} {column}", shards=2, steps=STEPS)


@pytest.mark.parametrize(("direction", "tolerance", "strict"), WAYS)
def test_which_times_have_marks(direction: str, tolerance: int | None, strict: bool) -> None:
    marks = set(circuit(direction=direction, tolerance=tolerance, strict=strict).outputs["o"].marks)
    expected: dict[tuple[str, int | None], set[str]] = {
        ("backward", None): {"ts"},
        ("forward", None): {"ts_right"},
        ("nearest", None): set(),
    }
    assert marks == expected.get((direction, tolerance), {"ts", "ts_right"})


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_stream_with_itself(tmp_path: Path, direction: str) -> None:
    def build(s: Mapping[str, Any]) -> Any:
        return joined(direction=direction, strict=True)({"a": s["a"], "b": s["a"]})

    def answer(tables: Mapping[str, Table]) -> Table:
        return recomputed(direction, None, strict=True, how="left")({"a": tables["a"], "b": tables["a"]})

    play(build, answer, {"a": Side(10)}, folder=tmp_path, seed=direction, shards=2, steps=STEPS)


@pytest.mark.long
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_marks_of_the_key_do_where_times_have_none(tmp_path: Path, direction: str) -> None:
    """Here the time is the key, and the value stands for a time."""

    def build(s: Mapping[str, Any]) -> Any:
        return s["a"].join_asof(s["b"], "v", by=["ts", "k"], direction=direction)

    def answer(tables: Mapping[str, Table]) -> Table:
        out: Table = Counter()
        for row, weight in tables["a"].items():
            others = [r[2] for r in tables["b"] if r[:2] == row[:2] and None not in r]
            before, after = (v for v in others if v <= row[2]), (v for v in others if v >= row[2])
            one, two = max(before, default=None), min(after, default=None)
            found = one if direction == "backward" else two
            if direction == "nearest":
                found = two if one is None or (two is not None and two - row[2] < row[2] - one) else one
            out[*row, found] += weight
        return out

    sides = {"a": Side(12), "b": Side(9)}
    play(build, answer, sides, folder=tmp_path, seed=direction, shards=1, steps=STEPS)


@pytest.mark.usefixtures("eager")
def test_a_checkpoint_knows_that_state_is_not_whole(tmp_path: Path) -> None:
    def built(shards: int) -> hw.Circuit:
        c = hw.Circuit(shards=shards)
        a, b = (c.input(n, table([]).schema.remove(3)).watermark("ts", 50) for n in "ab")
        joined(direction="forward")({"a": a, "b": b}).output("o")
        return c

    c = built(2)
    for step in range(10):
        rows = table([((100 * step, str(i % 7), i), 1) for i in range(30)])
        c.step(a=rows, b=rows)
    with Store(str(tmp_path)) as store:
        c.checkpoint(store)
        for shards in (1, 3):
            back = built(shards)
            back.restore(store)
            kept = [n.trace for v in back.vertices for n in v.nodes if isinstance(n, Arrange)]
            assert all(t.bound is not None for t in kept)
            del back, kept
