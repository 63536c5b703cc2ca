"""Act five: a refresh is killed in the middle, and the next one goes on as if nothing had been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from headwater.demo.act import Act
from headwater.demo.cards.stage import Stage

__all__ = ["crash"]

PATIENCE_SECONDS = 60.0
_CORRECT = "UPDATE transactions SET cents = cents + 100 WHERE transaction_id % 100 = 7"


def crash(stage: Stage) -> Act:
    """Change many rows, kill the process that refreshes as soon as it has published something, and refresh again."""
    lake, project = stage.lake, stage.project
    changed = lake.sql(_CORRECT).to_dicts()[0]["num_affected_rows"]
    wanted = int(lake.sql("SELECT sum(cents) FROM transactions").scalar())
    before = _frontiers(stage)
    published = _killed(stage, before)
    run = project.refresh(wait_seconds=PATIENCE_SECONDS)
    verified = project.verify("customer_spend", "merchant_day", "velocity")
    cents = int(lake.sql("SELECT sum(cents) FROM customer_spend").scalar())
    return Act(
        "kill -9 in the middle of a refresh, and again: nothing to repair",
        f"{_CORRECT};\nheadwater refresh &   kill -9 $!;   headwater refresh",
        {
            "rows corrected": changed,
            "published before it was killed": f"{published} of {len(before)} nodes",
            "the next refresh": run.summary(),
            "verified": ", ".join(f"{one.name}: {one.state}" for one in verified),
        },
        check="what was published stayed, what was not came with the next refresh, and all of it is right",
        holds=run.ok and cents == wanted and verified.ok,
    )


def _frontiers(stage: Stage) -> dict[str, str]:
    return {name: str(stage.lake.derived(name).frontier) for name in stage.lake.artefacts()}


def _killed(stage: Stage, before: dict[str, str]) -> int:
    """Refresh in another process until something is published, kill it, and say how many nodes were."""
    command = [sys.executable, "-m", "headwater.cli", "refresh"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=stage.folder, stdout=quiet, stderr=quiet) as process:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and _frontiers(stage) == before and time.monotonic() < deadline:
            time.sleep(0.005)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
    after = _frontiers(stage)
    return sum(after[name] != frontier for name, frontier in before.items())
