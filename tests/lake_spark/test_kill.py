"""kill -9 in the middle of a write from Spark: the table is as before or as after, and nothing stays behind for good.

The writer is a process with a session, killed when the job has ended and no file is moved, when all files are in place and nothing is
committed, and right after the commit. Starting a JVM takes longer than all of that, so the writers are forks of one process that has
one: each is killed in the middle of its own write, and the JVM waits for the next.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headwater as hw

POINTS = {
    "lake.spark.after_job": False,
    "lake.commit.before_publish": False,
    "storage.put_if_absent.after_publish": True,
}
PARENT = """
import os, sys
import headwater as hw
from headwater.testing import FaultPlan

session = hw.spark("local[1]", config={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"})
for name, point in zip(sys.argv[1::2], sys.argv[2::2]):
    writer = os.fork()
    if not writer:
        table = hw.connect("lake", spark=session).table(name)
        with FaultPlan().kill_at(point):
            table.append(session.range(100, 200).selectExpr("id", "CAST(id % 2 AS STRING) AS p"))
        os._exit(3)
    _, status = os.waitpid(writer, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.mark.spark
def test_a_killed_write_happened_or_did_not(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake")
    rows = [{"id": i, "p": str(i % 2)} for i in range(10)]
    tables = {point: lake.write(f"t{n}", rows, partition_by=["p"]) for n, point in enumerate(POINTS)}
    done = subprocess.run(
        [sys.executable, "-c", PARENT, *(word for point, table in tables.items() for word in (table.name, point))],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.split() == ["-9"] * len(POINTS), done.stdout + done.stderr
    for point, committed in POINTS.items():
        table = tables[point]
        assert table.version == int(committed), point
        assert table.count() == table.to_arrow().num_rows == (110 if committed else 10), point
        table.append([{"id": 500, "p": "0"}])
        table.vacuum(retention_hours=0, enforce_retention=False)
        assert table.to_arrow().num_rows == (111 if committed else 11), point
        kept = {e.path for e in table.storage.list("") if not e.path.startswith("_delta_log/")}
        assert kept == set(table.snapshot.files), point
