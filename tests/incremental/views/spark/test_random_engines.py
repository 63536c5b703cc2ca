"""Random views by the tasks that Spark would run, shard by shard or one for all, and by this process, in turns: the rows are the query's, the state is
that of one that never moved.

The tasks run here (`places.here`), so that each kind of operator goes through cutting, sending, stepping, naming and publishing; on Spark the same is
asked of a few views. HEADWATER_TEST_SEEDS makes it longer.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.incremental.views.spark.conftest import on, state_of
from tests.incremental.views.test_random_views import orders, rows_of

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.derived import upkeep
from headwater.incremental.views.spark import running
from headwater.incremental.views.spark.places import here
from headwater.testing.views import SCHEMAS, random_view

SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "1")) * 6
FIRST = int(os.environ.get("HEADWATER_TEST_SEED", "5000"))


@pytest.mark.long
def test_random_views_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_MOST_ALIKE", 1)  # runs are put together at every other refresh
    refused = by_tasks = by_one = 0
    rng = random.Random(FIRST)
    for seed in range(SEEDS):
        if seed % 4 == 0:
            lake, order = hw.connect(tmp_path / str(seed)), orders(rng)
            for name in SCHEMAS:
                lake.write(name, rows_of(rng, name, 12, order))
        sql = random_view(FIRST + seed)
        # One shard follows changes without an exchange.
        turns = [("spark", rng.randint(1, 6)), ("spark", 1), ("spark", rng.randint(2, 6)), ("local", 1)]
        turns = [turns[0], *rng.sample(turns[1:], 3), ("spark", rng.choice([1, 1, 4]))]
        where = f"seed {FIRST + seed}, {turns}\n{sql}"
        try:
            view, twin = lake.view(f"v{seed}", sql), lake.view(f"t{seed}", sql)
            with on("local"):
                twin.refresh()
        except HeadwaterError:
            refused += 1
            continue
        for step, (engine, shards) in enumerate(turns):
            with here(), on(engine, shards):
                done = view.refresh(full=step > 0 and rng.random() < 0.2)
            by_tasks += "on Spark" in done.reason
            whole = engine == "spark" and shards == 1 and done.mode == "incremental" and "on Spark" in done.reason
            assert (
                ("whole circuit" in view.jobs()["job"].to_pylist()) == whole or engine == "local" or done.mode == "noop"
            ), where
            by_one += whole
            with on("local"):
                twin.refresh()
            assert view.verify().equal, f"step {step}: {view.verify()}\n{where}"
            assert upkeep.wait(60)
            assert state_of(view) == state_of(twin), f"step {step}\n{where}"
            for name in SCHEMAS:
                if rng.random() < 0.5:
                    lake.table(name).append(rows_of(rng, name, 3, order))
                else:
                    lake.table(name).delete(f"k = {rng.randint(0, 4)}")
        view.drop()
        twin.drop()
    assert by_tasks > SEEDS
    assert by_one > SEEDS // 2
    assert refused < SEEDS // 2
