"""What the state of a view takes, on disk and in memory, in bytes per row of its source.

Each view has a process of its own, in which a small lake has been refreshed before: what is measured are rows, not compiled kernels. State are the
run files of the view, measured when nothing goes on in the background: after the first build, after some rounds that change 5% of the rows each, and after
`View.optimize`. Memory is by how much the resident set grew at most while the view was built, and while it was refreshed.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from queries.measuring import Report
from viewing.world import SHAPES, World

import headwater as hw
from headwater.derived import upkeep
from headwater.incremental import spill

__all__ = ["VIEWS", "begin", "peak", "run", "settle"]

VIEWS = {
    **SHAPES,
    "sessions": (
        "SELECT card, session_window(cast(day AS timestamp), '2 days').start AS first, count(*) AS n, sum(amount) AS total "
        "FROM payments GROUP BY card, session_window(cast(day AS timestamp), '2 days')"
    ),
}
_SMALL = 2_000
_SHARE = 0.05
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes: of state at three times, and of memory in two."""

    built: int
    changed: int
    optimized: int
    build_peak: int
    refresh_peak: int


def run(rows: int, rounds: int, shapes: Iterable[str]) -> Report:
    """The table, a line for each view."""
    report = Report(
        f"State and memory of a view of {rows:,} rows, in bytes for each of them: of state when it is built, after {rounds} x 5% of the rows "
        f"have changed, and optimized; of memory, at most, while it is built and while it is refreshed",
        ("view", "built", "changed", "optimized", "memory, built", "memory, refreshed"),
    )
    for name in shapes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(_measured, (name, rows, rounds))
        per_row = {k: getattr(found, k) / rows for k in Footprint.__slots__}
        report.rows.append((name, *(f"{v:,.1f}" for v in per_row.values())))
        report.figures[name] = per_row
    return report


def _measured(name: str, rows: int, rounds: int) -> Footprint:
    small = World(_SMALL)
    _followed(small, name, 1)
    small.close()
    world = World(rows)
    try:
        return _followed(world, name, rounds)
    finally:
        world.close()


def _followed(world: World, name: str, rounds: int) -> Footprint:
    view = world.lake.view("v", VIEWS[name], policy="strict")
    before = begin()
    view.refresh()
    settle()
    build_peak, built = peak() - before, _state(world.lake)
    refresh_peak = 0
    for _ in range(rounds):
        world.change(_SHARE)
        before = begin()
        view.refresh()
        settle()
        refresh_peak = max(refresh_peak, peak() - before)
    changed = _state(world.lake)
    view.optimize()
    settle()
    optimized = _state(world.lake)
    verification = view.verify()
    assert verification.equal, f"{name}: {verification}"
    return Footprint(built, changed, optimized, build_peak, refresh_peak)


def settle() -> None:
    upkeep.wait()
    spill.background().submit(lambda: None).result()


def _state(lake: hw.Lake) -> int:
    folder = Path(str(lake.location)) / "_headwater" / "views"
    return sum(file.stat().st_size for file in folder.glob("*/runs/*"))


def begin() -> int:
    """Forget the largest size that this process had, and give the size that it has."""
    _CLEAR.write_text("5")
    return _kilobytes("VmRSS") * 1024


def peak() -> int:
    return _kilobytes("VmHWM") * 1024


def _kilobytes(what: str) -> int:
    found = re.search(rf"^{what}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert found is not None, "the system does not say how much memory a process has"
    return int(found[1])
