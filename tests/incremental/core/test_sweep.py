"""Sweeps: what a rule lets go is what it should, whatever the runs are, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.base import settings
from headwater.incremental import spill
from headwater.incremental.layout import Layout, Order
from headwater.incremental.operators.settled import Below, Closed, Newest, Settled
from headwater.incremental.operators.watermark import Mark
from headwater.incremental.run import Run
from headwater.incremental.store import Store
from headwater.incremental.sweep import swept, swept_pieces
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), pa.field("v", pa.int64(), nullable=False)])
LAYOUT = Layout(SCHEMA, keys=1, order=[Order("ts")])
KEYS = ("a", "b", "one that is longer than twelve bytes", "another that is longer than twelve bytes", None)
NOW = Mark(lambda: None)

Row = tuple[Any, ...]
Table = Counter[Row]


def packed(rows: dict[Row, int]) -> ZSet:
    table = pa.Table.from_arrays(
        [pa.array([r[i] for r in rows], SCHEMA.field(i).type) for i in range(3)], schema=SCHEMA
    )
    return ZSet.packed(LAYOUT, table, np.array(list(rows.values()), dtype=np.int64))


def counted(*runs: Run) -> Table:
    found: Table = Counter()
    for run in runs:
        for *row, weight in zip(*run.zset().to_arrow().to_pydict().values(), strict=True):
            found[tuple(row)] += weight
    return Counter({r: w for r, w in found.items() if w})


def drawn(rng: random.Random, runs: int, rows: int) -> list[dict[Row, int]]:
    """Weights may come to less than nothing."""
    found = []
    for _ in range(runs):
        some: Table = Counter()
        for _ in range(rows):
            ts = None if rng.random() < 0.05 else rng.randrange(40)
            some[rng.choice(KEYS), ts, rng.randrange(3)] += rng.choice((-1, 1, 1))
        found.append({r: w for r, w in some.items() if w})
    return found


def newest(times: int) -> Callable[[Table, int], set[Row]]:
    def gone(table: Table, least: int) -> set[Row]:
        out = set()
        for key in KEYS:
            past = [r for r in table if r[0] == key and r[1] is not None and r[1] < least]
            last: Row | None = max((r for r in past if table[r] > 0), default=None, key=lambda r: r[1:])
            if times == 2 and last is not None:
                time = last[1]
                last = max((r for r in past if table[r] > 0 and r[1] < time), default=None, key=lambda r: r[1:])
            out |= {r for r in past if last is not None and r[1:] < last[1:]}
        return out

    return gone


def closed(gap: int) -> Callable[[Table, int], set[Row]]:
    def gone(table: Table, least: int) -> set[Row]:
        out = set()
        for key in KEYS:
            rows = sorted((r for r in table if r[0] == key and r[1] is not None and table[r] > 0), key=lambda r: r[1:])
            for i, row in enumerate(rows):
                last = row
                for other in rows[i:]:
                    if other[1] - last[1] > gap:
                        break
                    last = other
                if last[1] + gap < least:
                    out.add(row)
        return out | {r for r in table if r[1] is not None and r[1] < least and table[r] < 0}

    return gone


def below(table: Table, least: int) -> set[Row]:
    return {r for r in table if r[1] is not None and r[1] < least}


RULES: list[tuple[Settled, Callable[[Table, int], set[Row]]]] = [
    (Below("ts", NOW), below),
    (Newest("ts", NOW), newest(1)),
    (Newest("ts", NOW, 2), newest(2)),
    (Closed("ts", NOW, 1), closed(1)),
    (Closed("ts", NOW, 3), closed(3)),
]


@pytest.mark.parametrize(("rule", "expected"), RULES, ids=[str(i) for i in range(len(RULES))])
@pytest.mark.parametrize("mapped", [False, True])
def test_what_goes_is_what_the_rule_says(
    rule: Settled, expected: Callable[[Table, int], set[Row]], mapped: bool, tmp_path: Path
) -> None:
    rng = random.Random(str(rule))
    with Store(str(tmp_path)) as store:
        for turn in range(40):
            changes = drawn(rng, rng.randrange(1, 5), rng.randrange(1, 40))
            runs = [Run.of(packed(some)) for some in changes]
            if mapped:
                runs = [store.write(run, sync=False) for run in runs]
            least = rng.randrange(45)
            whole = counted(*runs)
            gone = expected(whole, least)
            kept = Counter({r: w for r, w in whole.items() if r not in gone})
            found = swept(runs, rule.gone(LAYOUT, 0, least))
            assert found == runs or counted(*found) == kept, f"turn {turn}"
            assert counted(*swept_pieces(runs, rule.gone(LAYOUT, 0, least), rows=7)) == kept, f"turn {turn}"
        del runs, found


def test_what_loses_little_stays_in_its_files() -> None:
    runs = [Run.of(packed({("a", i, 0): 1 for i in range(100 * n, 100 * n + 100)})) for n in range(3)]
    rule = Below("ts", NOW)
    assert swept(runs, rule.gone(LAYOUT, 0, 10)) == runs
    assert sum(map(len, swept(runs, rule.gone(LAYOUT, 0, 200)))) == 100
    assert swept(runs, rule.gone(LAYOUT, 0, 1_000)) == []


@pytest.mark.parametrize("budget", [0, 1 << 18])
def test_what_comes_meanwhile_stays(budget: int) -> None:
    trace = Trace(LAYOUT)
    rule = Newest("ts", NOW)
    with settings.override(state_memory_bytes=budget):
        for turn in range(12):
            first = 1_000 * turn
            with spill.put_off():
                trace.add(packed({(f"key {i % 50}", first + i // 7, i): 1 for i in range(7_000)}))
                trace.sweep(rule.gone(LAYOUT, 0, first))
                trace.add(packed({(f"key {i % 50}", first + i // 7, i): -1 for i in range(0, 7_000, 2)}))
            trace.settle()
        found = counted(*trace.runs)
    alive = {(f"key {i % 50}", 1_000 * t + i // 7, i) for t in range(12) for i in range(1, 7_000, 2)}
    assert {r for r in found if r[1] >= 11_000} == {r for r in alive if r[1] >= 11_000}
    for key in {r[0] for r in alive}:
        last = max((r for r in alive if r[0] == key and r[1] < 11_000), key=lambda r: r[1:])
        assert found[last] == 1
    assert set(found) <= alive, "what was taken back is not there again"
    assert len(found) < 10_000, "of 42,000 rows"
    assert any(run.mapped for run in trace.runs) == bool(budget)
