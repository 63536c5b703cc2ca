"""Lookups across swaps: two workers, overlays and compactions, and processes that are killed; nothing fails, nothing mixes.

Swaps are of all kinds: some rows get other values, some go, some come back, all are rewritten, all is built again. What
the table holds at each version is known before it is committed (`History`), and every answer is compared with that of
the version that it names, row by row, for keys that never were there, too.

Every day 100,000 lookups across 50 swaps, and 25 kills; by `make soak` 10 million across 1,000, and 1,000.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
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
from headwater.serving.answer import Answer

pytestmark = pytest.mark.long

ROWS = 500
KEYS = ROWS + 100
"""Those from ROWS on never have a row."""
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


class History:
    """A table that is changed in all ways, and what it holds at each version: a value for each key, or NaN."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.table, self._rng = lake.table("t"), random.Random(seed)
        self.kinds: Counter[str] = Counter()
        self._values = np.full(KEYS, np.nan)
        self._values[:ROWS] = 0
        self.at = {self.table.version: self._values}

    def step(self, number: int) -> int:
        """One commit; gives its version."""
        values, version = self._values.copy(), self.table.version + 1
        some = self._rng.randrange(2, 50)
        those = (np.arange(KEYS) % some == self._rng.randrange(some)) & (np.arange(KEYS) < ROWS)
        gone = np.flatnonzero(np.isnan(values[:ROWS]))
        kind = self._rng.choices(["some", "delete", "return", "all"], [5, 2, 2, 1])[0]
        if kind == "some" and np.isnan(values[those]).all():
            kind = "all"
        if kind == "return" and not len(gone):
            kind = "delete"
        if kind == "delete" and (np.isnan(values[those]).all() or len(gone) > ROWS // 2):
            kind = "all"
        where = f"k IN ({', '.join(map(str, np.flatnonzero(those)))})"
        there = ~np.isnan(values)
        if kind == "return":
            values[gone] = number
        elif kind == "delete":
            values[those] = np.nan
        else:
            values[there & those if kind == "some" else there] = number
        self.at[version] = self._values = values  # before anybody can see it
        if kind == "return":
            self.table.append(pa.table({"k": gone, "v": np.full(len(gone), float(number))}))
        elif kind == "delete":
            self.table.delete(where)
        else:
            self.table.update({"v": str(number)}, where=where if kind == "some" else None)
        assert self.table.version == version
        self.kinds[kind] += 1
        return version

    def problem(self, keys: list[int], answer: Answer) -> object | None:
        """What is wrong with an answer; None if it is what its version holds."""
        version = answer.frontier["t"]
        expected = self.at[version][keys]
        values = answer["v"].to_numpy(zero_copy_only=False)
        if len(answer) != len(keys) or not np.array_equal(values, expected, equal_nan=True):
            return version, keys, values.tolist(), expected.tolist()
        if not np.array_equal(answer.found, ~np.isnan(expected)):
            return version, keys, answer.found.tolist()
        return None


class Readers:
    """Threads that ask for all rows, and for some, again and again, and note what is wrong with an answer."""

    def __init__(self, url: str, history: History, *, retries: int, count: int = 2) -> None:
        self.url, self.retries, self.problems = url, retries, list[object]()
        self.history = history
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
                keys = rng.sample(range(KEYS), rng.choice((1, 100, KEYS)))
                try:
                    answer = client.fetch("o", keys)
                    if (problem := self.history.problem(keys, answer)) is not None:
                        self.problems.append(problem)
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
    history, online, rng = History(lake, 1), lake.online("o"), random.Random(1)
    modes, before, deleted, deepest = set(), 0, 0, 0
    with served(lake, "--no-refresh") as (server, url), Readers(url, history, retries=0) as readers:
        for number in range(1, SWAPS + 1):
            history.step(number)
            modes.add(online.refresh(full=rng.random() < 0.1).mode)
            layers = online.record.layers
            deepest, deleted = max(deepest, len(layers)), max(deleted, sum(one.tombstones for one in layers))
            if number % 10 == 0:
                online.compact()
            # The readers go on for as long as the versions do.
            share = LOOKUPS * number // SWAPS
            wait_until(lambda share=share: readers.lookups >= share or readers.problems, "enough lookups")  # type: ignore[misc]
            assert readers.problems == []
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
    assert set(history.kinds) == {"some", "delete", "return", "all"}
    assert deepest > 2 and deleted > 0, "there were overlays above overlays, with deleted keys"
    assert after < before * 1.2 + (24 << 20), f"{before >> 20} MiB became {after >> 20} MiB"
    assert online.verify().equal


def test_processes_are_killed(tmp_path: Path) -> None:
    """Workers and the process that publishes: clients see one retry at most, which the client does by itself."""
    lake = made(tmp_path / "lake")
    history, rng = History(lake, 2), random.Random(2)
    with served(lake) as (server, url), Readers(url, history, retries=1) as readers:
        number = killed = 0
        while killed < KILLS:
            number += 1
            history.step(number)
            wait_until(lambda: len(children(server)) >= 2, "processes")  # of three: the last one may be on its way
            victim = rng.choice(children(server))
            with suppress(psutil.NoSuchProcess):
                victim.send_signal(signal.SIGKILL)
                killed += 1
            seen = readers.lookups
            wait_until(lambda seen=seen: readers.lookups > seen + ROWS or readers.problems, "answers")  # type: ignore[misc]
            assert readers.problems == []
            if number % max(1, KILLS // 20) == 0:
                print(f"{killed} kills, {readers.lookups:,} lookups")
        with hw.Client(url) as client:
            wait_until(lambda: client.fetch("o", [1]).frontier["t"] == number, "the last version")
        assert readers.problems == []
    assert lake.online("o").verify().equal
