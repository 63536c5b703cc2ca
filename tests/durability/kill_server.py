"""A process that has everything imported and forks a child for each write path that is to be killed.

It never computes anything itself, so no thread exists when it forks. Commands come as JSON lines on stdin:
``{"path": name, "folder": …, "point": …, "nth": n}`` kills the child at the nth hit of a point, and with ``"after_ms"``
instead the parent kills it at that moment. The answer is a line: the child's wait status, and how long it lived.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import duckdb  # noqa: F401  (children need not load it again)
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from tests.durability.write_paths import BY_NAME

import headwater as hw
from headwater.lake import merge, optimize, restore, vacuum  # noqa: F401
from headwater.testing.faults import FaultPlan


def _child(command: dict[str, Any]) -> None:
    plan = FaultPlan()
    if "point" in command:
        plan.kill_at(command["point"], nth=command["nth"])
    lake = hw.connect(command["folder"])
    with plan:
        BY_NAME[command["path"]].act(lake)


def _run(command: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _child(command)
            status = 0
        finally:
            os._exit(status)
    if "after_ms" in command:
        time.sleep(command["after_ms"] / 1000)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return {"status": status, "ms": (time.monotonic() - began) * 1000}


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
