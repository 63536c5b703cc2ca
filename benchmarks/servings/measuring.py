"""Timing requests: competitors take turns, each request is timed alone, and CPU is counted on both sides."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil

__all__ = ["Competitor", "Timing", "cpu_of", "interleave", "print_table"]

_BLOCK = 20


def cpu_of(pids: Sequence[int]) -> float:
    """CPU seconds of the threads that processes have, by the scheduler's own clock: the usual one ticks every 10 ms."""
    total = 0
    for pid in pids:
        for task in psutil.Process(pid).threads():
            try:
                with open(f"/proc/{pid}/task/{task.id}/schedstat") as f:
                    total += int(f.read().split()[0])
            except FileNotFoundError:  # it has ended
                continue
    return total / 1e9


@dataclass
class Timing:
    """The requests of one competitor: seconds of each, CPU of this process and of the server's."""

    seconds: list[float] = field(default_factory=list)
    client_cpu: float = 0.0
    server_cpu: float = 0.0

    def percentile(self, share: float) -> float:
        return float(np.percentile(self.seconds, share)) * 1e6


@dataclass
class Competitor:
    """A way to ask: from numbers of rows to a matrix, and the processes of the server."""

    name: str
    ask: Callable[[Any], Any]
    prepare: Callable[[np.ndarray], Any]  # type: ignore[type-arg]
    pids: Sequence[int] = ()


def interleave(
    competitors: Sequence[Competitor],
    requests: Sequence[np.ndarray],
    check: Callable[[np.ndarray, Any, str], None],  # type: ignore[type-arg]
) -> dict[str, Timing]:
    """Ask everybody everything, in blocks of a few requests in turns; the first answers of each are checked."""
    found = {one.name: Timing() for one in competitors}
    prepared = {one.name: [one.prepare(numbers) for numbers in requests] for one in competitors}
    for one in competitors:
        for numbers, given in list(zip(requests, prepared[one.name], strict=True))[:_BLOCK]:
            check(numbers, one.ask(given), one.name)
    for begin in range(0, len(requests), _BLOCK):
        for one in competitors:
            timing, given = found[one.name], prepared[one.name][begin : begin + _BLOCK]
            server, client = cpu_of(one.pids), time.process_time()
            for each in given:
                start = time.perf_counter()
                one.ask(each)
                timing.seconds.append(time.perf_counter() - start)
            timing.client_cpu += time.process_time() - client
            timing.server_cpu += cpu_of(one.pids) - server
    return found


def print_table(title: str, found: dict[str, Timing], ours: str) -> None:
    print(f"\n{title}")
    print(f"{'(CPU us a request)':44s} {'p50 us':>8s} {'p99 us':>8s} {'client':>8s} {'server':>8s} {'ratio':>7s}")
    base = found[ours].percentile(50)
    for name, timing in found.items():
        count = len(timing.seconds)
        print(
            f"{name:44s} {timing.percentile(50):8.0f} {timing.percentile(99):8.0f} {timing.client_cpu / count * 1e6:8.0f} "
            f"{timing.server_cpu / count * 1e6:8.0f} {timing.percentile(50) / base:6.2f}x",
            flush=True,
        )
