"""A process that has the kernels loaded and forks a child for each refresh that is to be killed.

Commands come as JSON lines on stdin: ``{"folder": …, "views": […]}`` with ``"after_ms"``, the moment of the kill, or ``"point"`` and
``"nth"``. The child opens the lake and refreshes the views, one after the other. The answer is the child's wait status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from typing import Any

import headwater as hw
from headwater.testing.faults import FaultPlan


def live(command: dict[str, Any]) -> None:
    """One life: refresh each view, until the end or the kill."""
    lake = hw.connect(command["folder"])
    for name in command["views"]:
        lake.view(name).refresh(full=command.get("full", False))


def _run(command: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            plan = FaultPlan()
            if "point" in command:
                plan.kill_at(command["point"], nth=command["nth"])
            with plan:
                live(command)
            status = 0
        finally:
            os._exit(status)
    if "after_ms" in command:
        time.sleep(command["after_ms"] / 1000)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _load_kernels() -> None:
    """Refresh views of the same shapes once, so that no child has to compile anything."""
    from tests.incremental.views.test_kill import VIEWS
    from tests.incremental.views.world import World

    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, 1)
        for name, sql in VIEWS.items():
            view = world.lake.view(name, sql)
            view.refresh()
            world.orders.append(world.orders.to_arrow())
            view.refresh()
            view.optimize()


def main() -> None:
    _load_kernels()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
