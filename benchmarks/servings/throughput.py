"""Requests per second at 1, 8 and 64 connections, with one and two workers, and what one costs the servers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from benchmarks.servings.load import requests_per_second
from benchmarks.servings.measuring import cpu_of
from benchmarks.servings.ours import Server
from benchmarks.servings.peers import Peers
from benchmarks.servings.redis_peer import WIDTH
from benchmarks.servings.world import COLUMNS, World

__all__ = ["measure_throughput"]

_CONNECTIONS = (1, 8, 64)
_TURNS = 2


def measure_throughput(peers: Peers, folder: Path, world: World, seconds: float) -> None:
    """Everybody is asked in turns; of two runs of each the better one counts."""
    two = Server(folder, workers=2)
    two.client.fetch("floats", ["item_1"])
    for count in (1_000, 100):
        keys = [world.keys(numbers) for numbers in world.requests(64, count, 31)]
        ours = [_http(k) for k in keys]
        blobs = len(b"*%d\r\n" % count) + count * (WIDTH + len(b"$%d\r\n" % WIDTH) + 2)
        runs: list[tuple[str, int, list[bytes], int | None, list[int]]] = [
            ("ours, 1 worker", peers.ours.port, ours, None, peers.ours.pids),
            ("ours, 2 workers", two.port, ours, None, two.pids),
            ("redis", peers.redis.port, [peers.lean.encode(k) for k in keys], blobs, [peers.redis.process.pid]),
        ]
        runs += [(one.name, one.port, [one.encode(k, COLUMNS) for k in keys], None, [one.pid]) for one in peers.murrs]
        best: dict[tuple[str, int], tuple[float, float]] = {}
        for _ in range(_TURNS):
            for connections in _CONNECTIONS:
                for name, port, requests, size, pids in runs:
                    before = cpu_of(pids)
                    rate = requests_per_second(port, connections, requests, answer_bytes=size, seconds=seconds)
                    cost = (cpu_of(pids) - before) / (rate * seconds) * 1e6
                    best[name, connections] = max(best.get((name, connections), (0.0, 0.0)), (rate, cost))
        print(f"\nrequests a second, {count:,} keys (and server CPU us of a request)")
        print(f"{'':20s}" + "".join(f"{f'{c} connections':>22s}" for c in _CONNECTIONS))
        for name, *_ in runs:
            cells = [f"{best[name, c][0]:12,.0f} ({best[name, c][1]:5.0f})" for c in _CONNECTIONS]
            print(f"{name:20s}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)
    two.close()


def _http(keys: list[str]) -> bytes:
    """The request that our own client would send."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.array(keys)], names=["key"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    body = sink.getvalue().to_pybytes()
    kind = "application/vnd.apache.arrow.stream"
    head = (
        "POST /v1/tables/floats/fetch HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: {kind}\r\nAccept: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
