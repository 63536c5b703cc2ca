"""Looking rows up: our server and its client against Redis and Murr, in the same run, with the same rows.

    python benchmarks/serving.py [--rows 5000000] [--requests 600] [--murr /path/to/murr]

Murr's server is built from its crate outside of this tree (``cargo install murr``); without it that peer is left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent))

import headwater as hw
from benchmarks.servings.limit import memory_walk
from benchmarks.servings.load import requests_per_second
from benchmarks.servings.measuring import Competitor, cpu_of, interleave, print_table
from benchmarks.servings.murr_peer import Murr
from benchmarks.servings.ours import Server
from benchmarks.servings.redis_peer import WIDTH, Lean, Redis
from benchmarks.servings.world import COLUMNS, World
from headwater.lakehouse import Lake


def main() -> int:
    arguments = _arguments()
    world = World(arguments.rows)
    with tempfile.TemporaryDirectory(prefix="headwater-serving-", dir=arguments.folder) as folder:
        lake = hw.connect(folder)
        online = _build(lake, world)
        _limit(online, world, arguments)
        _freshness(lake, online, world)
        peers = _Peers(Path(folder), world, arguments.murr)
        try:
            _requests(peers, world, arguments)
            _strings(lake, world, arguments)
            _throughput(peers, Path(folder), world, arguments)
        finally:
            peers.close()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run of requests per second")
    parser.add_argument("--murr", help="the program of Murr's server")
    parser.add_argument("--folder", help="where the lake is made")
    return parser.parse_args()


def _build(lake: Lake, world: World) -> Any:
    first, *rest = world.chunks(strings=True)
    table = lake.table("items")
    table.create(first.schema, data=first, properties={"delta.enableChangeDataFeed": "true"})
    for chunk in rest:
        table.append(chunk)
    online = lake.online("floats", "items", key="key", columns=COLUMNS)
    cpu, start = time.process_time(), time.perf_counter()
    online.refresh()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - start
    each = online.record.layers[-1].bytes / world.rows
    print(
        f"built {world.rows:,} rows from a Delta table in {wall:.1f} s, {cpu:.1f} CPU s: {each:.1f} bytes a row",
        flush=True,
    )
    online.built_cpu = cpu
    return online


def _limit(online: Any, world: World, arguments: argparse.Namespace) -> None:
    from headwater.kernels.arrays import read_only
    from headwater.kernels.online_find import find_records

    version = online.current
    version.populate()
    layers, walk = version.mapped, memory_walk(version)
    rng = np.random.default_rng(3)
    entries = int(layers.table[-1, 1])
    for count in (1_000, 100):
        kernel, memory, whole = [], [], []
        for numbers in world.requests(arguments.requests, count, 11):
            keys = version.keys(world.keys(numbers))
            spots, others = rng.integers(0, entries, count), rng.integers(0, world.rows, count)
            given = (
                read_only(keys.data),
                read_only(keys.offsets),
                layers.table,
                1,
                layers.layout.shape,
                layers.signed_seed,
            )
            records, heaps = np.empty(count, np.int64), np.zeros(count, np.int64)
            start = time.perf_counter()
            walk(spots, others)
            memory.append(time.perf_counter() - start)
            start = time.perf_counter()
            find_records(*given, records, heaps)
            kernel.append(time.perf_counter() - start)
            start = time.perf_counter()
            version.fetch(keys)
            whole.append(time.perf_counter() - start)
        p50 = [float(np.median(v)) * 1e6 for v in (memory, kernel, whole)]
        print(
            f"{count:5,} keys in this process: memory alone {p50[0]:.0f} us, found {p50[1]:.0f} us ({p50[1] / p50[0]:.2f}x), "
            f"fetched as an Arrow stream {p50[2]:.0f} us",
            flush=True,
        )


def _freshness(lake: Lake, online: Any, world: World) -> None:
    """What a commit of 100 rows costs, against building."""
    server = Server(Path(lake.location.removeprefix("file://")))
    rng = np.random.default_rng(5)
    rows, refreshed, cpus = [], [], []
    for turn in range(12):
        numbers = np.unique(rng.integers(0, world.rows, 100))
        fixes = {"key": world.keys(numbers)} | {c: np.full(len(numbers), -turn, np.float32) for c in COLUMNS}
        lake.write("fixes", pa.table({**fixes, "title": ["fixed"] * len(numbers)}), mode="overwrite")
        lake.sql("MERGE INTO items t USING fixes s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *")
        cpu, start = time.process_time(), time.perf_counter()
        online.refresh()
        cpus.append(time.process_time() - cpu)
        refreshed.append(time.perf_counter() - start)
        while float(server.client.fetch("floats", [fixes["key"][0]], ["c0"]).to_numpy()[0, 0]) != -turn:
            pass
        rows.append(time.perf_counter() - start)
        world.values[numbers] = -turn
    server.close()
    print(
        f"100 rows merged: refreshed in {np.median(refreshed) * 1e3:.1f} ms with {np.median(cpus) * 1e3:.1f} CPU ms "
        f"(1/{online.built_cpu / np.median(cpus):.0f} of building), served {np.median(rows) * 1e3:.1f} ms after refresh() began",
        flush=True,
    )


class _Peers:
    """Everybody, with the same rows."""

    def __init__(self, folder: Path, world: World, murr: str | None) -> None:
        start = time.perf_counter()
        self.ours = Server(folder)
        print(f"our server is ready after {self.ours.started:.2f} s", flush=True)
        self.ours.client.fetch("floats", ["item_1"])
        self.redis = Redis()
        seconds = self.redis.load(world)
        print(
            f"redis: {world.rows / seconds:,.0f} rows a second, {self.redis.bytes / world.rows:.1f} bytes a row",
            flush=True,
        )
        self.redis.load_hashes(world, min(world.rows, 100_000))
        self.lean = Lean(self.redis.port)
        self.murr: Murr | None = None
        if murr:
            self.murr = Murr(murr)
            seconds = self.murr.load(world)
            used = psutil.Process(self.murr.pid).memory_full_info().pss
            print(
                f"murr: {world.rows / seconds:,.0f} rows a second, {used / world.rows:.1f} bytes a row (all of it)",
                flush=True,
            )
        print(f"peers are loaded after {time.perf_counter() - start:.0f} s", flush=True)

    def close(self) -> None:
        self.ours.close()
        self.redis.close()
        if self.murr is not None:
            self.murr.close()


def _requests(peers: _Peers, world: World, arguments: argparse.Namespace) -> None:
    client = peers.ours.client
    redis_pid = [peers.redis.process.pid]
    for count in (1_000, 100):
        for columns in (COLUMNS, COLUMNS[:3]):
            wanted = list(columns)

            def ours(keys: list[str], wanted: list[str] = wanted) -> Any:
                return client.fetch("floats", keys, wanted).to_numpy()

            def pandas(keys: list[str], wanted: list[str] = wanted) -> Any:
                return client.fetch("floats", keys, wanted).to_pandas()

            given = [
                Competitor("ours -> numpy", ours, world.keys, peers.ours.pids),
                Competitor("ours -> pandas", pandas, world.keys, peers.ours.pids),
            ]
            if len(columns) == len(COLUMNS):
                given += [
                    Competitor("redis-py + hiredis, MGET of blobs -> numpy", peers.redis.mget, world.keys, redis_pid),
                    Competitor("redis, lean client -> numpy", peers.lean.mget, world.keys, redis_pid),
                ]
            if peers.murr is not None:
                murr = peers.murr
                given.append(
                    Competitor(
                        "murr 0.3.1, lean client -> numpy",
                        lambda k, m=murr, w=wanted: m.fetch(k, w),
                        world.keys,
                        [murr.pid],
                    )
                )

            def check(numbers: Any, answer: Any, name: str, wanted: list[str] = wanted) -> None:
                values = world.values[numbers][:, : len(wanted)]
                assert np.array_equal(np.asarray(answer), values), f"{name} answers something else"

            found = interleave(given, world.requests(arguments.requests, count, count + len(columns)), check)
            print_table(f"{count:,} keys, {len(columns)} of 10 columns", found, "ours -> numpy")
    few = min(world.rows, 100_000)
    requests = [np.random.default_rng(9).integers(0, few, 1_000) for _ in range(40)]
    hashes = Competitor(
        "redis-py, a hash per row (100,000 rows)", peers.redis.hmget, lambda n: [f"hash_{i}" for i in n], redis_pid
    )
    mine = Competitor("ours -> numpy", lambda k: client.fetch("floats", k).to_numpy(), world.keys, peers.ours.pids)

    def check_all(numbers: Any, answer: Any, name: str) -> None:
        assert np.array_equal(answer, world.values[numbers]), f"{name} answers something else"

    print_table("1,000 keys, a hash per row", interleave([mine, hashes], requests, check_all), "ours -> numpy")


def _strings(lake: Lake, world: World, arguments: argparse.Namespace) -> None:
    online = lake.online("titles", "items", key="key", columns=["title", *COLUMNS[:2]], refresh=True)
    server = Server(Path(lake.location.removeprefix("file://")))

    def check(numbers: Any, answer: Any, name: str) -> None:
        assert np.array_equal(answer["c0"].to_numpy(), world.values[numbers, 0]), f"{name} answers something else"
        pairs = zip(numbers.tolist(), answer["title"].to_pylist(), strict=True)
        assert all(title in (f"the title of item {n % 1000}", "fixed") for n, title in pairs)

    for count in (1_000, 100):
        one = Competitor(
            "ours, a string and two floats -> Arrow",
            lambda k: server.client.fetch("titles", k).to_arrow(),
            world.keys,
            server.pids,
        )
        requests = world.requests(arguments.requests, count, 21)
        print_table(f"{count:,} keys, strings", interleave([one], requests, check), one.name)
    pss, uss = server.memory()
    print(
        f"memory of the server's processes: {pss >> 20} MiB with what they map, {uss >> 20} MiB of their own; {online.rows:,} rows"
    )
    server.close()


def _throughput(peers: _Peers, folder: Path, world: World, arguments: argparse.Namespace) -> None:
    two = Server(folder, workers=2)
    for count in (1_000, 100):
        asked = world.requests(64, count, 31)
        keys = [world.keys(numbers) for numbers in asked]
        ours = [_http(k) for k in keys]
        runs: list[tuple[str, int, list[bytes], int | None, list[int]]] = [
            ("ours, 1 worker", peers.ours.port, ours, None, peers.ours.pids),
            ("ours, 2 workers", two.port, ours, None, two.pids),
            (
                "redis",
                peers.redis.port,
                [peers.lean.encode(k) for k in keys],
                len(b"*%d\r\n" % count) + count * (WIDTH + len(b"$%d\r\n" % WIDTH) + 2),
                [peers.redis.process.pid],
            ),
        ]
        if peers.murr is not None:
            runs.append(("murr 0.3.1", peers.murr.port, [_murr(k) for k in keys], None, [peers.murr.pid]))
        print(f"\nrequests a second, {count:,} keys (and server CPU us a request)")
        print(f"{'':20s}" + "".join(f"{f'{c} connections':>22s}" for c in (1, 8, 64)))
        for name, port, requests, size, pids in runs:
            cells = []
            for connections in (1, 8, 64):
                before = cpu_of(pids)
                rate = requests_per_second(port, connections, requests, answer_bytes=size, seconds=arguments.seconds)
                cpu = (cpu_of(pids) - before) / (rate * arguments.seconds) * 1e6
                cells.append(f"{rate:12,.0f} ({cpu:5.0f})")
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
        "POST /v1/tables/floats/fetch?found=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: {kind}\r\nAccept: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _murr(keys: list[str]) -> bytes:
    import json

    body = json.dumps({"keys": {"key": keys}, "columns": COLUMNS}, separators=(",", ":")).encode()
    head = (
        "POST /api/v1/table/t/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Accept: application/vnd.apache.arrow.stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


if __name__ == "__main__":
    sys.exit(main())
