"""Everybody who is compared, with the same rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.servings.murr_peer import Murr, MurrWheel
from benchmarks.servings.ours import Server
from benchmarks.servings.redis_peer import Lean, Redis
from benchmarks.servings.world import STRING_ROWS, World

__all__ = ["Peers"]

_HASHES = 100_000


class Peers:
    """Our server, Redis, and those servers of Murr that are there."""

    def __init__(self, folder: Path, world: World, murr: str | None, murr_python: str | None) -> None:
        start = time.perf_counter()
        self.ours = Server(folder)
        print(f"our server is ready after {self.ours.started:.2f} s", flush=True)
        self.ours.client.fetch("floats", ["item_1"])
        strings = world.chunks(strings=True)[0].slice(0, STRING_ROWS)
        self.redis = Redis()
        seconds = self.redis.load(world)
        _say("redis", world.rows / seconds, self.redis.bytes / world.rows)
        self.hashes = min(world.rows, _HASHES)
        self.redis.load_hashes(world, self.hashes)
        self.redis.load_strings(strings)
        self.lean = Lean(self.redis.port)
        self.murrs: list[Murr | MurrWheel] = []
        for made in (Murr(murr) if murr else None, MurrWheel(murr_python) if murr_python else None):
            if made is None:
                continue
            self.murrs.append(made)
            seconds = made.load(world)
            _say(made.name, world.rows / seconds, psutil.Process(made.pid).memory_full_info().pss / world.rows)
            made.load_strings(strings)
        print(f"peers are loaded after {time.perf_counter() - start:.0f} s", flush=True)

    @property
    def redis_pids(self) -> Sequence[int]:
        return [self.redis.process.pid]

    def close(self) -> None:
        self.ours.close()
        self.redis.close()
        for murr in self.murrs:
            murr.close()


def _say(name: str, rows_per_second: float, bytes_per_row: float) -> None:
    print(f"{name}: {rows_per_second:,.0f} rows a second, {bytes_per_row:.1f} bytes a row", flush=True)
