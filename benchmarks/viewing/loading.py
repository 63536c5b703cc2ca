"""The first load of a view, against DuckDB computing its query: until rows are visible, until the state is complete, and the memory that takes.

Each view has a process of its own, in which small lakes have been loaded and refreshed before: what is measured are rows, not compiled kernels.
DuckDB reads the same Delta table through ``lake.sql`` and gives Arrow. Rows are visible when `refresh` returns; the state is complete when nothing goes on in
the background any more. CPU seconds are those of all threads. Memory is by how much the resident set grew at most. A step of 0.01% afterwards
says what the state is good for. Every view is verified.
"""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from queries.measuring import Report, Sample, timed
from viewing.footprint import begin, peak, settle
from viewing.world import SHAPES, World

from headwater.lakehouse import Lake

__all__ = ["run"]

_WARM = (2_000, 300_000)
"""Rows of the lakes that are loaded before: small steps and large ones have kernels of their own."""
_STEP = 0.0001
_STEPS = 5
_FIRST, _CPU, _ROW_BYTES, _FIXED_BYTES = 2.0, 8.0, 200, 300_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """What the query took, the first rows and the whole state, in seconds and bytes; and the steps afterwards."""

    query: Sample
    visible: Sample
    complete: Sample
    memory: int
    step: float


def run(rows: int, rounds: int, shapes: Iterable[str]) -> Report:
    """The table, a line for each view."""
    report = Report(
        f"First load of a view of {rows:,} rows: seconds until its rows are visible and until its state is complete, and how many times "
        f"DuckDB's wall and CPU for the query that is; memory, at most ({rounds} rounds, all views verified)",
        ("view", "query s", "CPU", "rows visible s", "state complete s", "CPU", "memory MB", "a row", "step ms"),
        full_size=rows >= 10_000_000,
    )
    for name in shapes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            loads = pool.apply(_measured, (name, rows, rounds))
        query = Sample(*(statistics.median(getattr(x.query, k) for x in loads) for k in ("wall", "cpu")))
        visible = statistics.median(x.visible.wall for x in loads)
        wall, cpu = (statistics.median(getattr(x.complete, k) for x in loads) for k in ("wall", "cpu"))
        memory = max(x.memory for x in loads)
        step = statistics.median(x.step for x in loads)
        report.rows.append(
            (
                name,
                f"{query.wall:.2f}",
                f"{query.cpu:.2f}",
                f"{visible:.2f} ({visible / query.wall:.1f}x)",
                f"{wall:.2f} ({wall / query.wall:.1f}x)",
                f"{cpu:.2f} ({cpu / query.cpu:.1f}x)",
                f"{memory / 1e6:,.0f}",
                f"{memory / rows:,.0f}",
                f"{step * 1e3:.0f}",
            )
        )
        report.figures[name] = {
            "query_s": query.wall,
            "query_cpu_s": query.cpu,
            "visible_s": visible,
            "complete_s": wall,
            "complete_cpu_s": cpu,
            "memory_bytes": memory,
            "step_s": step,
        }
        report.target(f"{name}, DuckDB / rows visible", query.wall / visible, 1 / _FIRST)
        report.target(f"{name}, CPU of DuckDB / of the state", query.cpu / cpu, 1 / _CPU)
        report.target(f"{name}, memory allowed / taken", (_ROW_BYTES * rows + _FIXED_BYTES) / memory, 1.0)
    return report


def _measured(name: str, rows: int, rounds: int) -> list[Load]:
    for few in _WARM:
        world = World(min(few, rows))
        _load(world, name, 0)
        world.close()
    world = World(rows)
    try:
        return [_load(world, name, number) for number in range(rounds)]
    finally:
        world.close()


def _load(world: World, name: str, number: int) -> Load:
    lake = world.lake
    queries = [timed(lambda: _queried(lake, name))[1] for _ in range(3)]
    query = Sample(statistics.median(q.wall for q in queries), statistics.median(q.cpu for q in queries))
    view = lake.view(f"v{number}", SHAPES[name])
    settle()
    before = begin()
    seen: list[Sample] = []

    def load() -> None:
        seen.append(timed(view.refresh)[1])
        settle()

    _, complete = timed(load)
    memory = peak() - before
    steps = []
    for _ in range(_STEPS):
        world.change(_STEP)
        done, sample = timed(view.refresh)
        assert done.mode == "incremental", done
        steps.append(sample.wall)
        settle()
    verification = view.verify()
    assert verification.equal, f"{name}: {verification}"
    view.drop()
    return Load(query, seen[0], complete, memory, statistics.median(steps))


def _queried(lake: Lake, name: str) -> None:
    lake.sql(SHAPES[name]).to_arrow()
