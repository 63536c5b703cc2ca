"""The driver of a standalone cluster's application: it runs a stream, and kills an executor while a stage of a kind runs.

Arguments: the master's URL, a folder, and the kinds of stage to kill in. Prints a line of JSON for each. What is slow is a function of the
stream's own, which writes a file when it begins in an executor and then waits: so a kill hits tasks of that stage, and executors
that hold blocks of the stages before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from tests.waiting import PATIENCE_S, wait_until

import headwater as hw
from headwater.timeseries.running import stages
from headwater.timeseries.running.here import run_here
from headwater.timeseries.sources import sharing
from headwater.timeseries.stream import Stream

KINDS = ("scan", "join", "gather", "write")


def slow(folder: str, seconds: float) -> Callable[[pa.Table], pa.Table]:
    """A transform that says where it runs, and takes its time."""

    def wait(rows: pa.Table) -> pa.Table:
        Path(folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(seconds)
        return rows

    return wait


def executors(application: str) -> list[int]:
    """The processes of the application's executors."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and application.encode() in words:
                found.append(int(folder.name))
    return sorted(found)


def kill_one(application: str, folder: str, killed: list[int]) -> None:
    """Wait until two tasks have begun, then kill an executor that runs one."""
    wait_until(lambda: len(os.listdir(folder)) >= 2, "two tasks")
    there = executors(application)
    for pid in there[:1]:
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)


def plan(kind: str, trades: Stream, quotes: Stream, folder: str, seconds: float) -> Stream:
    """A stream whose slow part is in a stage of the kind."""
    wait = slow(folder, seconds)
    if kind == "scan":
        return trades.transform(wait, schema=trades.schema).ordered("ts", by="symbol", tiebreak="tid").join_asof(quotes)
    joined = trades.join_asof(quotes)
    joined = joined.transform(wait, schema=joined.schema).ordered("ts", by="symbol", tiebreak="tid")
    if kind == "gather":
        return joined.quantiles(["price"], probabilities=[0.1, 0.5, 0.9])
    return joined


def main(url: str, folder: str, kinds: list[str]) -> None:
    # As if they were large: exchanged, and read by tasks of both executors.
    stages._GIVEN_BYTES, stages._SMALL_BYTES, sharing._LEAST_BYTES = 0, 1, 1
    config = {
        "spark.executor.memory": "512m",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": os.environ["EXECUTOR_JAVA_OPTIONS"],
        # Both executors are there before the first task, so each of them holds blocks when one is killed.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE_S}s",
        # A lost executor is noticed by its socket, and its blocks are made again at once.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "1s",
    }
    os.makedirs(f"{folder}/events")
    session = hw.spark(url, config=config)
    application = session.sparkContext.applicationId
    lake = hw.connect(f"{folder}/lake", spark=session)
    rows = 4_000
    for name, key, step in (("trades", "tid", 7), ("quotes", "qid", 3)):
        for start in range(0, rows, 1_000):
            numbers = range(start, start + 1_000)
            times = [(i * step * 7_919) % 100_000 for i in numbers]
            lake.write(
                name,
                pa.table(
                    {
                        "symbol": [f"s{i % 13}" for i in numbers],
                        "ts": times,
                        key: list(numbers),
                        "price": [i % 97 / 7 for i in numbers],
                    }
                ),
            )
    for kind in kinds:
        begun = f"{folder}/begun-{kind}"
        os.makedirs(begun)
        trades = lake.stream("trades", time="ts", by="symbol", tiebreak="tid")
        quotes = lake.stream("quotes", time="ts", by="symbol", tiebreak="qid")
        stream = plan(kind, trades, quotes, begun, 1.5)
        wanted = run_here(plan(kind, trades, quotes, begun, 0.0).plan)
        for name in os.listdir(begun):
            os.unlink(f"{begun}/{name}")
        killed: list[int] = []
        killer = threading.Thread(target=kill_one, args=(application, begun, killed))
        killer.start()
        if kind == "write":
            stream.write("joined")
            found = lake.table("joined").to_arrow()
        else:
            found = stream.collect()
        killer.join()
        same = sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))
        print(json.dumps({"kind": kind, "killed": len(killed), "rows": found.num_rows, "same": same}), flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
