"""A standalone cluster of which an executor is killed while it builds splits: the index is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.java_archive import java_options
from tests.spark_session.conftest import ONE_COMPILER, free_port, start_spark
from tests.timeseries.test_cluster import _lost

if TYPE_CHECKING:
    from tests.spark_session.conftest import StartSpark

__all__ = ["ONE_COMPILER", "start_spark"]


@pytest.mark.slow
@pytest.mark.spark
def test_a_killed_executor_leaves_nothing_but_an_orphan(start_spark: StartSpark, tmp_path: Path) -> None:
    port = str(free_port())
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    listening = ("--host", "127.0.0.1", "--port")
    pages = str(free_port())
    start_spark(f"{deploy}.master.Master", *listening, port, "--webui-port", pages, port=int(port))
    for number in range(2):
        worker = str(free_port())
        start_spark(
            *(f"{deploy}.worker.Worker", *listening, worker, "--webui-port", str(free_port())),
            *("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work{number}"), url),
            port=int(worker),
        )
    driver = Path(__file__).with_name("cluster_driver.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(driver), url, str(tmp_path)],
        env=os.environ
        | {
            "PYSPARK_PYTHON": sys.executable,
            "HEADWATER_PROGRESS": "off",
            "EXECUTOR_JAVA_OPTIONS": java_options(),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["killed"] == 1 and _lost(tmp_path / "events")[0] >= 1, "an executor was lost while it worked"
    assert found["verified"] and found["same"] and found["splits"] == 4, found
    assert found["orphans"] >= 1, "what the lost task had stored is named by nobody"
    assert found["read"] == found["scanned"] > 0, found
