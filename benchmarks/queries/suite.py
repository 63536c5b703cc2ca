"""The 22 queries of TPC-H on Delta: Headwater's engines, and the peers, query by query in turns.

The first pass checks and warms: Headwater's engines must agree in values, names and types, and at scale factor 1 with the
specification; a peer whose query fails or whose answer differs is left out for that query and named. Then each query is
run by all, ``rounds`` times in turns. A ratio is that of the sums of medians, over the queries that both answered.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from queries import tpch
from queries.measuring import Measured, Report, Sample, difference, interleaved, timed
from queries.peers import BARE, PEERS, REWRITES, Query, attempt, headwater

__all__ = ["run"]

_TARGETS = {"querybuilder": 3.0, "polars": 1.7}


def run(data: Path, scale: float, rounds: int, engines: Sequence[str], peers: Sequence[str]) -> Report:
    lake = tpch.open_lake(data, scale)
    runners: dict[str, Query] = {e: headwater(lake, e) for e in engines}
    runners |= {p: PEERS[p][1](lake, list(tpch.FILES)) for p in peers}
    known = tpch.answers() if scale == 1 else {}
    measured: dict[str, Measured] = {}
    failures: dict[str, dict[str, str]] = {}
    for name, text in tpch.queries().items():
        failed = _check(name, text, runners, engines, known)
        for who, why in failed.items():
            failures.setdefault(who, {})[name] = why
        print(f"{name} is right", file=sys.stderr, flush=True)
        measured[name] = Measured()
        for _, who in interleaved([r for r in runners if r not in failed], rounds):
            _, sample = timed(partial(runners[who], _text(who, name, text)), children=who == "spark")
            measured[name].add(who, sample)
    report = Report(
        f"TPC-H, {len(measured)} queries on Delta: median wall ms "
        f"({rounds} rounds in turns, scale {scale:g}, all answers equal)",
        full_size=scale >= 1,
    )
    _fill(report, measured, failures, engines, peers)
    return report


def _text(who: str, name: str, text: str) -> str:
    return REWRITES.get(who, {}).get(name, text)


def _check(
    name: str, text: str, runners: Mapping[str, Query], engines: Sequence[str], known: Mapping[str, tpch.Answer]
) -> dict[str, str]:
    """Who could not answer, and why; an engine of ours that is wrong ends the benchmark."""
    failed: dict[str, str] = {}
    ours: pa.Table | None = None
    for who, query in runners.items():
        own = who in engines
        asked = _text(who, name, text)
        found = query(asked) if own else attempt(query, asked)
        if isinstance(found, str):
            failed[who] = found
            continue
        if ours is None:
            ours = found
            if name in known:
                known[name].check(name, found)
            continue
        other = difference(ours, found, exact=own)
        assert other is None or not own, f"{name}: {who} and {engines[0]} differ: {other}"
        if other is not None:
            failed[who] = f"another answer: {other}"
    return failed


def _fill(
    report: Report,
    measured: Mapping[str, Measured],
    failures: Mapping[str, Mapping[str, str]],
    engines: Sequence[str],
    peers: Sequence[str],
) -> None:
    names = [*engines, *peers]
    label = {e: f"hw {e}" for e in engines}
    report.head = ("", *(label.get(n, n) for n in names))
    for query, m in measured.items():
        report.rows.append((query, *(f"{m.wall(n) * 1000:.0f}" if n in m.runs else "-" for n in names)))
    base = engines[0]
    sums = {n: _sums(measured, n, n) for n in names}
    report.rows.append(("sum of medians, s", *(f"{sums[n].wall:.2f}" for n in names)))
    report.rows.append(("sum of best, s", *(f"{_best(measured, n):.2f}" for n in names)))
    report.rows.append(("CPU, s", *(f"{sums[n].cpu:.2f}" for n in names)))
    report.figures = {
        "queries": {q: m.figures() for q, m in measured.items()},
        "totals": {n: {"wall_s": sums[n].wall, "cpu_s": sums[n].cpu} for n in names},
        "failures": failures,
        "ratios": {},
    }
    for n in names[1:]:
        ours, theirs, count = _sums(measured, base, n), sums[n], sum(n in m.runs for m in measured.values())
        if not count:
            continue
        wall, cpu = theirs.wall / ours.wall, theirs.cpu / ours.cpu
        report.figures["ratios"][n] = {"wall": wall, "cpu": cpu, "queries": count}
        on = f"on {count} queries, CPU {cpu:.2f}x"
        if n == BARE:
            report.target(f"hw {base} / {n} (on {count} queries, CPU {1 / cpu:.2f}x), wall", 1 / wall, most=1.10)
        elif n in _TARGETS:
            report.target(f"{n} / hw {base} ({on}), wall", wall, least=_TARGETS[n])
        else:
            report.notes.append(f"{label.get(n, n)} / hw {base} ({on}), wall: {wall:.2f}x")
    for who, found in failures.items():
        report.notes += [f"{who} left out of {query}: {why}" for query, why in found.items()]


def _sums(measured: Mapping[str, Measured], of: str, where: str) -> Sample:
    """The sums of the medians of one, over the queries that another answered."""
    both = [m for m in measured.values() if of in m.runs and where in m.runs]
    return Sample(sum(m.wall(of) for m in both), sum(m.cpu(of) for m in both))


def _best(measured: Mapping[str, Measured], of: str) -> float:
    return sum(m.best(of) for m in measured.values() if of in m.runs)
