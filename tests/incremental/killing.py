"""Lives that are killed: a process that has everything loaded forks a child for each, and tells how it ended.

A server is a module of the tests whose main calls `serve`. Commands come as JSON lines on stdin: whatever the life needs, with ``"after_ms"``,
the moment of the kill, ``"point"`` and ``"nth"``, or ``"fault"``, as in HEADWATER_FAULTS. The answer is the child's
wait status. The server itself starts no thread before it forks.

How long a life takes depends on the machine. Where a kill is to come before the end, ``within`` says it as a share of what the last whole life took.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from tests.waiting import PATIENCE_S

from headwater.testing.faults import FaultPlan

ROOT = Path(__file__).parents[2]


class Server:
    """The process that forks the lives; ``module`` is what it runs, with these variables in its environment."""

    def __init__(self, module: str, **environ: str) -> None:
        paths = os.pathsep.join([str(ROOT), *sys.path])
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env={**os.environ, "HEADWATER_FSYNC": "false", "PYTHONPATH": paths, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._whole_ms: float | None = None
        assert self._out.readline() == "ready\n"

    @property
    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def live(self, **command: Any) -> int:
        assert self.process.stdin is not None
        if "within" in command:
            assert self._whole_ms is not None, "a life has come to its end"
            command["after_ms"] = command.pop("within") * self._whole_ms
        begun = time.monotonic()
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        status = int(json.loads(self._out.readline()))
        if status == 0 and "after_ms" not in command:
            self._whole_ms = 1_000 * (time.monotonic() - begun)
        return status

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self._out.close()


def serve(live: Callable[[dict[str, Any]], None], load_kernels: Callable[[], None]) -> None:
    """Answer commands; kernels are loaded before, so that no child has to compile anything."""
    load_kernels()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(live, json.loads(line))), flush=True)


def _run(live: Callable[[dict[str, Any]], None], command: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            plan = FaultPlan.parse(command.get("fault", ""))
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
