"""Our own server, started as users start it, and what it takes: CPU and memory of its processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

import headwater as hw
from headwater.serving.client import Client

__all__ = ["Server"]


class Server:
    """``headwater serve LAKE`` on a free port."""

    def __init__(self, lake: Path, *, workers: int = 1, follow: bool = False) -> None:
        command = [sys.executable, "-m", "headwater.cli", "serve", str(lake), "--port", "0", "--workers", str(workers)]
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, *([] if follow else ["--no-refresh"])],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http"), "the server prints its address when it is ready"
        self.started = time.perf_counter() - start
        self.client: Client = hw.Client(self.url)

    @property
    def pids(self) -> list[int]:
        return [self.process.pid, *(child.pid for child in psutil.Process(self.process.pid).children(recursive=True))]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def memory(self) -> tuple[int, int]:
        """Bytes of its processes, what they share counted once: in all, and without what is mapped from files."""
        infos = [psutil.Process(pid).memory_full_info() for pid in self.pids]
        return sum(i.pss for i in infos), sum(i.uss for i in infos)

    def close(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
