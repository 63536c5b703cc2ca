"""What a row costs, measured: bytes of source, shuffle and state, CPU and memory of a build and of a refresh by Spark's tasks, and requests to S3.

Two sizes or two numbers of shards are measured where something fixed has to be told from what comes with each row or shard; the line through both
is the answer. Memory is the most that one of Python's workers had to itself, looked at ten times a second, without files that are mapped. Requests
are counted on the wire to a real S3 server; the refresh is that of a machine that has nothing of the state.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from headwater.base import settings
from headwater.incremental.manifest import Manifest
from headwater.incremental.views import View
from headwater.incremental.views import live as lives
from headwater.testing.requests import Requests, counted
from headwater.testing.s3_server import serve_s3

from .world import World, measured, median, refreshed

__all__ = ["FETCHED", "PARTS", "part_of", "per_row_of", "through"]

_SHARDS = (4, 32)
_SMALL = 1_000  # changed rows that cost next to nothing themselves
_CHANGED_OF_A_SHARD = 12_500  # as in a large refresh: runs of so few rows are stored narrow
_S3_ROWS, _S3_CHANGED, _S3_SHARDS = 5_000, 500, (2, 10)
FETCHED = "runs, fetched"
"""Requests by which a machine gets state that it has not."""
PARTS = ("log", "manifests", "runs", "between jobs", "tables")


def through(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The fixed part, and what comes with each, of two measurements; neither is below zero.

    >>> through((2, 10.0), (10, 26.0)), through((2, 10.0), (10, 9.0))
    ((6.0, 2.0), (9.5, 0.0))
    """
    each = max(0.0, (other[1] - one[1]) / (other[0] - one[0]))
    if not each:
        return (one[1] + other[1]) / 2, 0.0
    return max(0.0, one[1] - each * one[0]), each


def part_of(key: str) -> str:
    """Which part of the lake an object belongs to.

    >>> part_of("lake/_headwater/views/v/runs/1.run"), part_of("lake/orders/_delta_log/1.json"), part_of("lake/v/a.parquet")
    ('runs', 'log', 'tables')
    """
    places = {"/_delta_log": "log", "/manifests": "manifests", "/runs": "runs", "/spark/": "between jobs"}
    return next((part for place, part in places.items() if place in key), "tables")


def per_row_of(session: Any, rows: int, rounds: int) -> dict[str, Any]:
    """All of it, by a world of so many orders."""
    found: dict[str, Any] = {"rows": rows, "jobs": 0}
    world = World(rows, session)
    try:
        found |= _built(world, rounds)
        found |= _refreshed(world, rounds)
    finally:
        world.close()
    found["requests"] = _requests(session)
    return found


def _built(world: World, rounds: int) -> dict[str, Any]:
    rows, samples, peaks = world.rows, [], []
    with settings.override(view_spark_shards=_SHARDS[-1]):
        world.view("warm").refresh(engine="spark")
    for shards in reversed(_SHARDS):  # the larger shards come last: a worker may keep what it has had
        for number in range(rounds):
            view = world.view(f"b{shards}n{number}")
            with settings.override(view_spark_shards=shards), _peak() as most:
                sample = measured(refreshed(view, "spark"))
            if shards == _SHARDS[0]:
                samples.append(sample)
            if not number:
                peaks.append((rows / shards, float(most())))
            if shards == _SHARDS[0]:  # as in a large build, shards are so large that their runs are mapped as they lie
                jobs = view.jobs()
            else:
                manifest = _manifest(view)
            view.drop()
    total = {name: sum(jobs[name].to_pylist()) for name in jobs.column_names if name != "job"}
    runs = sum(len(trace.runs) for trace in manifest.traces.values())
    sources = [world.lake.table(name).snapshot.files.values() for name in ("orders", "customers")]
    base, each = through(peaks[0], peaks[1])
    return {
        "jobs": jobs.num_rows,
        "source_file_bytes": sum(f.size for files in sources for f in files) / rows,
        "shuffled_bytes": total["shuffled_bytes"] / rows,
        "left_bytes": sum(jobs["bytes_out"].to_pylist()[:-1]) / rows,
        "state_bytes": total["state_bytes"] / rows,
        "build_cpu_seconds": median(samples)[0] / rows,
        "manifest_bytes_of_a_run": len(manifest.encode()) / runs,
        "memory_base_bytes": base,
        "memory_bytes": each,
    }


def _refreshed(world: World, rounds: int) -> dict[str, Any]:
    view = world.view("r", "strict")
    with settings.override(view_spark_shards=_SHARDS[0]):
        view.refresh(engine="spark")
    large = max(2 * _SMALL, min(world.rows // 10, _CHANGED_OF_A_SHARD * _SHARDS[0]))
    few, many = (_cpu(world, view, _SMALL, shards, rounds) for shards in _SHARDS)
    cpu = _cpu(world, view, large, _SHARDS[0], rounds)
    held = sum(run.nbytes for trace in _manifest(view).traces.values() for run in trace.runs)
    world.change(large)
    with settings.override(view_spark_shards=_SHARDS[0]):
        view.refresh(engine="spark")
    jobs = view.jobs()
    assert view.verify().equal
    _, of_shard = through((_SHARDS[0], few), (_SHARDS[1], many))
    fixed, of_row = through((_SMALL, few), (large, cpu))
    return {
        "refresh_cpu_seconds": max(0.0, fixed - of_shard * _SHARDS[0]),
        "refresh_cpu_seconds_of_a_shard": of_shard,
        "refresh_cpu_seconds_of_a_row": of_row,
        "refresh_shuffled_bytes": sum(jobs["shuffled_bytes"].to_pylist()) / large,
        "refresh_left_bytes": sum(jobs["bytes_out"].to_pylist()[:-1]) / large,
        "refresh_state_bytes": sum(jobs["state_bytes"].to_pylist()) / large,
        "refresh_state_opened": min(1.0, sum(jobs["state_bytes_read"].to_pylist()) / held),
    }


def _manifest(view: View) -> Manifest:
    """The state that the newest commit names."""
    state = view.record.state
    assert state is not None
    return lives.live(view._environment.root, view.name).folder.listed(state)


def _cpu(world: World, view: View, rows: int, shards: int, rounds: int) -> float:
    samples = []
    with settings.override(view_spark_shards=shards):
        for _ in range(max(2, rounds)):
            world.change(rows)
            samples.append(measured(refreshed(view, "spark")))
    return float(min(cpu for cpu, _, _ in samples))


@contextlib.contextmanager
def _peak() -> Iterator[Callable[[], int]]:
    """The most memory of its own that one of Python's workers has while the block runs."""
    ended, most = threading.Event(), [0]

    def look() -> None:
        while not ended.wait(0.1):
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "python" in child.name():
                        most[0] = max(most[0], child.memory_full_info().uss)

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    try:
        yield lambda: most[0]
    finally:
        ended.set()
        watch.join()


# -- requests ------------------------------------------------------------------------------------------------------


def _requests(session: Any) -> dict[str, dict[str, list[float]]]:
    """By what is done and ``part, read|written|deleted`` the requests that are fixed, and those that come with each shard."""
    seen: dict[str, list[Counter[str]]] = {"build": [], "refresh": []}
    with serve_s3() as s3, counted(s3) as server, tempfile.TemporaryDirectory() as machines:
        for shards in _S3_SHARDS:
            world = World(_S3_ROWS, session, server.url(f"shards{shards}"), server.options)
            view = world.view("v", "strict")
            for what, rows in (("build", 0), ("refresh", _S3_CHANGED)):
                if rows:
                    world.change(rows)
                world.lake.close()  # what is done in the background is not part of it
                lives.forget(view._environment.root, "v")
                place = Path(machines) / f"{what}{shards}"
                with settings.override(view_spark_shards=shards, spill_dir=place), server.count() as requests:
                    view.refresh(engine="spark")
                seen[what].append(_by_part(requests))
            assert view.verify().equal
    names = sorted({name for counters in seen.values() for counter in counters for name in counter})
    return {
        what: {n: list(through((_S3_SHARDS[0], few[n]), (_S3_SHARDS[1], many[n]))) for n in names if few[n] or many[n]}
        for what, (few, many) in seen.items()
    }


def _by_part(requests: Requests) -> Counter[str]:
    deeds = {"get": "read", "head": "read", "list": "read", "delete": "deleted"}
    named = ((part_of("/" + key), kind) for kind, key in requests.log)
    return Counter(
        FETCHED if (part, kind) == ("runs", "get") else f"{part}, {deeds.get(kind, 'written')}" for part, kind in named
    )
