"""Many threads at once: 8 of them, each with its own mix of short and long queries on TPC-H's tables.

Three questions. Do all get the right answers, and is the whole no slower than the same queries one after the other? How long does
a short query take while long ones run? And how far does a thread of plain Python come meanwhile, which needs the
interpreter's lock: its speed beside a query in this process against its speed alone, and beside the same query in another
process, which takes the cores but not the lock.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
from queries import tpch
from queries.measuring import Report, difference, percentile, timed
from queries.peers import Query, headwater

__all__ = ["run"]

THREADS = 8
LONG = ("q1", "q3", "q5", "q9", "q10", "q13", "q18", "q21")
SHORT = (
    "SELECT count(*) AS n FROM nation",
    "SELECT * FROM orders WHERE o_orderkey = 7",
    "SELECT c_name, c_acctbal FROM customer WHERE c_custkey = 11",
    "SELECT n_name, count(*) AS n FROM supplier JOIN nation ON s_nationkey = n_nationkey GROUP BY n_name ORDER BY n_name",
)
_SHORT_PER_LONG = 4
_ELSEWHERE = """
import sys, headwater as hw
lake = hw.connect(sys.argv[1])
lake.sql(sys.argv[3], engine=sys.argv[2]).to_arrow()
print("ready", flush=True)
while True:
    lake.sql(sys.argv[3], engine=sys.argv[2]).to_arrow()
"""


def mixes() -> list[list[str]]:
    """The queries of each thread: two long ones, with short ones around them."""
    texts = tpch.queries()
    found = []
    for number in range(THREADS):
        mix: list[str] = []
        for step in range(2):
            mix += [SHORT[(number + step + i) % len(SHORT)] for i in range(_SHORT_PER_LONG)]
            mix.append(texts[LONG[(number + step * 3) % len(LONG)]])
        found.append(mix)
    return found


def run(data: Path, scale: float, rounds: int, engines: Sequence[str]) -> Report:
    lake = tpch.open_lake(data, scale)
    report = Report(
        f"{THREADS} threads at once, {sum(map(len, mixes()))} queries, scale {scale:g}, best of {rounds} rounds in turns: "
        "all answers right"
    )
    report.full_size = scale >= 1
    report.head = ("", *(f"hw {e}" for e in engines))
    columns = [_figures(lake.location, headwater(lake, e), e, rounds) for e in engines]
    for name in columns[0]:
        report.rows.append((name, *(f"{c[name]:.3f}" for c in columns)))
    report.figures = dict(zip(engines, columns, strict=True))
    for engine, c in zip(engines, columns, strict=True):
        report.target(f"hw {engine}, at once / one after the other, wall", c["ratio"], most=1.1)
    return report


def _figures(location: str, query: Query, engine: str, rounds: int) -> dict[str, float]:
    plan = mixes()
    known = {text: query(text) for mix in plan for text in mix}
    serial, parallel = [], []
    for _ in range(rounds):
        serial.append(timed(partial(_in_turn, query, [t for mix in plan for t in mix], known))[1])
        parallel.append(timed(partial(_at_once, query, plan, known))[1])
    one, many = min(s.wall for s in serial), min(s.wall for s in parallel)
    alone, beside = _latencies(query, known)
    idle, here, elsewhere = _counting(location, query, engine)
    return {
        "one after the other, s": one,
        "at once, s": many,
        "ratio": many / one,
        "CPU one after the other, s": min(s.cpu for s in serial),
        "CPU at once, s": min(s.cpu for s in parallel),
        "short query alone, median ms": statistics.median(alone) * 1000,
        "short query beside 2 long, median ms": statistics.median(beside) * 1000,
        "short query beside 2 long, 95% ms": percentile(beside, 0.95) * 1000,
        "short query beside 2 long, worst ms": max(beside) * 1000,
        "Python beside a long query, share of idle speed": here / idle,
        "Python beside it in another process, share": elsewhere / idle,
    }


def _checked(query: Query, text: str, known: dict[str, pa.Table]) -> None:
    other = difference(known[text], query(text), exact=True)
    assert other is None, f"{other}\n{text}"


def _in_turn(query: Query, texts: Sequence[str], known: dict[str, pa.Table]) -> None:
    for text in texts:
        _checked(query, text, known)


def _at_once(query: Query, plan: list[list[str]], known: dict[str, pa.Table]) -> None:
    with ThreadPoolExecutor(len(plan)) as pool:
        for done in [pool.submit(_in_turn, query, mix, known) for mix in plan]:
            done.result()


def _latencies(query: Query, known: dict[str, pa.Table]) -> tuple[list[float], list[float]]:
    """Walls of short queries, alone and while two threads run long ones."""

    def short(times: int) -> list[float]:
        return [timed(partial(_checked, query, t, known))[1].wall for _ in range(times) for t in SHORT]

    alone = short(5)
    long = tpch.queries()
    with _Background(lambda: query(long["q9"])), _Background(lambda: query(long["q18"])):
        beside = short(5)
    return alone, beside


class _Background:
    """Does something again and again in a thread of its own, until the block ends."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self._stop = work, threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def _repeat(self) -> None:
        while not self._stop.is_set():
            self._work()

    def __enter__(self) -> None:
        self._running = self._pool.submit(self._repeat)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._running.result()
        self._pool.shutdown()


def _counting(location: str, query: Query, engine: str) -> tuple[float, float, float]:
    """How far a loop in Python counts in a second: alone, beside a long query, and beside it in another process."""
    text = tpch.queries()["q18"]
    idle = _count()
    with _Background(lambda: query(text)):
        here = _count()
    other = subprocess.Popen(
        [sys.executable, "-c", _ELSEWHERE, location, engine, text], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None and other.stdout.readline().strip() == "ready"
        elsewhere = _count()
    finally:
        other.kill()
        other.communicate()
    return max(idle, _count()), here, elsewhere


def _count(seconds: float = 1.0) -> float:
    counted, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(1000):
            counted += 1
    return counted / (time.perf_counter() - start)
