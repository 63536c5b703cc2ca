"""kill -9 of a refresh of a whole project at random moments: the next one converges, and everything is equal.

``HEADWATER_TEST_PROJECT_KILLS=500 pytest tests/pipeline/test_kill.py`` is the long form.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.amounts import everyday
from tests.incremental.killing import Server

import headwater as hw

KILLS = int(os.environ.get("HEADWATER_TEST_PROJECT_KILLS") or everyday(25, soak=500))
POINTS = (
    "pipeline.run.begin",
    "pipeline.node.published",
    "pipeline.ledger.before_append",
    "pipeline.ledger.after_append",
    "derived.record.before_commit",
    "derived.record.after_commit",
    "lake.commit.before_publish",
    "lake.commit.after_publish",
)
FILES = {
    "headwater.yaml": "name: shop\nindexes:\n  words: {on: notes, text: [body]}\n",
    "views/clean.sql": "SELECT id, k, x FROM t WHERE x IS NOT NULL",
    "views/spend.sql": "-- online:\n--   spend_online: {key: k}\nSELECT k, sum(x) AS s, count(*) AS n FROM clean GROUP BY k",
    "views/top.sql": "SELECT a.k, a.s, b.n FROM spend a JOIN names b ON a.k = b.k",
    "views/names.sql": "SELECT k, max(id) AS n FROM t GROUP BY k",
}


def make_project(folder: Path) -> hw.Lake:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    lake = hw.connect(folder / "lake")
    lake.write("t", rows(random.Random(1), 40))
    lake.write("notes", [{"id": n, "body": f"note {n}"} for n in range(5)])
    return lake


def rows(dice: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"id": dice.randrange(100), "k": dice.choice("abcdé"), "x": dice.choice([None, 1.5, 2.25, -1.0])}
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server("tests.pipeline.kill_server")
    yield found
    found.close()


@pytest.mark.long
def test_a_killed_refresh_converges(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FSYNC", "false")  # a killed process loses no page of the system's cache
    dice = random.Random(KILLS)
    lake = make_project(tmp_path)
    killed = 0
    assert server.live(folder=str(tmp_path)) == 0  # from the first build the server knows how long a life takes here
    change(lake, dice)
    for number in range(KILLS):
        if number % 2:
            command: dict[str, Any] = {"point": dice.choice(POINTS), "nth": dice.randrange(1, 6)}
        else:
            command = {"within": dice.uniform(0.02, 0.9)}
        status = server.live(folder=str(tmp_path), **command)
        assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, f"{number}: {command} failed by itself"
        killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        change(lake, dice)
        if number % 4 == 3:
            check(tmp_path)
    assert killed > KILLS // 4
    check(tmp_path)


def change(lake: hw.Lake, dice: random.Random) -> None:
    table = lake.table("t")
    table.append(rows(dice, 3))
    if dice.random() < 0.4:
        table.delete(f"id = {dice.randrange(100)}")
    if dice.random() < 0.2:
        table.optimize()
    lake.table("notes").append([{"id": dice.randrange(1000), "body": "a late note"}])


def check(folder: Path) -> None:
    """One refresh mends everything: all nodes at the same versions, equal to a recomputation, each publish in the
    ledger once.
    """
    with hw.Project.load(folder) as project:
        run = project.refresh(workers=2)
        assert run.ok, str(run)
        status = project.status()
        assert status.ok, str(status)
        for name, one in status.items():
            for table, version in one.frontier.items():
                assert version == project.lake.table(table).snapshot.version or not project.lake.derived(name).lag()
        assert project.verify().ok
        history = project.history().to_pylist()
        published = [(row["node"], row["version"]) for row in history if row["version"] is not None]
        assert len(published) == len(set(published))
        for name in project.graph.kept:
            at = [row["at"] for row in history if row["node"] == name and row["version"] is not None]
            last = project.lake.derived(name).record.last
            assert last is not None and at.count(last.time) == 1  # also where files were put together since
