"""A standalone cluster, a master and one worker, each a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.java_archive import java_options

from .conftest import ONE_COMPILER, free_port

if TYPE_CHECKING:
    from .conftest import RunPython, StartSpark

PROGRAM = """
import headwater as hw
config = {{"spark.executor.memory": "512m", "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1"}}
config |= {{"spark.driver.extraJavaOptions": {driver!r}, "spark.executor.extraJavaOptions": {executor!r}}}
session = hw.spark({url!r}, config=config)
print(session.range(0, 100, 1, 4).mapInArrow(lambda batches: batches, "id long").count())
print(session.sparkContext.master)
session.stop()
"""


@pytest.mark.spark
def test_cluster(start_spark: StartSpark, run_python: RunPython, tmp_path: Path) -> None:
    port, pages, worker, worker_pages = (str(free_port()) for _ in range(4))
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    start_spark(f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", pages, port=int(port))
    start_spark(
        *(f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--port", worker, "--webui-port", worker_pages),
        *("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"), url),
        port=int(worker),
    )
    out = run_python(
        PROGRAM.format(url=url, driver=ONE_COMPILER, executor=java_options()), PYSPARK_PYTHON=sys.executable
    )
    assert out == f"100\n{url}\n--\n"
