"""Lookups across swaps: two workers, overlays and compactions, and processes that are killed; nothing fails, nothing mixes.

Every day 100,000 lookups across 50 swaps, and 25 kills; by `make soak` 10 million across 1,000, and 1,000.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from tests.amounts import everyday
from tests.waiting import PATIENCE_S, wait_until

import headwater as hw
from headwater.derived import upkeep
from headwater.lakehouse import Lake

pytestmark = pytest.mark.long

ROWS = 500
LOOKUPS = everyday(100_000, soak=10_000_000)
SWAPS = everyday(50, soak=1_000)
KILLS = int(os.environ.get("HEADWATER_TEST_KILLS", "25"))


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
    """Its processes that live; one that was killed may still be on the list."""
    found: list[psutil.Process] = []
    for one in psutil.Process(server.pid).children():
        with suppress(psutil.NoSuchProcess):
            if one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def own_bytes(server: subprocess.Popen[str]) -> int:
    """What the processes have for themselves alone."""
    return sum(int(child.memory_full_info().uss) for child in children(server))


class Readers:
    """Threads that ask for all rows, and for some, again and again, and note what is wrong with an answer."""

    def __init__(self, url: str, *, retries: int, count: int = 2) -> None:
        self.url, self.retries, self.problems = url, retries, list[object]()
        self._lookups = [0] * count
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(number,)) for number in range(count)]

    @property
    def lookups(self) -> int:
        return sum(self._lookups)

    def _read(self, number: int) -> None:
        rng, last = random.Random(number), 0
        with hw.Client(self.url, timeout=PATIENCE_S, retries=self.retries) as client:
            while not self._stop.is_set():
                keys = rng.sample(range(ROWS), rng.choice((1, 100, ROWS)))
                try:
                    answer = client.fetch("o", keys)
                    values = np.unique(answer.to_numpy()).tolist()
                    if values != [answer.frontier["t"]] or not answer.found.all() or len(answer) != len(keys):
                        self.problems.append((values, str(answer.frontier)))
                    last = max(last, answer.frontier["t"])
                except hw.HeadwaterError as error:
                    self.problems.append((last, error))
                self._lookups[number] += len(keys)

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
    with served(lake, "--no-refresh") as (server, url), Readers(url, retries=0) as readers:
        for number in range(1, SWAPS + 1):
            table.update({"v": str(number)})
            modes.add(online.refresh(full=rng.random() < 0.1).mode)
            if number % 10 == 0:
                online.compact()
            # The readers go on for as long as the versions do.
            share = LOOKUPS * number // SWAPS
            wait_until(lambda share=share: readers.lookups >= share or readers.problems, "enough lookups")  # type: ignore[misc]
            if number == SWAPS // 5:
                before = own_bytes(server)
            if number % max(1, SWAPS // 20) == 0:
                print(f"{number} swaps, {readers.lookups:,} lookups, {own_bytes(server) >> 20} MiB")
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
    with served(lake) as (server, url), Readers(url, retries=2) as readers:
        number = killed = 0
        while killed < KILLS:
            number += 1
            table.update({"v": str(number)})
            wait_until(lambda: len(children(server)) >= 2, "processes")  # of three: the last one may be on its way
            victim = rng.choice(children(server))
            with suppress(psutil.NoSuchProcess):
                victim.send_signal(signal.SIGKILL)
                killed += 1
            seen = readers.lookups
            wait_until(lambda seen=seen: readers.lookups > seen + ROWS or readers.problems, "answers")  # type: ignore[misc]
            if number % max(1, KILLS // 20) == 0:
                print(f"{killed} kills, {readers.lookups:,} lookups")
        with hw.Client(url) as client:
            wait_until(lambda: client.fetch("o", [1]).frontier["t"] == number, "the last version")
        assert readers.problems == []
    assert lake.online("o").verify().equal
