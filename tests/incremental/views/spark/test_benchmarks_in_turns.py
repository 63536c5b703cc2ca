"""TPC-H under refresh streams and Nexmark's queries as views that change their runtime: rows and state are those of a twin that never does.

A sample of the queries in the suite; with HEADWATER_TEST_STEPS all of them, for so many rounds.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.incremental.views.spark.conftest import on, state_of
from tests.sql.oracle import sections
from tests.sql.tpch import tables

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.derived import upkeep
from headwater.incremental.views.spark.places import here
from headwater.lakehouse import Lake
from headwater.testing.nexmark import SCHEMAS, batches

ROUNDS = int(os.environ.get("HEADWATER_TEST_STEPS", "0"))
TPCH = sections("tpch.sql")
SAMPLE = ("q3", "q13", "q15", "q21")
FOLDER = Path(__file__).parents[2] / "nexmark"
NEXMARK = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
NEXMARK_SAMPLE = ("q4", "q6", "q18")


def _take_turns(
    lake: Lake, queries: Mapping[str, str], change: Callable[[random.Random], None], *, rounds: int
) -> None:
    rng = random.Random(len(queries))
    pairs = []
    refused = []
    for name, sql in queries.items():
        try:
            pairs.append((name, lake.view(name, sql), lake.view(f"{name}_twin", sql)))
        except HeadwaterError as error:
            refused.append((name, error.message))
    assert not refused, refused
    for number in range(rounds):
        for name, view, twin in pairs:
            engine = "spark" if not number else rng.choice(["spark", "local"])
            with here(), on(engine, rng.choice([1, 1, 2, 5, 7])):
                done = view.refresh()
            with on("local"):
                twin.refresh()
            assert ("on Spark" in done.reason) == (engine == "spark" and done.mode != "noop"), (name, done)
            assert view.verify().equal, f"{name}, round {number}, {engine}: {view.verify()}"
            assert upkeep.wait(60)
            assert state_of(view) == state_of(twin), f"{name}, round {number}, {engine}"
        change(rng)


@pytest.mark.long
def test_tpch(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    keys = sorted(set(tables()["orders"]["o_orderkey"].to_pylist()))
    moved = 10  # as many come as go, so that the stream has no end
    there = set(random.Random(1).sample(keys, 150))

    def of_orders(name: str, wanted: set[int]) -> pa.Table:
        key = {"orders": "o_orderkey", "lineitem": "l_orderkey"}[name]
        return tables()[name].filter(pc.is_in(tables()[name][key], pa.array(sorted(wanted), pa.int64())))

    for name, table in tables().items():
        lake.write(name, of_orders(name, there) if name in ("orders", "lineitem") else table)

    def change(rng: random.Random) -> None:
        new, old = set(rng.sample(sorted(set(keys) - there), moved)), set(rng.sample(sorted(there), moved))
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            lake.table(name).append(of_orders(name, new))
            lake.table(name).delete(f"{key} IN ({', '.join(map(str, old))})")
        there.update(new)
        there.difference_update(old)

    chosen = TPCH if ROUNDS else {name: TPCH[name] for name in TPCH if name.lower() in SAMPLE}
    assert chosen
    _take_turns(lake, chosen, change, rounds=ROUNDS or 3)


@pytest.mark.long
def test_nexmark(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    made = itertools.count(1)

    def events(first: int, count: int) -> dict[str, pa.Table]:
        found = next(batches(3, batch_events=count, first_event=first))
        return {name: pa.Table.from_batches([batch]) for name, batch in found.items()}

    for name, rows in events(0, 1_500).items():
        lake.write(name, rows)

    def change(rng: random.Random) -> None:
        for name, rows in events(1_500 + 200 * next(made), 200).items():
            lake.table(name).append(rows)
            old = lake.table(name).to_arrow().slice(rng.randint(0, 50), 5)
            column = SCHEMAS[name].names[0]
            if old.num_rows:
                lake.table(name).delete(f"{column} IN ({', '.join(map(str, old[column].to_pylist()))})")

    chosen = NEXMARK if ROUNDS else {name: NEXMARK[name] for name in NEXMARK_SAMPLE}
    _take_turns(lake, chosen, change, rounds=ROUNDS or 3)
