"""Everybody builds, everybody is asked: one table of ratios.

A build is timed once: it takes as long as it takes. Questions are asked in rounds, competitors taking turns; one that
answers within milliseconds is asked several times in its turn, and the mean is its sample. All answers to a question
are compared before anything of it is printed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.queries.measuring import Measured, Report, Sample, interleaved, timed
from benchmarks.searches.corpus import Corpus
from benchmarks.searches.questions import QUESTIONS, Question, Ranking, same

__all__ = ["OURS", "POLARS", "SPARK", "TRIGRAMS", "Built", "Competitor", "build", "run"]

OURS, TRIGRAMS, POLARS, SPARK = "headwater", "hw trigrams", "polars", "spark"
SQLITE_TRIGRAM = "sqlite trigram"
_TURN_S = 0.05
_MOST_TIMES = 200
_SLOW_S = 1.0


class Competitor(Protocol):
    """Whoever takes part."""

    def build(self) -> int:
        """Index the documents; gives the bytes of the index."""

    def open(self) -> None:
        """Use what was built before."""

    def question(self, question: Question) -> Callable[[], Any] | None:
        """What answers a question; None: it has no such thing."""


@dataclass(frozen=True)
class Built:
    """What an index took to be built, and takes."""

    cost: Sample
    bytes: int

    def to_json(self) -> str:
        return json.dumps({"wall": self.cost.wall, "cpu": self.cost.cpu, "bytes": self.bytes})

    @classmethod
    def from_json(cls, text: str) -> Built:
        found = json.loads(text)
        return cls(Sample(found["wall"], found["cpu"]), found["bytes"])


def build(name: str, competitor: Competitor) -> Built:
    """Build an index, and say what it took."""
    size, cost = timed(competitor.build)
    print(f"built {name}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU s, {size / 1e6:.1f} MB", flush=True)
    return Built(cost, size)


def _sample(answer: Callable[[], Any], first: float, *, children: bool) -> Sample:
    times = 1 if children else max(1, min(_MOST_TIMES, int(_TURN_S / max(first, 1e-6))))

    def turn() -> None:
        for _ in range(times):
            answer()

    _, cost = timed(turn, children=children)
    return Sample(cost.wall / times, cost.cpu / times)


def _cell(measured: Measured, name: str) -> str:
    if name not in measured.runs:
        return "-"
    wall, cpu = measured.wall(name) / measured.wall(OURS), measured.cpu(name) / max(measured.cpu(OURS), 1e-9)
    return f"{_short(wall)}/{_short(cpu)}"


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def run(
    corpus: Corpus,
    competitors: Mapping[str, Competitor],
    built: Mapping[str, Built],
    rounds: int,
    *,
    full_size: bool,
    shapes: Collection[str] | None = None,
) -> Report:
    """Ask everybody everything, and compare."""
    others = [name for name in competitors if name != OURS]
    title = f"{corpus.docs:,} documents; peers as multiples of headwater's wall/CPU; times in ms"
    report = Report(title, ["", "wall", "CPU", *others], full_size=full_size)
    questions = [q for q in QUESTIONS if shapes is None or q.shape in shapes]
    report.begin([q.name for q in questions])
    ours = built[OURS]
    _build_lines(report, corpus, built, ours, others)
    figures: dict[str, Any] = report.figures.setdefault("questions", {})
    for question in questions:
        ways = {n: way for n, one in competitors.items() if (way := one.question(question)) is not None}
        measured = _measured(corpus, competitors, question, ways, rounds)
        figures[question.name] = measured.figures()
        mine = (f"{measured.wall(OURS) * 1e3:.2f}", f"{measured.cpu(OURS) * 1e3:.2f}")
        report.add([question.name, *mine, *(_cell(measured, name) for name in others)])
    _targets(report, corpus, built, figures)
    return report


def _build_lines(
    report: Report, corpus: Corpus, built: Mapping[str, Built], ours: Built, others: Sequence[str]
) -> None:
    report.figures["builds"] = {
        name: {
            "wall_s": one.cost.wall,
            "cpu_s": one.cost.cpu,
            "bytes": one.bytes,
            "docs_per_cpu_s": corpus.docs / one.cost.cpu,
        }
        for name, one in built.items()
        if one.bytes
    }
    costs, sizes = [], []
    for name in others:
        one = built[name]
        cost = f"{_short(one.cost.wall / ours.cost.wall)}/{_short(one.cost.cpu / ours.cost.cpu)}"
        costs.append(cost if one.bytes else "-")
        sizes.append(_short(one.bytes / ours.bytes) if one.bytes else "-")
    report.add(["build", f"{ours.cost.wall * 1e3:.0f}", f"{ours.cost.cpu * 1e3:.0f}", *costs])
    report.add(["size of the index, MB", f"{ours.bytes / 1e6:.1f}", "", *sizes])


def _measured(
    corpus: Corpus,
    competitors: Mapping[str, Competitor],
    question: Question,
    ways: Mapping[str, Callable[[], Any]],
    rounds: int,
) -> Measured:
    """The timings of one question, once all answers are the same."""
    rankings: list[Ranking] = []

    def ranking() -> Ranking:
        if not rankings:
            rankings.append(Ranking(corpus, question, _texts(competitors[POLARS], question)))
        return rankings[0]

    expected = ways[POLARS]() if POLARS in ways else None
    first: dict[str, float] = {}
    for name, way in ways.items():
        start = time.perf_counter()
        answer = way()
        took = time.perf_counter() - start
        if took < _SLOW_S:  # a scan is no quicker the second time
            start = time.perf_counter()
            way()
            took = time.perf_counter() - start
        first[name] = took
        problem = same(question.kind, expected, answer, ranking)
        assert problem is None, f"{question.name}: {name} has {problem}"
    measured = Measured()
    for turn, name in interleaved(list(ways), rounds):
        if turn and first[name] >= _SLOW_S:  # once says enough
            continue
        measured.add(name, _sample(ways[name], first[name], children=name == SPARK))
    return measured


def _texts(scan: Any, question: Question) -> dict[int, str]:
    """The documents that match, by their ids."""
    return dict(scan.matching(question).select("id", "body").collect().iter_rows())


def _targets(report: Report, corpus: Corpus, built: Mapping[str, Built], figures: Mapping[str, Any]) -> None:
    def median(question: str, name: str) -> float | None:
        found = figures.get(question, {}).get(name)
        return None if found is None else float(found["median_s"])

    thousands = {name: corpus.docs / one.cost.cpu / 1e3 for name, one in built.items() if name.startswith("h")}
    for name, figure in thousands.items():
        report.notes.append(f"{name}: {figure:.1f} thousand documents per CPU second of the build")
    report.target("documents per CPU second", thousands[OURS], least=12, unit=" thousand")
    slowest = max(median("top 10, rare term", OURS) or 0, median("top 10, frequent term", OURS) or 0)
    report.target("top 10 of a term", slowest * 1e3, most=1, unit=" ms")
    for question in (q.name for q in QUESTIONS if q.shape == "substring"):
        mine, trigrams = median(question, OURS), median(question, TRIGRAMS)
        scan, peer = median(question, POLARS), median(question, SQLITE_TRIGRAM)
        if mine is not None and scan is not None:
            report.target(f"{question}: faster than a polars scan", scan / mine, least=5)
        if trigrams is not None and peer is not None:
            report.target(f"{question}: with trigrams, faster than SQLite's", peer / trigrams, least=1)
