"""Filter, join and aggregate, in steps of several sizes: events in a second, and how long a step takes.

Pathway is measured in three ways. *Engine only* is its circuit less what its reading of the same stream costs alone, both less
what they cost with next to no events, so that loading the table is in neither. *Connector* is all of it, rows going in and
coming out through Python. *Waiting* is the connector where each batch waits for the output of the one before: the only way to
see how long a step takes. Ours is all of it too: from Arrow to Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from incrementals.feed import Feed
from incrementals.ours import drive
from incrementals.peers import Dbsp, Pathway
from queries.measuring import Measured, Report, Sample, difference, interleaved, percentile

__all__ = ["Competitors", "run", "shares"]

EVENTS = {1: 10_000, 100: 200_000, 1_000: 300_000, 10_000: 500_000, 100_000: 1_000_000}
_FEW = 100
_WAITED = {100: 200, 1_000: 50, 10_000: 12}
_WAYS = ("ingest", "circuit", "connector")


@dataclass
class Competitors:
    """Who takes part, besides us."""

    dbsp: Dbsp | None = None
    pathway: Pathway | None = None

    def names(self) -> list[str]:
        return ["headwater", *(["dbsp"] if self.dbsp else []), *(["pathway"] if self.pathway else [])]


@dataclass
class _Field:
    """All runs at one size of a batch."""

    feed: Feed
    folder: Path
    batch: int
    measured: Measured = field(default_factory=Measured)
    steps: dict[str, list[float]] = field(default_factory=dict)
    profile: pa.Table | None = None

    def add(self, who: str, sample: Sample, steps: Iterable[float] = ()) -> None:
        self.measured.add(who, sample)
        self.steps.setdefault(who, []).extend(steps)


def check(who: str, right: pa.Table, found: pa.Table) -> None:
    """Stop if an answer is not the right one."""
    other = difference(right, found, exact=False)
    assert other is None, f"{who}: {other}"


def shares(profile: pa.Table, seconds: float) -> str:
    """Where the time of steps went: the operators' parts, and what is left for going in, commits and coming out."""
    parts = [
        (f"{operator} {detail}".strip(), spent / seconds)
        for operator, detail, spent in zip(
            *(profile[c].to_pylist() for c in ("operator", "detail", "seconds")), strict=True
        )
    ]
    told = [f"{name} {share:.0%}" for name, share in parts if share >= 0.02]
    return ", ".join([*told, f"the rest {1 - sum(share for _, share in parts):.0%}"])


def _pathway(at: _Field, pathway: Pathway, right: pa.Table, few: dict[str, Sample]) -> None:
    found = {}
    for how in _WAYS:
        if how == "connector" and at.batch == 1:
            continue
        found[how] = pathway.run(at.feed, at.folder, at.batch, how)
    cost = [
        getattr(found["circuit"].sample, unit)
        - getattr(few["circuit"], unit)
        - max(0.0, getattr(found["ingest"].sample, unit) - getattr(few["ingest"], unit))
        for unit in ("wall", "cpu")
    ]
    at.add("pathway, engine only", Sample(*cost))
    if "connector" in found:
        check("pathway", right, found["connector"].answer)
        at.add("pathway, connector", found["connector"].sample)
    if at.batch in _WAITED:
        head = at.feed.head(at.batch * _WAITED[at.batch])
        waiting = pathway.run(head, at.folder / "head", at.batch, "latency")
        check("pathway, waiting", head.answer(), waiting.answer)
        # The first batches wait for the table to be loaded.
        at.steps.setdefault("pathway, waiting", []).extend(waiting.steps[len(waiting.steps) // 10 :])


def _run(folder: Path, feed: Feed, batch: int, rounds: int, competitors: Competitors) -> _Field:
    at = _Field(feed, folder / f"{feed.kind}-{batch}", batch)
    right = feed.answer()
    drive(feed.head(3 * batch), 0, batch)  # kernels are compiled or loaded
    few: dict[str, Sample] = {}
    if competitors.pathway:
        little = feed.head(_FEW)
        few = {h: competitors.pathway.run(little, at.folder / "few", _FEW, h).sample for h in ("ingest", "circuit")}
    for _, who in interleaved(competitors.names(), rounds):
        if who == "pathway":
            assert competitors.pathway
            _pathway(at, competitors.pathway, right, few)
            continue
        if who == "dbsp":
            assert competitors.dbsp
            run = competitors.dbsp.run(feed, at.folder, 0, batch)
        else:
            run = drive(feed, 0, batch)
            at.profile = run.profile
        check(who, right, run.answer)
        at.add(who, run.rest, run.steps)
    return at


def _ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.1f}" if theirs > 0 else "-"


def _rows(at: _Field, report: Report) -> None:
    """The lines of a table, one for each competitor, and the same for machines."""
    ours, mine = at.measured, at.steps["headwater"]
    figures: dict[str, dict[str, float]] = {}
    for who in dict.fromkeys([*ours.runs, *at.steps]):
        row = [f"{at.batch:,} {who}"]
        figures[who] = {}
        seconds = (ours.wall(who), ours.cpu(who)) if who in ours.runs else (0.0, 0.0)
        for unit, value in zip(("events_per_s", "events_per_cpu_s"), seconds, strict=True):
            row.append(f"{len(at.feed) / value / 1e3:,.0f}" if value > 0 else "-")
            figures[who][unit] = len(at.feed) / value if value > 0 else 0.0
        steps = at.steps.get(who, [])
        for unit, share in (("p50_s", 0.5), ("p99_s", 0.99), ("max_s", 1.0)):
            row.append(f"{percentile(steps, share) * 1e6:,.0f}" if steps else "-")
            if steps:
                figures[who][unit] = percentile(steps, share)
        base = (ours.wall("headwater"), ours.cpu("headwater"))
        row.extend(_ratio(theirs, own) for theirs, own in zip(seconds, base, strict=True))
        row.append(_ratio(figures[who].get("p50_s", 0.0), percentile(mine, 0.5)))
        report.rows.append(row)
    report.figures.setdefault("batches", {})[at.batch] = figures


def _targets(at: _Field, report: Report) -> None:
    measured = at.measured
    what = f"{at.batch:,} rows a step"
    if "pathway, engine only" in measured.runs:
        ratio = measured.cpu("pathway, engine only") / measured.cpu("headwater")
        if ratio > 0:
            report.notes.append(
                f"{what}: events in a CPU second, ours to pathway's without its connector: {ratio:.2f}x"
            )
    if "pathway, connector" in measured.runs and at.batch in {100, 1_000, 10_000}:
        ratio = measured.wall("pathway, connector") / measured.wall("headwater")
        report.target(f"{what}: events in a second, ours to pathway's, each as users feed it", ratio, least=20)
    waited = at.steps.get("pathway, waiting")
    if waited:
        ratio = percentile(waited, 0.5) / percentile(at.steps["headwater"], 0.5)
        if at.batch == 100:
            report.target(f"{what}: p50 of a step, pathway's to ours", ratio, least=20)
    if "dbsp" in measured.runs:
        ratio = measured.cpu("dbsp") / measured.cpu("headwater")
        report.notes.append(f"{what}: events in a CPU second, ours to DBSP's: {ratio:.2f}x")


def run(
    folder: Path, scale: float, rounds: int, competitors: Competitors, *, texts: Sequence[int], sizes: Sequence[int]
) -> list[Report]:
    """A table for each form of keys."""
    reports = []
    for text in texts:
        form = f"keys of {text} bytes, groups by name, nulls" if text else "integers"
        report = Report(
            f"Filter, join, aggregate; {form}: thousand events in a second and in a CPU second, us of a step, "
            f"and how often ours is in it ({rounds} rounds in turns, all answers equal)"
        )
        report.head = (
            "rows a step",
            "k ev/s",
            "k ev/CPU s",
            "p50",
            "p99",
            "max",
            "wall ratio",
            "CPU ratio",
            "p50 ratio",
        )
        report.full_size = scale >= 1
        for batch in sizes:
            events = max(batch * 4, round(EVENTS[batch] * scale))
            at = _run(folder, Feed.make(events, text=text), batch, rounds, competitors)
            _rows(at, report)
            _targets(at, report)
            assert at.profile is not None
            last = at.measured.runs["headwater"][-1].wall
            report.notes.append(f"{batch:,} rows a step, our time: {shares(at.profile, last)}")
        reports.append(report)
    return reports
