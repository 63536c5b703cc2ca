"""Spark's tasks and this process take turns on one state: the rows are the query's, and the state is that of a view that never left the process."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.incremental.views.spark.conftest import on, state_of
from tests.incremental.views.world import QUERIES, World

import headwater as hw
from headwater.base import settings
from headwater.base.errors import HeadwaterError, InputError, UnsupportedError
from headwater.cli import main
from headwater.derived import upkeep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "2"))


@pytest.mark.long
@pytest.mark.parametrize("name", ["groups", "outer"] if STEPS < 3 else sorted(QUERIES))
def test_turns_end_in_the_same_rows_and_state(name: str, tmp_path: Path, spark: SparkSession) -> None:
    rng = random.Random(name)
    world = World(tmp_path, seed=len(name))
    lake = hw.connect(tmp_path, spark=spark)
    view, twin = lake.view("v", QUERIES[name]), lake.view("twin", QUERIES[name])
    # One shard is one task for the whole circuit, more are an exchange.
    turns = [rng.choice([("spark", 1), ("spark", rng.randint(2, 5)), ("local", 1)]) for _ in range(STEPS - 1)]
    for engine, shards in [("spark", rng.randint(2, 5)), ("local", 1), ("spark", 1), ("spark", 3), *turns]:
        with on(engine, shards):
            done = view.refresh()
        with on("local"):
            twin.refresh()
        assert ("on Spark" in done.reason) == (engine == "spark" and done.mode != "noop")
        assert view.verify().equal, f"{engine}: {view.verify()}"
        assert sorted(map(str, view.to_pylist())) == sorted(map(str, twin.to_pylist()))
        assert upkeep.wait(60)
        assert state_of(view) == state_of(twin)
        for _ in range(2):
            world.commit(rng)


def test_the_jobs_of_a_refresh_say_what_they_did(tmp_path: Path, spark: SparkSession) -> None:
    World(tmp_path)
    lake = hw.connect(tmp_path, spark=spark)
    view = lake.view("v", QUERIES["join"])
    assert view.jobs().num_rows == 0
    with on("spark", 2):
        view.refresh()
    jobs = view.jobs().to_pylist()
    assert [one["job"] for one in jobs] == ["part 1 of 1", "publish"]
    assert jobs[0]["rows_in"] == 24, "orders and shops"
    assert all(one["shuffled_bytes"] > 0 and one["state_bytes"] > 0 and one["shards"] == 2 for one in jobs)
    assert jobs[0]["rows_out"] == jobs[1]["rows_in"] == view.rows
    assert "rows" in view.graph().text()


def test_a_statement_and_a_command_ask_for_an_engine(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    lake = hw.connect(tmp_path, spark=spark)
    view = lake.view("v", QUERIES["groups"])
    (built,) = lake.sql("REFRESH MATERIALIZED VIEW v WITH (ENGINE = 'spark')").to_pylist()
    assert (built["mode"], "on Spark" in built["reason"]) == ("full", True)
    assert view.jobs().num_rows > 0, "tasks have done it"
    world.orders.append(world.orders.to_arrow().slice(0, 3))
    assert main(["refresh", str(tmp_path), "v", "--engine", "spark", "--json"]) == 0
    (ticked,) = json.loads(capsys.readouterr().out)["artefacts"]
    assert (ticked["mode"], "on Spark" in ticked["reason"]) == ("incremental", True)
    world.orders.append(world.orders.to_arrow().slice(0, 3))
    (here,) = lake.sql("REFRESH MATERIALIZED VIEW v WITH (ENGINE = 'local')").to_pylist()
    assert (here["mode"], "on Spark" in here["reason"]) == ("incremental", False)
    assert view.verify().equal


def test_changes_of_few_rows_are_one_task_without_an_exchange(tmp_path: Path, spark: SparkSession) -> None:
    world = World(tmp_path)
    lake = hw.connect(tmp_path, spark=spark)
    view = lake.view("v", QUERIES["join"])
    view.refresh(engine="spark")
    assert len(view.jobs()) > 1, "what is built is divided"
    world.orders.delete("id < 12")
    done = view.refresh(engine="spark")
    assert done.mode == "incremental"
    (job,) = view.jobs().to_pylist()
    assert (job["job"], job["tasks"], job["shards"], job["shuffled_bytes"]) == ("whole circuit", 1, 1, 0)
    assert (job["rows_in"], job["rows_out"]) == (done.rows_in, done.rows_out)
    assert min(job["rows_out"], job["state_rows"], job["state_bytes"]) > 0
    assert view.verify().equal


def test_what_spark_cannot_do_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    World(tmp_path)
    lake = hw.connect(tmp_path, spark=spark)
    view = lake.view("v", QUERIES["groups"], policy="full")
    with on("spark"), pytest.raises(UnsupportedError, match="its policy is `full`"):
        view.refresh()
    assert not view.built
    assert view.refresh().mode == "full"


def test_the_engine_is_chosen_by_the_rows_and_the_plan_says_so(tmp_path: Path, spark: SparkSession) -> None:
    world = World(tmp_path)
    lake = hw.connect(tmp_path, spark=spark)
    view = lake.view("v", QUERIES["groups"])
    assert view.plan().engine == "local"
    assert "engine: local, since 20 rows are fewer than the 5,000,000" in str(view.plan())
    with settings.override(view_spark_rows=10):
        plan = view.plan()
        assert (plan.engine, plan.engine_reason) == (
            "spark",
            "20 rows are at least the 10 from which Spark is worth its start",
        )
        assert view.plan(engine="local").engine == "local"
    view.refresh(engine="local")
    world.orders.delete("id < 3")
    lake.sql("REFRESH MATERIALIZED VIEW v WITH (ENGINE = 'local')").to_arrow()
    with pytest.raises(HeadwaterError, match="is no engine for views"):
        lake.sql("REFRESH MATERIALIZED VIEW v WITH (ENGINE = 'sparc')")
    with pytest.raises(InputError, match="engine"):
        view.refresh(engine="sparc")  # type: ignore[arg-type]
    alone = hw.connect(tmp_path).view("v")
    world.orders.delete("id < 5")
    with pytest.raises(UnsupportedError, match="the lake has no Spark session"):
        alone.refresh(engine="spark")
