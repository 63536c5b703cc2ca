"""Histories with a moving watermark, for circuits that forget: what is late is known here too, and everything that was accepted is kept.

Rows are (ts, k, v), with nulls among the times and the keys. Each step puts rows around a time that goes on, some of them late, and takes
rows back, of which those behind the watermark are late as well. Now and then a step fails, two steps are one transaction, or the circuit begins again
from a checkpoint with another number of shards. After every step the sum of the output's changes has to be what ``answer`` makes of all accepted rows, and what
was reported late has to be what was late.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.testing.circuits import Integral

Row = tuple[Any, ...]
Table = Counter[Row]
Build = Callable[[Mapping[str, Any]], Any]
Answer = Callable[[Mapping[str, Table]], Table]

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), pa.field("v", pa.int64(), nullable=False)])
KEYS = ("a", "b", "a key that is longer than twelve bytes", "seldom", None)
OFTEN = (6, 2, 6, 1, 1)
SPEED = 4
# The time moves by SPEED a step: the marks pass every lateness here several times over. `make soak` plays longer ones.
STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "40"))


def table(rows: Sequence[tuple[Row, int]]) -> pa.Table:
    columns = [pa.array([r[i] for r, _ in rows], SCHEMA.field(i).type) for i in range(3)]
    weights = pa.array([w for _, w in rows], pa.int64())
    return pa.Table.from_arrays(
        [*columns, weights], schema=SCHEMA.append(pa.field("_weight", pa.int64(), nullable=False))
    )


def traces(c: hw.Circuit) -> list[Trace]:
    return [t for v in c.vertices for n in v.nodes for t in n.traces().values()]


def settled(c: hw.Circuit) -> int:
    """How many rows are held when nothing goes on in the background."""
    for each in traces(c):
        each.settle()
    return sum(map(len, traces(c)))


class Side:
    """An input, how late its rows may be (None: it has no watermark), what was accepted, and what time it is."""

    def __init__(self, lateness: int | None, behind: int = 0) -> None:
        self.lateness = lateness
        self.behind = behind
        self.rows: Table = Counter()
        self.recent: list[Row] = []
        self.greatest: int | None = None

    def drawn(self, rng: random.Random, now: int) -> list[tuple[Row, int]]:
        found: list[tuple[Row, int]] = []
        for _ in range(rng.randrange(6)):
            ts = None if rng.random() < 0.03 else now - self.behind + rng.randrange(-16, 4)
            row = (ts, rng.choices(KEYS, OFTEN)[0], 1 + rng.randrange(3))
            found.append((row, rng.choice((1, 1, 1, 2))))
        while self.recent and rng.random() < 0.45:
            row = self.recent.pop(-1 - rng.randrange(min(len(self.recent), 30)))
            found.append((row, -1))
        return found

    def accepted(self, changes: Sequence[tuple[Row, int]]) -> list[tuple[Row, int]]:
        """Take what is in time, and give what is late."""
        mark = None if self.lateness is None or self.greatest is None else self.greatest - self.lateness
        late = []
        for row, weight in changes:
            if mark is not None and row[0] is not None and row[0] < mark:
                late.append((row, weight))
                continue
            self.rows[row] += weight
            if weight > 0:
                self.recent += [row] * weight
            assert self.rows[row] >= 0, "only what is there is taken back"
            if not self.rows[row]:
                del self.rows[row]
        known = [row[0] for row, _ in changes if row[0] is not None]
        self.greatest = max([*known, *([] if self.greatest is None else [self.greatest])], default=None)
        return late


def play(
    build: Build, answer: Answer, sides: Mapping[str, Side], *, folder: Path, seed: str, shards: int, steps: int
) -> None:
    """Play a history, and compare after every step."""
    rng = random.Random(seed)
    marked = {name: side.lateness for name, side in sides.items() if side.lateness is not None}

    def circuit(shards: int) -> hw.Circuit:
        c = hw.Circuit(shards=shards)
        inputs = {name: c.input(name, SCHEMA) for name in sides}
        streams = {n: s if n not in marked else s.watermark("ts", marked[n]) for n, s in inputs.items()}
        for name in marked:
            streams[name].late().output(f"late {name}")
        build(streams).output("o")
        for name, stream in inputs.items():
            stream.select(q="1 / v").output(f"fails {name}")
        return c

    c = circuit(shards)
    out = Integral()
    late_rows = 0
    with Store(str(folder)) as store:
        for step in range(steps):
            drawn = {name: side.drawn(rng, SPEED * step) for name, side in sides.items()}
            if rng.random() < 0.1:
                wrong = {name: table([*rows, ((SPEED * step, "a", 0), 1)]) for name, rows in drawn.items()}
                with pytest.raises(hw.ExpressionError):
                    c.step(wrong)
            if rng.random() < 0.1:
                with c.transaction() as transaction:
                    for name, rows in drawn.items():
                        c.step({name: table(rows)})
                given = transaction.outputs
                assert given is not None
            else:
                given = c.step({name: table(rows) for name, rows in drawn.items()})
            for name, side in sides.items():
                late = Integral()
                if side.lateness is not None:
                    late.add(given[f"late {name}"].to_arrow())
                expected: Table = Counter()
                for row, weight in side.accepted(drawn[name]):
                    expected[row] += weight
                    late_rows += 1
                assert late.rows == Counter({r: w for r, w in expected.items() if w}), f"step {step}"
            out.add(given["o"].to_arrow())
            assert out.rows == answer({name: side.rows for name, side in sides.items()}), f"step {step}"
            if rng.random() < 0.1:
                settled(c)
            if rng.random() < 0.04:
                c.checkpoint(store)
                c = circuit(3 - shards if rng.random() < 0.5 else shards)
                c.restore(store)
                store.sweep()
        del c
    assert not marked or late_rows > 20, "the history has late rows"
