"""kill -9 anywhere in refreshes of which some are computed by the tasks of Spark's runtime: the view is as before or after, and nothing is left.

Tasks run in the process that is killed (`places.here`), so a kill meets every write of theirs; what a kill of Spark's own processes leaves is
`test_cluster_kills`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.incremental.killing import Server
from tests.incremental.views.spark.conftest import on
from tests.incremental.views.test_kill import check_tidy, kill_again_and_again
from tests.incremental.views.world import QUERIES, World

from headwater.base.errors import HeadwaterError
from headwater.incremental.views import live as lives
from headwater.incremental.views.spark.places import here
from headwater.testing.faults import FaultPlan, InjectedError

POINTS = [
    "view.refresh.begin",
    "view.publish.written",
    "view.journal.before",
    "view.refresh.stepped",
    "state.run.before_write",
    "state.checkpoint.before_manifest",
    "view.commit.before",
    "view.commit.after",
    "lake.data_file.before_publish",
    "lake.vector_file.before_publish",
    "storage.open_output.before_publish",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server("tests.incremental.views.kill_server", HEADWATER_PROGRESS="off")
    yield made
    made.close()


@pytest.mark.long
def test_kills_of_both_runtimes(server: Server, tmp_path: Path) -> None:
    chance = random.Random(8)
    kills = int(os.environ.get("HEADWATER_TEST_KILLS", "12"))

    def commands() -> Iterator[dict[str, Any]]:
        while True:
            for point in chance.sample(POINTS, len(POINTS)):
                yield {"point": point, "nth": chance.randint(1, 3), "engine": "spark", "full": chance.random() < 0.1}
                yield {"point": point, "nth": chance.randint(1, 2), "engine": "spark", "shards": 1}
                engine = chance.choice(["spark", "local"])
                yield {"within": chance.uniform(0.05, 1), "engine": engine}

    assert kill_again_and_again(server, tmp_path, 5, commands(), kills, between=True) > kills // 5


@pytest.mark.long
@pytest.mark.parametrize(("query", "nth"), [("groups", 3), ("outer", 5), ("projection", 4)])
def test_a_build_that_was_interrupted_goes_on(query: str, nth: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.lake.view("v", QUERIES[query])
    plan = FaultPlan().raise_at("view.journal.before", nth=nth, error=InjectedError("gone"))
    with here(), on("spark", 4), plan, pytest.raises((HeadwaterError, OSError)):
        view.refresh()
    assert not view.built
    lives.forget(view._environment.root, "v")  # another process goes on, and the sources have changed
    world.orders.append(world.orders.to_arrow().slice(0, 3))
    world.orders.delete("id = 5")
    with here(), on("spark", 2):
        done = view.refresh()
    assert f"{nth - 1} shards were done before it was interrupted" in done.reason
    assert done.mode == "full"
    assert view.frontier == world.head(*view.sources)
    assert view.verify().equal
    with on("local"):
        world.orders.append(world.orders.to_arrow().slice(0, 3))
        view.refresh()
    assert view.verify().equal
    view.optimize()
    check_tidy(view)
    assert not (tmp_path / "_headwater/views/v/spark").exists()
