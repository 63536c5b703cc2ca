"""A standalone cluster whose executors are killed: the answer is the same, and nobody has to do anything."""

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
from tests.timeseries.cluster_driver import KINDS

if TYPE_CHECKING:
    from tests.spark_session.conftest import StartSpark

__all__ = ["ONE_COMPILER", "start_spark"]


def _lost(events: Path) -> tuple[int, int]:
    """How many tasks were lost with an executor or could not fetch its blocks, and how many stages were run again."""
    tasks = again = 0
    for file in events.iterdir():
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd":
                tasks += event["Task End Reason"]["Reason"] in ("ExecutorLostFailure", "FetchFailed")
            elif event["Event"] == "SparkListenerStageSubmitted":
                again += event["Stage Info"]["Stage Attempt ID"] > 0
    return tasks, again


@pytest.mark.spark
@pytest.mark.parametrize("kinds", [("join",), pytest.param(KINDS, marks=pytest.mark.slow)], ids=["one", "every"])
def test_a_killed_executor_changes_nothing(start_spark: StartSpark, tmp_path: Path, kinds: tuple[str, ...]) -> None:
    port = str(free_port())
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    start_spark(
        f"{deploy}.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--webui-port",
        str(free_port()),
        port=int(port),
    )
    for number in range(2):
        worker = str(free_port())
        start_spark(
            *(f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--port", worker, "--webui-port", str(free_port())),
            *("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work{number}"), url),
            port=int(worker),
        )
    driver = Path(__file__).with_name("cluster_driver.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(driver), url, str(tmp_path), *kinds],
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
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [f["kind"] for f in found] == list(kinds)
    for line in found:
        assert line["killed"] == 1, line
        assert line["same"], line
    tasks, again = _lost(tmp_path / "events")
    assert tasks >= 1, "an executor was lost while it worked"
    if "join" in kinds:
        assert again >= 1, "blocks that were lost with it were made again"
