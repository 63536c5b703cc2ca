"""Act five: a refresh is killed in the middle, and the next one goes on as if nothing had been.

The process that refreshes gets SIGKILL at a named point of its own code, right after a publish and before that is in
the ledger. So it dies in the middle on any machine, quick or slow, and the act does not hold where it did not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from headwater.demo.act import Act
from headwater.demo.cards.stage import Stage

__all__ = ["crash"]

PATIENCE_SECONDS = 60.0
_CORRECT = "UPDATE transactions SET cents = cents + 100 WHERE transaction_id % 100 = 7"
_REFRESH = """
from headwater.cli import main
from headwater.testing import FaultPlan
with FaultPlan.from_env():
    raise SystemExit(main(["refresh"]))
"""


def crash(stage: Stage, *, after: int = 2) -> Act:
    """Change many rows, kill the process that refreshes when it has published ``after`` nodes, and refresh again."""
    lake, project = stage.lake, stage.project
    changed = lake.sql(_CORRECT).to_dicts()[0]["num_affected_rows"]
    wanted = int(lake.sql("SELECT sum(cents) FROM transactions").scalar())
    before = _frontiers(stage)
    ended = _killed(stage, after)
    between = _frontiers(stage)
    run = project.refresh(wait_seconds=PATIENCE_SECONDS)
    done = _frontiers(stage)
    verified = project.verify("customer_spend", "merchant_day", "velocity")
    cents = int(lake.sql("SELECT sum(cents) FROM customer_spend").scalar())
    published, due = (sum(one[name] != before[name] for name in before) for one in (between, done))
    return Act(
        "kill -9 in the middle of a refresh, and again: nothing to repair",
        f"{_CORRECT};\nheadwater refresh &   kill -9 $!;   headwater refresh",
        {
            "rows corrected": changed,
            "how the refresh ended": "SIGKILL" if ended == -signal.SIGKILL else f"exit code {ended}",
            "published before it was killed": f"{published} of {due} nodes",
            "the next refresh": run.summary(),
            "verified": ", ".join(f"{one.name}: {one.state}" for one in verified),
        },
        check="what was published stayed, what was not came with the next refresh, and all of it is right",
        holds=ended == -signal.SIGKILL
        and 0 < published < due
        and run.ok
        and len(run.changed) == due - published
        and cents == wanted
        and verified.ok,
    )


def _frontiers(stage: Stage) -> dict[str, str]:
    return {name: str(stage.lake.derived(name).frontier) for name in stage.lake.artefacts()}


def _killed(stage: Stage, after: int) -> int:
    """Refresh in another process, which is killed at its nth publish; gives how it ended."""
    environment = {**os.environ, "HEADWATER_FAULTS": f"pipeline.node.published:kill:{after}"}
    command, quiet = [sys.executable, "-c", _REFRESH], subprocess.DEVNULL
    return subprocess.run(
        command, cwd=stage.folder, env=environment, stdout=quiet, stderr=quiet, check=False
    ).returncode
