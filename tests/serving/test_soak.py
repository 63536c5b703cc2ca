"""Lookups across swaps: two workers, overlays and compactions, and processes that are killed; nothing fails, nothing mixes.

Every day 30,000 lookups across 20 swaps, and 8 kills; by `make soak` 10 million across 1,000, and 1,000.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from tests.amounts import everyday
from tests.waiting import wait_until

import headwater as hw
from headwater.derived import upkeep
from headwater.lakehouse import Lake

pytestmark = pytest.mark.long

ROWS = 500
LOOKUPS = everyday(30_000, soak=10_000_000)
SWAPS = everyday(20, soak=1_000)
KILLS = int(os.environ.get("HEADWATER_TEST_KILLS", "8"))


@contextmanager
def served(lake: Lake, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    place = lake.location.removeprefix("file://")
    command = [sys.executable, "-m", "headwater.cli", "serve", place, "--port", "0", "--workers", "2", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        with server.stdout:
            yield server, server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def children(server: subprocess.Popen[str]) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(server.pid).children()
    return found


def own_bytes(server: subprocess.Popen[str]) -> int:
    """What the processes have for themselves alone."""
    return sum(int(child.memory_full_info().uss) for child in children(server))


class Readers:
    """Threads that ask for all rows again and again, and note what is wrong with an answer."""

    def __init__(self, url: str, count: int = 2) -> None:
        self.url, self.lookups, self.problems = url, 0, list[object]()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._read) for _ in range(count)]

    def _read(self) -> None:
        keys = list(range(ROWS))
        with hw.Client(self.url, timeout=30) as client:
            while not self._stop.is_set():
                try:
                    answer = client.fetch("o", keys)
                    values = np.unique(answer.to_numpy()).tolist()
                    if values != [answer.frontier["t"]] or not answer.found.all():
                        self.problems.append((values, str(answer.frontier)))
                except hw.HeadwaterError as error:
                    self.problems.append(error)
                self.lookups += ROWS

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def made(folder: Path) -> Lake:
    lake = hw.connect(folder)
    lake.write("t", pa.table({"k": range(ROWS), "v": np.zeros(ROWS)}))
    lake.online("o", "t", key="k", refresh=True)
    return lake


def test_lookups_across_swaps(tmp_path: Path) -> None:
    lake = made(tmp_path / "lake")
    table, online, rng = lake.table("t"), lake.online("o"), random.Random(1)
    modes, before = set(), 0
    with served(lake, "--no-refresh") as (server, url), Readers(url) as readers:
        for number in range(1, SWAPS + 1):
            table.update({"v": str(number)})
            modes.add(online.refresh(full=rng.random() < 0.1).mode)
            if number % 10 == 0:
                online.compact()
            if number == SWAPS // 5:
                before = own_bytes(server)
        wait_until(lambda: readers.lookups >= LOOKUPS or readers.problems, "enough lookups")
        upkeep.wait()
        with hw.Client(url) as client:
            wait_until(lambda: str(client.fetch("o", [1]).frontier) == f"t@{SWAPS}", "the last version")
        after = own_bytes(server)
        assert readers.problems == []
    assert modes == {"full", "incremental"}
    assert after < before * 1.2 + (24 << 20), f"{before >> 20} MiB became {after >> 20} MiB"
    assert online.verify().equal


def test_processes_are_killed(tmp_path: Path) -> None:
    """Workers and the process that publishes: clients see a retry at most, which the client does by itself."""
    lake = made(tmp_path / "lake")
    table, rng = lake.table("t"), random.Random(2)
    with served(lake) as (server, url), Readers(url) as readers:
        for number in range(1, KILLS + 1):
            table.update({"v": str(number)})
            wait_until(lambda: len(children(server)) >= 3, "all processes")
            rng.choice(children(server)).send_signal(signal.SIGKILL)
            seen = readers.lookups
            wait_until(lambda seen=seen: readers.lookups > seen + ROWS or readers.problems, "answers")  # type: ignore[misc]
        with hw.Client(url) as client:
            wait_until(lambda: str(client.fetch("o", [1]).frontier) == f"t@{KILLS}", "the last version")
        assert readers.problems == []
    assert lake.online("o").verify().equal
