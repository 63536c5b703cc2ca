"""A standalone cluster of a master and two workers: executors and drivers are killed while a view is refreshed, and nobody has to do anything.

After each kill the next driver's refresh ends, and the view equals its query; in the end nothing lies about that no commit names.
HEADWATER_TEST_KILLS says how often; five by default.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]
import pytest
from tests.incremental.views.spark.conftest import on
from tests.incremental.views.test_kill import check_tidy
from tests.incremental.views.world import QUERIES, World
from tests.java_archive import java_options
from tests.spark_session.conftest import ONE_COMPILER, free_port, start_spark
from tests.waiting import PATIENCE_S

from headwater.derived import upkeep

if TYPE_CHECKING:
    from tests.spark_session.conftest import StartSpark

__all__ = ["start_spark"]

KILLS = int(os.environ.get("HEADWATER_TEST_KILLS", "5"))
DRIVER = """
import sys
import headwater as hw
config = {{"spark.executor.memory": "512m", "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1"}}
config |= {{"spark.driver.extraJavaOptions": {driver!r}, "spark.executor.extraJavaOptions": {executor!r}}}
config |= {{"spark.speculation": "true", "spark.speculation.multiplier": "1.1", "spark.sql.shuffle.partitions": "2"}}
view = hw.connect({lake!r}, spark=hw.spark({url!r}, config=config)).view("v")
print("ready", flush=True)
for _ in sys.stdin:
    print(view.refresh(engine="spark").reason, flush=True)
"""


class _Driver:
    """A process that refreshes the view when it is asked to."""

    def __init__(self, lake: Path, url: str) -> None:
        program = DRIVER.format(lake=str(lake), url=url, driver=ONE_COMPILER, executor=java_options())
        environ = {**os.environ, "PYSPARK_PYTHON": sys.executable, "HEADWATER_VIEW_SPARK_SHARDS": "4"}
        environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.startswith("ready") or "on Spark" in line or "nothing has changed" in line:
                return line.strip()
        return ""

    def ask(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        return self._line()

    def kill(self) -> None:
        family = [self.process.pid, *(p.pid for p in psutil.Process(self.process.pid).children(recursive=True))]
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(60)
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _executors(workers: Path) -> list[int]:
    """The executors whose working folders are below this one."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line = " ".join(process.info["cmdline"] or ())
        if "CoarseGrainedExecutorBackend" in line and str(process.info["cwd"]).startswith(str(workers)):
            found.append(process.pid)
    return found


@pytest.mark.spark
@pytest.mark.slow
def test_executors_and_drivers_are_killed(start_spark: StartSpark, tmp_path: Path) -> None:
    port, pages = free_port(), free_port()
    url, deploy = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    command = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(pages))
    start_spark(f"{deploy}.master.Master", *command, port=port)
    for number in range(2):
        worker, worker_pages = free_port(), free_port()
        start_spark(
            *(f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--port", str(worker), "--cores", "1"),
            *(
                "--webui-port",
                str(worker_pages),
                "--memory",
                "600m",
                "--work-dir",
                str(tmp_path / f"work{number}"),
                url,
            ),
            port=worker,
        )
    rng = random.Random(11)
    world = World(tmp_path / "lake", 2)
    view = world.lake.view("v", QUERIES["outer"])
    driver = _Driver(tmp_path / "lake", url)
    try:
        for kill in range(KILLS):
            before = view.frontier
            driver.ask()
            time.sleep(rng.uniform(0.5, 6))
            if kill % 2:
                driver.kill()
                at = view.frontier
                assert at in (before, world.head(*view.sources)), "before or after, and nothing between"
                assert not at or view.verify().equal
                driver = _Driver(tmp_path / "lake", url)
                driver.ask()
            else:
                executors = _executors(tmp_path)
                if executors:
                    os.kill(rng.choice(executors), signal.SIGKILL)
            assert driver.answer(), "the refresh ends though something was killed"
            assert view.frontier == world.head(*view.sources)
            assert view.verify().equal
            for _ in range(3):
                world.commit(rng)
            world.orders.append(world.orders.to_arrow().slice(0, 2))
    finally:
        driver.kill()
    world.orders.append(
        world.orders.to_arrow().slice(0, 1)
    )  # so that there is something to refresh, and what was left is swept
    with on("local"):
        view.refresh()
    assert upkeep.wait(PATIENCE_S)
    assert view.verify().equal
    check_tidy(view)
    assert not (tmp_path / "lake/_headwater/views/v/spark").exists()
