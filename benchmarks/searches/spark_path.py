"""``spark.read.format("headwater")`` against plain Spark on the same Parquet files, in one session.

Questions go through the option ``query``, and standard predicates through the option ``filter``, both with the columns that
are wanted, as users are told to write them. ``ix.spark(filter=…)`` is the same, but for conditions that the index does not
help with, which Spark's own readers answer there. The last line loads the table without either, which is a scan.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import headwater as hw
from benchmarks.queries.measuring import Measured, Report, interleaved, timed
from benchmarks.searches.ours import TABLE, query_of
from benchmarks.searches.questions import QUESTIONS
from benchmarks.searches.scans import SparkScan

__all__ = ["DATA_SOURCE", "run"]

DATA_SOURCE = "headwater.search.spark"
_PREDICATES = {
    "contains, rare": "contains(body, 'needle')",
    "contains, frequent": "contains(body, 'data')",
    "LIKE": "body LIKE '%machine learning%'",
    "startswith": "startswith(title, 'Sta')",
    "equality": "author = 'author77'",
    "IN": "author IN ('author1', 'author2', 'author3')",
    "range": "views >= 99000",
    "NOT contains": "NOT contains(body, 'data') AND author = 'author77'",
    "IS NULL": "body IS NULL",
}


def run(lake: hw.Lake, index: str, plain: SparkScan, rounds: int, *, full_size: bool) -> Report:
    """Compare, for questions and for predicates; a line that says so if there is no such format yet."""
    report = Report(
        "spark.read.format('headwater') against plain Spark",
        ["", "rows", "ms", "CPU ms", "plain Spark", "ix.spark ms", "CPU ms", "plain Spark"],
    )
    report.full_size = full_size
    if find_spec(DATA_SOURCE) is None:
        report.notes.append(f"left out: there is no module {DATA_SOURCE}")
        return report
    session = plain.session
    from headwater.search.spark.source import register

    register(session)
    path = str(lake.table(TABLE).snapshot.storage.local_path(""))

    kept = hw.connect(lake.location, spark=session).index(index)

    def ours(**options: str) -> Any:
        return session.read.format("headwater").options(index=index, **options).load(path)

    def ids(frame: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: np.sort(frame().toArrow().column("id").to_numpy())

    ratios: dict[str, dict[str, float]] = {"query": {}, "predicate": {}}
    for question in (q for q in QUESTIONS if q.kind == "ids"):
        scan = plain.question(question)
        assert scan is not None
        text = query_of(question)
        ways = {
            "headwater": ids(lambda text=text: ours(query=text, columns="id")),
            "plain": lambda scan=scan: np.sort(scan()),
        }  # type: ignore[misc]
        ratios["query"][question.name] = _line(report, question.name, ways, rounds)
    for name, where in _PREDICATES.items():
        ways = {
            "headwater": ids(lambda where=where: ours(filter=where, columns="id")),  # type: ignore[misc]
            "ix.spark": ids(lambda where=where: kept.spark(filter=where, columns=["id"])),  # type: ignore[misc]
            "plain": ids(lambda where=where: plain.frame.where(where).select("id")),  # type: ignore[misc]
        }
        ratios["predicate"][name] = _line(report, name, ways, rounds)
    scans = {"headwater": ids(lambda: ours(columns="id")), "plain": ids(lambda: plain.frame.select("id"))}
    _line(report, "all rows", scans, rounds)
    selective = {name: ratio for name, ratio in ratios["query"].items() if "frequent" not in name}
    report.target("selective queries, least", min(selective.values()), least=8)
    worst = 1 / min(ratios["predicate"].values())
    report.target("standard predicates by ix.spark, most of plain Spark", worst, most=1.3)
    return report


def _line(report: Report, name: str, ways: dict[str, Callable[[], Any]], rounds: int) -> float:
    """Measure one line; gives how many times longer plain Spark takes than the last of our ways."""
    answers = {who: way() for who, way in ways.items()}
    for who, answer in answers.items():
        assert np.array_equal(answer, answers["plain"]), f"{name}: the rows of {who} are not those of plain Spark"
    measured = Measured()
    for _, who in interleaved(list(ways), rounds):
        measured.add(who, timed(ways[who], children=True)[1])
    cells, last = [], 0.0
    for who in (one for one in ways if one != "plain"):
        wall, cpu = (getattr(measured, what)("plain") / getattr(measured, what)(who) for what in ("wall", "cpu"))
        cells += [f"{measured.wall(who) * 1e3:.0f}", f"{measured.cpu(who) * 1e3:.0f}", f"{wall:.2f}/{cpu:.2f}"]
        last = wall
    report.add([name, f"{len(answers['plain']):,}", *cells, *[""] * (6 - len(cells))])
    report.figures.setdefault("lines", {})[name] = measured.figures()
    return last
