"""What a step of 100 rows costs as state grows: at three sizes of it, and while it grows.

Values are of a wide range, so that the state of the least and greatest values grows with that of the join. At a size, the
state is loaded in one step and merges are waited for; while it grows, steps and merges go on together.
"""

from __future__ import annotations

import os
from pathlib import Path

from incrementals.circuit import Competitors, check, shares
from incrementals.feed import Feed
from incrementals.ours import Run, drive
from queries.measuring import Measured, Report, interleaved, percentile

__all__ = ["merges", "scale"]

SIZES = (100_000, 1_000_000, 10_000_000)
GROWN = 3_000_000
_BATCH = 100
_STEPS = 1_000
_VALUES = 1 << 30


def _drive(who: str, feed: Feed, folder: Path, first: int, competitors: Competitors) -> Run:
    if who == "headwater":
        return drive(feed, first, _BATCH, settled=True)
    assert competitors.dbsp
    return competitors.dbsp.run(feed, folder, first, _BATCH)


def _figures(steps: list[float]) -> tuple[float, float, float]:
    return percentile(steps, 0.5), percentile(steps, 0.99), max(steps)


def scale(folder: Path, scaled: float, rounds: int, competitors: Competitors) -> Report:
    """A step of 100 rows at 100k, 1M and 10M rows of state."""
    names = [n for n in competitors.names() if n != "pathway"]
    sizes = [max(2_000, round(s * scaled)) for s in SIZES]
    steps = max(20, round(_STEPS * min(1.0, scaled)))
    report = Report(
        f"A step of {_BATCH} rows by the state it meets, {steps:,} steps: us ({rounds} rounds in turns, all answers equal)",
        ("state", "p50", "p99", "max", "CPU a step", "p50 ratio"),
        full_size=scaled >= 1,
    )
    measured, found = Measured(), dict[str, list[float]]()
    for size in sizes:
        feed = Feed.make(size + steps * _BATCH, values=_VALUES)
        right = feed.answer()
        drive(feed.head(2 * _BATCH), 0, _BATCH)
        for _, who in interleaved(names, rounds):
            done = _drive(who, feed, folder / f"scale-{size}", size, competitors)
            check(who, right, done.answer)
            measured.add(f"{size:,} {who}", done.rest)
            found.setdefault(f"{size:,} {who}", []).extend(done.steps)
    for who in names:
        base = percentile(found[f"{sizes[0]:,} {who}"], 0.5)
        for size in sizes:
            key = f"{size:,} {who}"
            p50, p99, most = _figures(found[key])
            cpu = measured.cpu(key) / steps
            report.rows.append((key, *(f"{v * 1e6:,.0f}" for v in (p50, p99, most, cpu)), f"{p50 / base:.2f}"))
            report.figures[key] = {"p50_s": p50, "p99_s": p99, "max_s": most, "cpu_s": cpu}
        ratio = percentile(found[f"{sizes[-1]:,} {who}"], 0.5) / base
        if who == "headwater":
            report.target(f"p50 at {sizes[-1]:,} rows to {sizes[0]:,}", ratio, most=2)
    return report


def merges(folder: Path, scaled: float, rounds: int, competitors: Competitors) -> Report:
    """Steps of 100 rows from nothing to some millions."""
    names = [n for n in competitors.names() if n != "pathway"]
    events = max(20_000, round(GROWN * scaled))
    report = Report(
        f"Steps of {_BATCH} rows while state grows to {events:,} events, with merges: us "
        f"({rounds} rounds in turns, all answers equal)",
        ("", "p50", "p99", "p99.9", "max", "k ev/s", "k ev/CPU s", "p99/p50"),
        full_size=scaled >= 1,
    )
    feed = Feed.make(events, values=_VALUES)
    right = feed.answer()
    measured, found = Measured(), dict[str, list[float]]()
    profile = None
    drive(feed.head(2 * _BATCH), 0, _BATCH)
    for _, who in interleaved(names, rounds):
        done = _drive(who, feed, folder / "merges", 0, competitors)
        check(who, right, done.answer)
        measured.add(who, done.rest)
        found.setdefault(who, []).extend(done.steps)
        profile = done.profile if who == "headwater" else profile
    for who in names:
        p50, p99, most = _figures(found[who])
        rates = [f"{events / s / 1e3:,.0f}" for s in (measured.wall(who), measured.cpu(who))]
        times = [f"{v * 1e6:,.0f}" for v in (p50, p99, percentile(found[who], 0.999), most)]
        report.rows.append((who, *times, *rates, f"{p99 / p50:.1f}"))
        report.figures[who] = {"p50_s": p50, "p99_s": p99, "max_s": most, **measured.figures()[who]}
    p50, p99, _ = _figures(found["headwater"])
    report.target("p99 to p50", p99 / p50, most=20)
    assert profile is not None
    report.notes.append(f"our time: {shares(profile, measured.runs['headwater'][-1].wall)}")
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        report.notes.append("a step that lost its core to others is in p99 and max")
    return report
