"""What a refresh costs by how much has changed, against DuckDB computing the view's query again.

Both read the same Delta table at the same version. A refresh is everything that it takes: reading the changes, the step, writing and committing the
view's own table, and saving the state. DuckDB is measured twice: computing the answer into memory, which is the smaller figure and the one that
ratios are of; and computing it and overwriting a Delta table with it (deletion vectors and change feed on, as the view's), which is what would have to
be done instead of the refresh. What refreshes leave to the background (merging state, putting files together) ends before the next thing is
measured, and its CPU is told beside.

Views are ``strict`` here, so that they follow the changes wherever the curve goes. Where it crosses 1 is printed beside the crossover that `plan` has
learned from the same refreshes, and from the query of `verify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from queries.measuring import Measured, Report, Sample, timed
from viewing.world import SHAPES, World

import headwater as hw
from headwater.derived import upkeep
from headwater.derived.comparison import compare
from headwater.incremental import spill
from headwater.incremental.views import View
from headwater.incremental.views.costs import ViewPlan

__all__ = ["SHARES", "rows_of", "run"]

SHARES = (0.0001, 0.001, 0.01, 0.1, 0.5)
ROWS = 10_000_000
_SHOWN = "join and group"
_TARGETS = {(_SHOWN, 0.001): 20.0, (_SHOWN, 0.01): 5.0}
_WHO = ("ours", "duckdb", "written")
_AS_VIEWS = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def rows_of(scale: float) -> int:
    """How many rows there are at a scale."""
    return max(2_000, round(ROWS * scale))


def run(scale: float, rounds: int, shapes: list[str], shares: list[float]) -> Report:
    """One table: views by shares of change."""
    world = World(rows_of(scale))
    try:
        return _measured(world, scale, rounds, shapes, shares)
    finally:
        upkeep.wait()
        world.close()


@dataclass
class _Runs:
    """What was measured: for each view and share, our refreshes, what DuckDB did instead, and the parts of the last refresh."""

    rows: dict[float, int] = field(default_factory=dict)
    built: dict[str, Sample] = field(default_factory=dict)
    samples: Measured = field(default_factory=Measured)
    phases: dict[str, dict[str, float]] = field(default_factory=dict)
    plans: dict[str, ViewPlan] = field(default_factory=dict)

    def ratio(self, name: str, share: float, *, cpu: bool = False, who: str = "duckdb") -> float:
        """How many times more DuckDB takes."""
        of = self.samples.cpu if cpu else self.samples.wall
        return of(f"{name} {share} {who}") / of(f"{name} {share} ours")


def _table(name: str, kind: str = "v") -> str:
    return f"{kind}_{name.replace(' ', '_')}"


def _write(lake: hw.Lake, name: str) -> None:
    """What a user would do without a view: compute the answer, and put it in the place of the old one."""
    lake.write(_table(name, "w"), lake.sql(SHAPES[name]).to_arrow(), mode="overwrite")


def _built(view: View) -> None:
    """Load a view, and wait until its state is complete: rows are visible before."""
    view.refresh()
    _settle()


def _settle() -> None:
    """Wait for what is done in the background."""
    upkeep.wait()
    spill.background().submit(lambda: None).result()


def _run(world: World, rounds: int, shapes: list[str], shares: list[float]) -> _Runs:
    lake, runs = world.lake, _Runs()
    for name in shapes:
        view = lake.view(_table(name), SHAPES[name], policy="strict")
        _, runs.built[name] = timed(partial(_built, view))
    views = {name: lake.view(_table(name)) for name in shapes}
    world.change(shares[0])
    for name in shapes:
        views[name].refresh()  # the first refresh opens the state
        answer = lake.sql(SHAPES[name]).to_arrow()
        lake.write(_table(name, "w"), answer, properties=_AS_VIEWS)
    for share in shares:
        for number in range(rounds if share < 0.1 else max(1, rounds // 3)):
            runs.rows[share] = world.change(share)
            for name in shapes:
                for who in (*_WHO[number % 3 :], *_WHO[: number % 3]):
                    _measure(world.lake, runs, views[name], name, share, who)
    for name in shapes:
        view = views[name]
        verification = view.verify()
        assert verification.equal, f"{name}: {verification}"
        written = compare(view.frontier, expected=lake.table(_table(name, "w")).to_arrow(), actual=view.to_arrow())
        assert written.equal, f"{name}: {written}"
        runs.plans[name] = view.plan()
    return runs


def _measure(lake: hw.Lake, runs: _Runs, view: View, name: str, share: float, who: str) -> None:
    _settle()
    if who == "ours":
        done, sample = timed(view.refresh)
        assert done.mode == "incremental", done
        runs.phases[f"{name} {share}"] = dict(view.timings)
        runs.samples.add(f"{name} {share} after", timed(_settle)[1])
    elif who == "duckdb":
        _, sample = timed(lake.sql(SHAPES[name]).to_arrow)
    else:
        _, sample = timed(lambda: _write(lake, name))
    runs.samples.add(f"{name} {share} {who}", sample)


def _measured(world: World, scale: float, rounds: int, shapes: list[str], shares: list[float]) -> Report:
    report = Report(
        f"Refreshing a view of {world.rows:,} rows, by the share of them that changed: ms, and how many times the wall and the "
        f"CPU of DuckDB computing it again are that; and its wall when it also writes the result ({rounds} rounds in turns, all "
        f"views verified)",
        ("view", "built in s", *(f"{100 * s:g}%" for s in shares), "crossover", "of `plan`"),
        full_size=scale >= 1,
    )
    runs = _run(world, rounds, shapes, shares)
    figures = runs.samples.figures()
    for name in shapes:
        ratios = [runs.ratio(name, share) for share in shares]
        cells = [
            f"{runs.samples.wall(f'{name} {share} ours') * 1e3:,.0f} ({ratio:,.1f}x, {runs.ratio(name, share, cpu=True):,.1f}x; "
            f"{runs.ratio(name, share, who='written'):,.1f}x)"
            for share, ratio in zip(shares, ratios, strict=True)
        ]
        plan = runs.plans[name]
        planned = f"{100 * plan.crossover / plan.rows:.1f}%"
        report.rows.append((name, f"{runs.built[name].wall:.1f}", *cells, _crossing(shares, ratios), planned))
        report.figures[name] = {
            str(share): {
                "rows": runs.rows[share],
                "refresh": figures[f"{name} {share} ours"],
                "duckdb": figures[f"{name} {share} duckdb"],
                "duckdb_writing": figures[f"{name} {share} written"],
                "background": figures[f"{name} {share} after"],
                "ratio": ratio,
                "cpu_ratio": runs.ratio(name, share, cpu=True),
                "writing_ratio": runs.ratio(name, share, who="written"),
                "writing_cpu_ratio": runs.ratio(name, share, cpu=True, who="written"),
                "phases_s": runs.phases[f"{name} {share}"],
            }
            for share, ratio in zip(shares, ratios, strict=True)
        }
    for (name, share), least in _TARGETS.items():
        if name in shapes and share in shares:
            report.target(f"{name}, {100 * share:g}% changed, DuckDB / refresh", runs.ratio(name, share), least)
    name = shapes[-1] if _SHOWN not in shapes else _SHOWN
    for share in shares:
        parts = sorted(runs.phases[f"{name} {share}"].items(), key=lambda p: -p[1])[:5]
        after = runs.samples.cpu(f"{name} {share} after") * 1e3
        shown = ", ".join(f"{p} {s * 1e3:.1f} ms" for p, s in parts)
        report.notes.append(f"{name}, {100 * share:g}%: {shown}; in the background afterwards {after:.1f} ms of CPU")
    plan = runs.plans[name]
    report.notes.append(
        f"{name}: by `plan` a query ({plan.query_seconds:.2f} s) is quicker from {plan.crossover:,} changed rows on; its state is given up "
        f"when that has cost {plan.full_seconds:.1f} s, which building it takes"
    )
    return report


def _crossing(shares: list[float], ratios: list[float]) -> str:
    """Where the ratio falls to 1, between the shares that were measured."""
    for (a, x), (b, y) in pairwise(zip(shares, ratios, strict=True)):
        if x >= 1 > y:
            part = math.log(x) / (math.log(x) - math.log(y))
            return f"{100 * math.exp(math.log(a) + part * (math.log(b) - math.log(a))):.1f}%"
    return f"> {100 * shares[-1]:g}%" if ratios[-1] >= 1 else f"< {100 * shares[0]:g}%"
