"""Several refresh at once: threads of one process, and processes. One does the work, the others wait and find it done, or do the rest."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.incremental.views.world import World

import headwater as hw
from headwater.derived.reports import Refresh
from headwater.testing.faults import FaultPlan

ROOT = Path(__file__).parents[3]
SQL = "SELECT name, count(*) AS n, sum(amount) AS total FROM orders GROUP BY name"
CHILD = """
import sys
import headwater as hw
view = hw.connect(sys.argv[1]).view("v")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    print(view.refresh().mode, flush=True)
"""


def test_threads_share_the_work(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    lake = hw.connect(tmp_path)
    lake.view("v", SQL).refresh()
    rng = random.Random(1)
    for _ in range(4):
        world.commit(rng)
        world.orders.append(world.orders.to_arrow().slice(0, 1))
        reports: list[Refresh] = []

        def work(reports: list[Refresh] = reports) -> None:
            reports.append(hw.connect(tmp_path).view("v").refresh())

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        modes = sorted(r.mode for r in reports)
        assert modes == ["incremental"] + ["noop"] * 5, "one of them did it, the others found it done"
        assert lake.view("v").verify().equal


@pytest.mark.long
def test_processes_take_turns(tmp_path: Path) -> None:
    world = World(tmp_path, 2)
    view = world.lake.view("v", SQL)
    view.refresh()
    rng = random.Random(2)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path), "4"],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    while any(child.poll() is None for child in children):
        world.commit(rng)
        view.refresh()  # this process refreshes as well
    for child in children:
        out, err = child.communicate()
        assert child.returncode == 0, err
        assert set(out.split()) <= {"incremental", "noop"}, out
    world.commit(rng)
    view.refresh()
    assert view.verify().equal
    versions = [h for h in view.table.history() if h.operation == "REFRESH MATERIALIZED VIEW"]
    frontiers = [h.parameters["frontier"] for h in versions]
    assert len(set(frontiers)) == len(frontiers), "no frontier was published twice"


def test_who_loses_the_commit_begins_again(tmp_path: Path) -> None:
    """Somebody optimizes the view's table while it is being refreshed: the refresh sees it, and does its work on the new files."""
    world = World(tmp_path, 3)
    view = world.lake.view("v", "SELECT id, name FROM orders")
    view.refresh()
    world.orders.append(world.orders.to_arrow().slice(0, 3))
    view.refresh()
    world.orders.delete("id < 8")
    done: list[int] = []

    def optimize(_point: str, _detail: str) -> None:
        if not done:
            done.append(view.table.optimize().version)

    with FaultPlan().call_at("view.commit.before", optimize):
        report = view.refresh()
    assert done and report.mode == "incremental"
    assert view.table.version > done[0]
    assert view.verify().equal
