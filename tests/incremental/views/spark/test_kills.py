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
from tests.incremental.views.test_kill import kill_again_and_again

POINTS = [
    "view.refresh.begin",
    "view.publish.written",
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
    kills = int(os.environ.get("HEADWATER_TEST_KILLS", "8"))

    def commands() -> Iterator[dict[str, Any]]:
        while True:
            for point in chance.sample(POINTS, len(POINTS)):
                yield {"point": point, "nth": chance.randint(1, 5), "engine": "spark", "full": chance.random() < 0.1}
                engine = chance.choice(["spark", "local"])
                yield {"after_ms": chance.uniform(5, 400), "engine": engine}

    assert kill_again_and_again(server, tmp_path, 5, commands(), kills) > kills // 3
