"""What follows from the figures of the curves, as functions of them: where two ways cross, charts, and the tables of the guide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.observe.chart import Chart, Curve

__all__ = ["build_table", "change_table", "charts", "crossing", "crossovers", "state_table"]

_WAYS = {
    "query": "Spark SQL computes the query",
    "spark": "Spark refreshes the view",
    "local": "this process refreshes it",
}
_PAIRS = (("local", "spark"), ("spark", "query"), ("local", "query"))
_CPU, _WALL = 0, 1
Points = Sequence[tuple[float, float]]
Figures = Mapping[str, Any]


def crossing(one: Points, other: Points) -> float | None:
    """From which share on ``one`` costs more than ``other``; 0 if always, None if never. Between measured shares both are straight lines on
    logarithmic axes.

    >>> crossing([(0.01, 1.0), (1.0, 10.0)], [(0.01, 3.0), (1.0, 3.0)])
    0.09
    """
    apart = [(share, math.log(a / b)) for (share, a), (_, b) in zip(one, other, strict=True)]
    if apart[-1][1] <= 0:
        return None
    after = len(apart) - 1
    while after and apart[after - 1][1] > 0:
        after -= 1
    if not after:
        return 0.0
    (low, below), (high, above) = apart[after - 1], apart[after]
    return round(math.exp(math.log(low) + (math.log(high) - math.log(low)) * below / (below - above)), 12)


def _points(curve: Figures, way: str, figure: int) -> list[tuple[float, float]]:
    return [(float(share), max(0.001, found[way][figure])) for share, found in curve.items()]


def _share(at: float | None, most: float) -> str:
    return f"never up to {most:.0%}" if at is None else f"{at:.2%}" if at else "always"


def crossovers(figures: Figures) -> list[str]:
    """Where the measured curves cross, beside what `auto` goes by."""
    curve, auto, rows = figures["sections"]["curve"], figures["auto"], figures["rows"]
    most = max(map(float, curve))
    lines = [f"{'crossover, share of the orders that changed':<56}{'by CPU':>18}{'by wall time':>18}"]
    for one, other in _PAIRS:
        found = [
            _share(crossing(_points(curve, one, figure), _points(curve, other, figure)), most)
            for figure in (_CPU, _WALL)
        ]
        lines.append(f"{f'{one} costs more than {other}':<56}{found[0]:>18}{found[1]:>18}")
    spark, anew = auto["view_spark_rows"], auto["crossover"]
    lines.append(f"`auto` takes Spark from {spark:,} rows that are to be read on: {spark / rows:.0%} of these orders")
    lines.append(
        f"`auto` computes anew where following costs more for long: from {anew:,} changed rows on, {anew / rows:.0%}"
    )
    return lines


def charts(figures: Figures) -> dict[str, Chart]:
    """The pictures that the measured sections give, by their names."""
    sections, rows = figures["sections"], figures["rows"]
    note = f"CPU seconds of all processes; both axes are logarithmic; {figures['machine']}"
    found = {}
    if "curve" in sections:
        parts = [
            Curve(label, [_changed(share, rows) for share, _ in points], [cost for _, cost in points])
            for label, points in ((label, _points(sections["curve"], way, _CPU)) for way, label in _WAYS.items())
        ]
        costs = [value for part in parts for value in part.values if value is not None]
        threshold = figures["auto"]["view_spark_rows"]
        line = Curve("auto takes Spark from here on", [threshold] * 2, [min(costs), max(costs)])
        title = f"A view of {rows:,} orders: the cost of a refresh by how many orders came"
        found["cluster_change"] = Chart(title, [*parts, line], note=note, scale="log")
    if "state" in sections:
        state = sections["state"]
        parts = [
            Curve(label, [int(n) for n in state], [max(0.001, one[way][_CPU]) for one in state.values()])
            for way, label in _WAYS.items()
        ]
        title = f"The cost of a refresh by {figures['change']:,} new orders, by how many there are"
        found["cluster_state"] = Chart(title, parts, note=note, scale="log")
    return found


def _changed(share: float, rows: int) -> int:
    return max(1, round(share * rows))


# -- the tables of the guide ---------------------------------------------------------------------------------------


def build_table(figures: Figures) -> str:
    build = figures["sections"]["build"]
    names = {
        "spark sql": "Spark SQL computes the query",
        "built by spark": "Spark builds the view, with its state",
        "local": "this process builds the view, with its state",
    }
    of = build["spark sql"][_CPU]
    lines = ["| | CPU s | wall s | CPU beside the query |", "|---|---|---|---|"]
    lines += [f"| {names[n]} | {cpu:.1f} | {wall:.1f} | {cpu / of:.2f}x |" for n, (cpu, wall) in build.items()]
    return "\n".join(lines)


def change_table(figures: Figures) -> str:
    lines = [
        "| new orders | Spark SQL, CPU s | refreshed by Spark | refreshed here, on the same state | `auto` takes |",
        "|---|---|---|---|---|",
    ]
    for share, found in figures["sections"]["curve"].items():
        query, spark, local = (found[way][_CPU] for way in _WAYS)
        lines.append(
            f"| {100 * float(share):g}% ({_changed(float(share), figures['rows']):,}) | {query:.2f} | {spark:.2f} ({_ratio(query, spark)}) "
            f"| {local:.3f} ({_ratio(query, local)}) | {figures['auto']['engines'][share]} |"
        )
    return "\n".join(lines)


def state_table(figures: Figures) -> str:
    lines = ["| orders | Spark SQL, CPU s | refreshed by Spark | refreshed here |", "|---|---|---|---|"]
    for rows, found in figures["sections"]["state"].items():
        query, spark, local = (found[way][_CPU] for way in _WAYS)
        lines.append(f"| {int(rows):,} | {query:.2f} | {spark:.2f} | {local:.3f} |")
    return "\n".join(lines)


def _ratio(query: float, other: float) -> str:
    times = query / max(other, 0.001)
    return f"{times:.0f}x less" if times >= 10 else f"{times:.1f}x less" if times >= 1 else f"{1 / times:.1f}x more"
