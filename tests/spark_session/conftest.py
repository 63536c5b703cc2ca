"""Spark servers from the classes of the pip package, each in its own process on the loopback interface."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.java_archive import java_options
from tests.waiting import PATIENCE_S, listens, wait_until

ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""For JVMs that live for seconds: the second compiler only costs them processor time."""

RunPython = Callable[..., str]
StartSpark = Callable[..., None]


def free_port() -> int:
    """A port that nobody listens on, out of those that systems do not give to whoever asks for any: so nobody takes it before it is used."""
    for port in random.SystemRandom().sample(range(10_000, 30_000), 100):
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port of a hundred is free")


@pytest.fixture
def start_spark(tmp_path: Path) -> Iterator[StartSpark]:
    """Start a class of Spark's in a JVM and wait until it listens on ``port``; ``python`` is what its tasks run."""
    import pyspark

    processes: list[subprocess.Popen[bytes]] = []

    def start(*command: str, port: int, python: str | None = None) -> None:
        home = Path(pyspark.__file__).parent
        environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": java_options()}
        environment |= {"PYSPARK_PYTHON": python or sys.executable}
        if python is not None:
            environment.pop("PYTHONPATH", None)  # it is to have what it has by itself
        log = (tmp_path / f"{len(processes)}.log").open("wb")
        # `spark-class` ends in exec, so the process that is started here is the JVM itself.
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command], env=environment, stdout=log, stderr=log, cwd=tmp_path
        )
        log.close()
        processes.append(process)
        wait_until(lambda: process.poll() is not None or listens(port), lambda: Path(log.name).read_text())
        assert process.poll() is None, Path(log.name).read_text()

    yield start
    for process in reversed(processes):
        process.kill()
        process.wait()


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run a program in a process of its own, because a process can have only one kind of Spark session."""

    def run(program: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "ignore::FutureWarning", "-c", program],
            env=os.environ | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip() + "\n--\n" + done.stderr.strip()

    return run
