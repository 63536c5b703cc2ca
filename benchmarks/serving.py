"""Looking rows up: our server and its client against Redis and Murr, in the same run, with the same rows.

    python benchmarks/serving.py [--rows 5000000] [--requests 600] [--murr /path/to/murr] [--murr-python /path/to/python]

Murr's server is built from its crate outside of this tree (``cargo install murr``), and 0.1.9 is installed in a virtual
environment of its own (``pip install murr==0.1.9``); without them those peers are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent))

import headwater as hw
from benchmarks.servings.limit import memory_walk
from benchmarks.servings.lookups import measure_floats, measure_hashes, measure_strings
from benchmarks.servings.ours import Server
from benchmarks.servings.peers import Peers
from benchmarks.servings.throughput import measure_throughput
from benchmarks.servings.world import COLUMNS, World
from headwater.lakehouse import Lake


def main() -> int:
    arguments = _arguments()
    world = World(arguments.rows)
    with tempfile.TemporaryDirectory(prefix="headwater-serving-", dir=arguments.folder) as folder:
        lake = hw.connect(folder)
        online = _build(lake, world, "items", "floats", feed=True)
        _limit(online, world, arguments, world.keys)
        _limit(_numbered(lake, world), world, arguments, lambda numbers: numbers)
        world.values[:] = _freshness(lake, online, world)
        _freshness(lake, _build(lake, world, "items_without_feed", "floats_without_feed", feed=False), world)
        peers = Peers(Path(folder), world, arguments.murr, arguments.murr_python)
        try:
            measure_floats(peers, world, arguments.requests)
            measure_hashes(peers, world, min(arguments.requests, 40))
            _strings(lake, peers, world, arguments.requests)
            measure_throughput(peers, Path(folder), world, arguments.seconds)
        finally:
            peers.close()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run of requests per second")
    parser.add_argument("--murr", help="the program of Murr's server")
    parser.add_argument("--murr-python", help="a Python with murr 0.1.9")
    parser.add_argument("--folder", help="where the lake is made")
    return parser.parse_args()


def _build(lake: Lake, world: World, source: str, name: str, *, feed: bool) -> Any:
    first, *rest = world.chunks(strings=True)
    table = lake.table(source)
    table.create(first.schema, data=first, properties={"delta.enableChangeDataFeed": str(feed).lower()})
    for chunk in rest:
        table.append(chunk)
    online = lake.online(name, source, key="key", columns=COLUMNS)
    cpu, start = time.process_time(), time.perf_counter()
    online.refresh()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - start
    each = online.record.layers[-1].bytes / world.rows
    print(
        f"built {world.rows:,} rows from a Delta table {'with' if feed else 'without'} a change data feed in {wall:.1f} s, "
        f"{cpu:.1f} CPU s: {each:.1f} bytes a row",
        flush=True,
    )
    online.built_cpu = cpu
    return online


def _numbered(lake: Lake, world: World) -> Any:
    """A table of the same values under keys of eight bytes."""
    for number, chunk in enumerate(world.chunks()):
        keys = pa.array(np.arange(chunk.num_rows) + number * world.chunk_rows)
        lake.write("numbered_items", chunk.set_column(0, "key", keys), mode="append" if number else "overwrite")
    return lake.online("numbered", "numbered_items", key="key", columns=COLUMNS, refresh=True)


def _limit(online: Any, world: World, arguments: argparse.Namespace, keys_of: Any) -> None:
    """What finding keys takes, beside the memory that has to be touched for it."""
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
            keys = version.keys(keys_of(numbers))
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
            f"{count:5,} keys of {online.name} in this process: memory alone {p50[0]:.0f} us, found {p50[1]:.0f} us ({p50[1] / p50[0]:.2f}x), "
            f"fetched as an Arrow stream {p50[2]:.0f} us",
            flush=True,
        )


def _freshness(lake: Lake, online: Any, world: World) -> Any:
    """What a commit of 100 rows to the source costs, against building; gives the values that it has then."""
    server, (source,) = Server(Path(lake.location.removeprefix("file://"))), online.reads
    rng, values = np.random.default_rng(5), world.values.copy()
    rows, refreshed, cpus = [], [], []
    for turn in range(12):
        numbers = np.unique(rng.integers(0, world.rows, 100))
        fixes = {"key": world.keys(numbers)} | {c: np.full(len(numbers), -turn, np.float32) for c in COLUMNS}
        lake.write("fixes", pa.table({**fixes, "title": [world.title(n) for n in numbers.tolist()]}), mode="overwrite")
        lake.sql(f"MERGE INTO {source} t USING fixes s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *")
        cpu, start = time.process_time(), time.perf_counter()
        online.refresh()
        cpus.append(time.process_time() - cpu)
        refreshed.append(time.perf_counter() - start)
        while float(server.client.fetch(online.name, [fixes["key"][0]], ["c0"]).to_numpy()[0, 0]) != -turn:
            pass
        rows.append(time.perf_counter() - start)
        values[numbers] = -turn
    server.close()
    print(
        f"100 rows merged into {source}: refreshed in {np.median(refreshed) * 1e3:.1f} ms with "
        f"{np.median(cpus) * 1e3:.1f} CPU ms (1/{online.built_cpu / np.median(cpus):.0f} of building), "
        f"served {np.median(rows) * 1e3:.1f} ms after refresh() began",
        flush=True,
    )
    return values


def _strings(lake: Lake, peers: Peers, world: World, requests: int) -> None:
    online = lake.online("titles", "items", key="key", columns=["title", *COLUMNS[:2]], refresh=True)
    server = Server(Path(lake.location.removeprefix("file://")))
    try:
        measure_strings(peers, server, world, requests)
        pss, uss = server.memory()
        print(
            f"memory of the server's processes: {pss >> 20} MiB with what they map, {uss >> 20} MiB of their own; {online.rows:,} rows"
        )
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
