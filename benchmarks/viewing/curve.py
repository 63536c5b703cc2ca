"""What a refresh costs by how much has changed, against DuckDB computing the view's query again.

Both read the same Delta table at the same version. A refresh is everything that it takes: reading the changes, the step, writing and committing the
view's own table, and saving the state. Views are ``strict`` here, so that they follow the changes wherever the curve goes; where
it crosses 1 is what `plan` should use.
"""

from __future__ import annotations

import math

from queries.measuring import Measured, Report, timed
from viewing.world import SHAPES, World

__all__ = ["SHARES", "run"]

SHARES = (0.0001, 0.001, 0.01, 0.1, 0.5)
ROWS = 10_000_000
_TARGETS = {("join and group", 0.001): 20.0, ("join and group", 0.01): 5.0}


def run(scale: float, rounds: int, shapes: list[str], shares: list[float]) -> list[Report]:
    """One table: views by shares of change."""
    world = World(max(2_000, round(ROWS * scale)))
    try:
        return [_measured(world, scale, rounds, shapes, shares)]
    finally:
        world.close()


def _measured(world: World, scale: float, rounds: int, shapes: list[str], shares: list[float]) -> Report:
    lake = world.lake
    report = Report(
        f"Refreshing a view of {world.rows:,} rows, by the share of them that changed: ms, and how many times quicker "
        f"than DuckDB computing it again ({rounds} rounds in turns, all views verified)",
        ("view", "built in s", *(f"{100 * s:g}%" for s in shares), "crossover"),
        full_size=scale >= 1,
    )
    built = {}
    for name in shapes:
        view = lake.view(f"v_{name.replace(' ', '_')}", SHAPES[name], policy="strict")
        _, built[name] = timed(view.refresh)
    views = {name: lake.view(f"v_{name.replace(' ', '_')}") for name in shapes}
    measured = Measured()
    phases: dict[str, dict[str, float]] = {}
    world.change(shares[0])
    for name in shapes:
        views[name].refresh()  # the first refresh opens the state
        lake.sql(SHAPES[name]).to_arrow()
    changed = dict.fromkeys(shares, 0)
    for share in shares:
        for number in range(rounds if share < 0.1 else max(1, rounds // 3)):
            changed[share] = world.change(share)
            for name in shapes:
                order = ("ours", "duckdb") if number % 2 == 0 else ("duckdb", "ours")
                for who in order:
                    work = views[name].refresh if who == "ours" else lake.sql(SHAPES[name]).to_arrow
                    done, sample = timed(work)
                    measured.add(f"{name} {share} {who}", sample)
                    if who == "ours":
                        assert done.mode == "incremental", done
                        phases[f"{name} {share}"] = dict(views[name].timings)
    for name in shapes:
        verification = views[name].verify()
        assert verification.equal, f"{name}: {verification}"
    for name in shapes:
        cells, ratios = [], []
        for share in shares:
            ours, duckdb = f"{name} {share} ours", f"{name} {share} duckdb"
            ratio = measured.wall(duckdb) / measured.wall(ours)
            ratios.append(ratio)
            cells.append(f"{measured.wall(ours) * 1e3:,.0f} ({ratio:,.1f}x)")
            report.figures.setdefault(name, {})[str(share)] = {
                "rows": changed[share],
                "refresh": measured.figures()[ours],
                "duckdb": measured.figures()[duckdb],
                "ratio": ratio,
                "cpu_ratio": measured.cpu(duckdb) / measured.cpu(ours),
                "phases_s": phases[f"{name} {share}"],
            }
        report.rows.append((name, f"{built[name].wall:.1f}", *cells, _crossing(shares, ratios)))
    for (name, share), least in _TARGETS.items():
        if name in shapes and share in shares:
            report.target(
                f"{name}, {100 * share:g}% changed, DuckDB / refresh", report.figures[name][str(share)]["ratio"], least
            )
    if "join and group" in shapes:
        name = "join and group"
        for share in shares:
            parts = sorted(phases[f"{name} {share}"].items(), key=lambda p: -p[1])[:5]
            report.notes.append(f"{name}, {100 * share:g}%: " + ", ".join(f"{p} {s * 1e3:.1f} ms" for p, s in parts))
        plan = views[name].plan()
        report.notes.append(f"{name}: `plan` computes anew from {plan.crossover:,} changed rows on")
    return report


def _crossing(shares: list[float], ratios: list[float]) -> str:
    """Where the ratio falls to 1, between the shares that were measured."""
    for (a, x), (b, y) in zip(
        zip(shares, ratios, strict=True), list(zip(shares, ratios, strict=True))[1:], strict=False
    ):
        if x >= 1 > y:
            part = math.log(x) / (math.log(x) - math.log(y))
            return f"{100 * math.exp(math.log(a) + part * (math.log(b) - math.log(a))):.1f}%"
    return f"> {100 * shares[-1]:g}%" if ratios[-1] >= 1 else f"< {100 * shares[0]:g}%"
