"""State that no coming row can reach is let go, and nobody can tell: the answers are those of a circuit that keeps everything.

The reference is given the same rows without those that are late, by the rule that a row is late if it is more than the lateness before
the greatest time of the steps before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.amounts import everyday

import headwater as hw
from headwater.testing.circuits import Integral

SCHEMA = pa.schema([("ts", pa.int64()), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
LATENESS = 20
STEPS = everyday(100, soak=260)
KEYS = 3

Build = Callable[[Any, Any], Any]


def near(a: Any, b: Any) -> Any:
    return a.join_range(b, "ts", below=5, above=9, by="k")


def near_then_grouped(a: Any, b: Any) -> Any:
    return near(a, b).group_by("ts", "ts_right").agg(n="count(*)", hi="max(v)")


def within(a: Any, b: Any) -> Any:
    return a.with_columns(upto="ts + 7").join_between(b, ("ts", "upto"), "ts", by="k")


SHAPES: dict[str, Build] = {
    "distinct": lambda a, b: a.select("ts", "k").distinct(),
    "distinct windows": lambda a, b: (
        a.with_columns(w="k").select("ts", "w").distinct().group_by("ts").agg(n="count(*)")
    ),
    "intersect": lambda a, b: a.select("ts", "k").intersect(b.select("ts", "k")),
    "except": lambda a, b: a.select("ts", "k").except_(b.select("ts", "k")),
    "join": lambda a, b: a.join(b, ["ts", "k"], suffix="2"),
    "left join": lambda a, b: a.join(b, ["ts", "k"], how="left", suffix="2"),
    "semi join": lambda a, b: a.join(b, ["k", "ts"], how="semi"),
    "range join": near,
    "range join, then groups": near_then_grouped,
    "join between": within,
    "ranks": lambda a, b: a.over("ts", order="v").rank(n="row_number"),
    "lag": lambda a, b: a.over("k", "ts", order="v").lag("v", name="before"),
    "two keys behind a watermark": lambda a, b: (
        a.join(b, ["ts", "k"], suffix="2").group_by("ts", "k").agg(n="count(*)")
    ),
}


def circuit(shape: Build, *, marked: bool, shards: int) -> hw.Circuit:
    c = hw.Circuit(shards=shards)
    a, b = c.input("a", SCHEMA), c.input("b", SCHEMA)
    if marked:
        a, b = a.watermark("ts", LATENESS), b.watermark("ts", LATENESS)
    shape(a, b).output("o")
    return c


def history(rng: random.Random, steps: int) -> list[list[list[tuple[int | None, int, int, int]]]]:
    """For each step and input rows (ts, k, v, weight): time goes on, some are late, some are taken back, some have no time."""
    found = []
    past: list[list[tuple[int | None, int, int, int]]] = [[], []]
    for step in range(steps):
        sides = []
        for own in past:
            rows: list[tuple[int | None, int, int, int]] = []
            for _ in range(rng.randrange(6)):
                ts = None if rng.random() < 0.03 else 4 * step + rng.randrange(-35, 4)
                rows.append((ts, rng.randrange(KEYS), rng.randrange(4), 1))
            if own and rng.random() < 0.4:
                old = rng.choice(own[-40:])
                own.remove(old)
                rows.append((*old[:3], -1))
            own += [r for r in rows if r[3] > 0]
            sides.append(rows)
        found.append(sides)
    return found


def table(rows: Sequence[tuple[int | None, int, int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    arrays = [pa.array(columns[i], SCHEMA.field(i).type) for i in range(3)]
    return pa.Table.from_arrays(
        [*arrays, pa.array(columns[3], pa.int64())],
        schema=SCHEMA.append(pa.field("_weight", pa.int64(), nullable=False)),
    )


def held(c: hw.Circuit) -> int:
    return sum(len(t) for v in c.vertices for n in v.nodes for t in n.traces().values())


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_answers_stay_what_they_are(name: str, shards: int) -> None:
    marked, whole = (circuit(SHAPES[name], marked=m, shards=shards) for m in (True, False))
    rng = random.Random(f"{name} {shards}")
    greatest: list[int | None] = [None, None]
    late = 0
    for sides in history(rng, STEPS):
        given = marked.step(a=table(sides[0]), b=table(sides[1]))["o"]
        kept = []
        for i, rows in enumerate(sides):
            before = greatest[i]
            kept.append([r for r in rows if r[0] is None or before is None or r[0] >= before - LATENESS])
            late += len(rows) - len(kept[i])
            greatest[i] = max(
                [r[0] for r in rows if r[0] is not None] + ([] if before is None else [before]), default=None
            )
        one, two = Integral(), Integral()
        one.add(given.to_arrow())
        two.add(whole.step(a=table(kept[0]), b=table(kept[1]))["o"].to_arrow())
        assert one.rows == two.rows
    assert late > 50, "the history has late rows"


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_state_stays_bounded(name: str) -> None:
    c = circuit(SHAPES[name], marked=True, shards=1)
    rng = random.Random(name)
    sizes = []
    for step in range(60):
        for side in ("a", "b"):
            rows = [(100 * step + rng.randrange(100), rng.randrange(40), rng.randrange(9), 1) for _ in range(600)]
            c.step({side: table(rows)})
        if step % 20 == 19:
            for trace in (t for v in c.vertices for n in v.nodes for t in n.traces().values()):
                trace.settle()
            sizes.append(held(c))
    traces = sum(1 for v in c.vertices for t in v.node.traces())
    assert sizes[-1] < traces * 16_000, "of 36,000 rows on each side"
    assert sizes[-1] < 2 * sizes[0] + traces * 6_000


def test_an_arrangement_that_somebody_else_reads_is_kept_whole() -> None:
    c = hw.Circuit()
    a, b = c.input("a", SCHEMA).watermark("ts", LATENESS), c.input("b", SCHEMA)
    all_of_b = b.join(c.input("c", SCHEMA), ["ts", "k"], suffix="2")
    a.join(b, ["ts", "k"], suffix="2").output("o")
    all_of_b.output("p")
    for ts in range(0, 90_000, 1_000):
        rows = table([(ts + i, 1, 1, 1) for i in range(900)])
        c.step(a=rows, b=rows)
    found = c.step(c=table([(5, 1, 7, 1)]))["p"].to_arrow().to_pylist()
    assert [(r["ts"], r["v2"], r["_weight"]) for r in found] == [(5, 7, 1)]
