"""Single lookups, one after the other: floats to numpy and to pandas, all columns and some, strings to Arrow, hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from benchmarks.servings.measuring import Competitor, interleave, print_table
from benchmarks.servings.ours import Server
from benchmarks.servings.peers import Peers
from benchmarks.servings.world import COLUMNS, STRING_ROWS, World

__all__ = ["measure_floats", "measure_hashes", "measure_strings"]

_OURS = "ours"


def measure_floats(peers: Peers, world: World, requests: int) -> None:
    """1,000 and 100 keys, all columns and three of them."""
    for count in (1_000, 100):
        for columns in (COLUMNS, COLUMNS[:3]):
            wanted = list(columns)

            def check(numbers: Any, answer: Any, name: str, wanted: list[str] = wanted) -> None:
                values = world.values[numbers][:, : len(wanted)]
                assert np.array_equal(np.asarray(answer), values), f"{name} answers something else"

            numbers = world.requests(requests, count, count + len(columns))
            for form in ("numpy", "pandas"):
                found = interleave(_floats(peers, world, wanted, form), numbers, check)
                print_table(f"{count:,} keys, {len(columns)} of 10 columns, to {form}", found, _OURS)


def _floats(peers: Peers, world: World, wanted: list[str], form: str) -> list[Competitor]:
    client, redis, width = peers.ours.client, peers.redis, len(wanted)

    def ours(keys: list[str]) -> Any:
        answer = client.fetch("floats", keys, wanted)
        return answer.to_numpy() if form == "numpy" else answer.to_pandas()

    def shaped(values: Any) -> Any:
        return values if form == "numpy" else pd.DataFrame(values, columns=wanted, copy=False)

    given = [
        Competitor(_OURS, ours, world.keys, peers.ours.pids),
        Competitor(
            "redis-py + hiredis, MGET of blobs",
            lambda k: shaped(redis.mget(k)[:, :width]),
            world.keys,
            peers.redis_pids,
        ),
        Competitor(
            "redis, a client for just that by hand",
            lambda k: shaped(peers.lean.mget(k)[:, :width]),
            world.keys,
            peers.redis_pids,
        ),
    ]
    return given + [
        Competitor(f"{one.name}, a lean client", lambda k, one=one: shaped(one.fetch(k, wanted)), world.keys, [one.pid])
        for one in peers.murrs
    ]


def measure_hashes(peers: Peers, world: World, requests: int) -> None:
    """A hash per row, as those keep features in Redis who want some columns of them."""

    def check(numbers: Any, answer: Any, name: str) -> None:
        assert np.array_equal(answer, world.values[numbers]), f"{name} answers something else"

    client = peers.ours.client
    given = [
        Competitor(_OURS, lambda k: client.fetch("floats", k).to_numpy(), world.keys, peers.ours.pids),
        Competitor(
            "redis-py, HMGET of a hash per row",
            peers.redis.hmget,
            lambda n: [f"hash_{i}" for i in n],
            peers.redis_pids,
        ),
    ]
    numbers = [np.random.default_rng(9).integers(0, peers.hashes, 1_000) for _ in range(requests)]
    print_table(f"1,000 keys of {peers.hashes:,}, all columns, to numpy", interleave(given, numbers, check), _OURS)


def measure_strings(peers: Peers, server: Server, world: World, requests: int) -> None:
    """A string and two floats, to Arrow."""

    def check(numbers: Any, answer: Any, name: str) -> None:
        titles, c0, c1 = answer
        values = world.values[numbers, :2]
        assert np.array_equal(np.stack([c0, c1], axis=1), values), f"{name} answers something else"
        assert titles.to_pylist() == [world.title(n) for n in numbers.tolist()], f"{name} has other strings"

    def ours(keys: list[str]) -> Any:
        answer = server.client.fetch("titles", keys, ["title", "c0", "c1"])
        return answer["title"], answer["c0"].to_numpy(), answer["c1"].to_numpy()

    def redis(keys: list[str]) -> Any:
        blobs = peers.redis.client.mget(keys)
        floats = np.frombuffer(b"".join([blob[:8] for blob in blobs]), np.float32).reshape(-1, 2)
        return pa.array([blob[8:] for blob in blobs], pa.binary()).cast(pa.string()), floats[:, 0], floats[:, 1]

    def murr(keys: list[str], one: Any) -> Any:
        title, c0, c1 = one.columns(keys, ["title", "c0", "c1"], "s")
        return title, c0.to_numpy(), c1.to_numpy()

    given = [
        Competitor(_OURS, ours, world.keys, server.pids),
        Competitor("redis-py + hiredis, MGET of blobs", redis, lambda n: [f"title_{i}" for i in n], peers.redis_pids),
    ]
    given += [
        Competitor(f"{one.name}, a lean client", lambda k, one=one: murr(k, one), world.keys, [one.pid])
        for one in peers.murrs
    ]
    rows = min(world.rows, STRING_ROWS)
    for count in (1_000, 100):
        numbers = [np.random.default_rng(21 + i).integers(0, rows, count) for i in range(requests)]
        found = interleave(given, numbers, check)
        print_table(f"{count:,} keys of {rows:,}, a string and two floats, to Arrow", found, _OURS)
