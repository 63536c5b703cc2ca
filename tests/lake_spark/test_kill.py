"""kill -9 in the middle of a write from Spark: the table is as before or as after, and nothing stays behind for good.

The writer is a process with a session of its own, killed when the job has ended and no file is moved, when all files
are in place and nothing is committed, and right after the commit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headwater as hw

CHILD = """
import sys
import headwater as hw
from headwater.testing import FaultPlan

session = hw.spark("local[1]", config={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"})
table = hw.connect("lake", spark=session).table("t")
with FaultPlan().kill_at(sys.argv[1]):
    table.append(session.range(100, 200).selectExpr("id", "CAST(id % 2 AS STRING) AS p"))
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("point", "committed"),
    [
        ("lake.spark.after_job", False),
        ("lake.commit.before_publish", False),
        ("storage.put_if_absent.after_publish", True),
    ],
)
def test_a_killed_write_happened_or_did_not(tmp_path: Path, point: str, committed: bool) -> None:
    lake = hw.connect(tmp_path / "lake")
    table = lake.write("t", [{"id": i, "p": str(i % 2)} for i in range(10)], partition_by=["p"])
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, point],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert table.version == int(committed)
    assert table.count() == table.to_arrow().num_rows == (110 if committed else 10)
    table.append([{"id": 500, "p": "0"}])
    table.vacuum(retention_hours=0, enforce_retention=False)
    assert table.to_arrow().num_rows == (111 if committed else 11)
    kept = {e.path for e in table.storage.list("") if not e.path.startswith("_delta_log/")}
    assert kept == set(table.snapshot.files)
