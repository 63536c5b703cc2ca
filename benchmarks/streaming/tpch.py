"""TPC-H through streams, against Spark SQL's answers to the queries' text.

Both run on one session over the same Delta tables, and end with the text's ORDER BY in Spark; rows, names and types must be equal. A stream is
made anew each time, which reads the tables' logs, opens their files and reads the texts of its expressions, while Spark SQL has its views: `plan ms`
is how much of a stream's wall that is, and a ratio without it is given too. Streams of relational operators only become Spark's own plan, so a ratio
near one is what is expected; it tells what our way of saying a query costs.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from queries import tpch
from queries.measuring import Measured, Report, difference, interleaved, timed
from streaming.tpch_streams import STREAMS, Tables

import headwater as hw
from headwater.lakehouse import Lake

__all__ = ["NOT_EXPRESSIBLE", "run"]

NOT_EXPRESSIBLE: dict[str, str] = {}
"""Queries that streams cannot say, with the reason."""


def run(session: SparkSession, scale: float, rounds: int, *, only: Sequence[str] = ()) -> Report:
    """One table: a row for each query."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-tpch-") as folder:
        tpch.open_lake(Path(folder), scale)
        lake = hw.connect(Path(folder) / "lake", spark=session)
        for name in tpch.FILES:
            lake.table(name).spark().createOrReplaceTempView(name)
        try:
            return _measured(lake, session, scale, rounds, only)
        finally:
            for name in tpch.FILES:
                session.catalog.dropTempView(name)


def _measured(lake: Lake, session: SparkSession, scale: float, rounds: int, only: Sequence[str]) -> Report:
    report = Report(
        f"TPC-H through streams and in Spark SQL, median seconds ({rounds} rounds in turns, scale {scale:g}, answers equal)",
        ("", "stream s", "plan ms", "Spark SQL s", "stream / SQL, wall", "without planning", "stream / SQL, CPU"),
        full_size=scale >= 1,
    )
    known, tables = tpch.answers() if scale == 1 else {}, Tables(lake)
    found: dict[str, Measured] = {}
    plans: dict[str, float] = {}
    for name, text in tpch.queries().items():
        if name in NOT_EXPRESSIBLE or (only and name not in only):
            continue
        planned: list[float] = []
        work = {"stream": _ours(name, text, tables, planned), "SQL": _theirs(text, session)}
        # The first pass checks and warms; if there is one round only, it is that too.
        first = {who: timed(run, children=True) for who, run in work.items()}
        other = difference(first["SQL"][0], first["stream"][0], exact=True)
        assert other is None, f"{name}: the stream has another answer: {other}"
        if name in known:
            known[name].check(name, first["stream"][0])
        samples = found[name] = Measured({who: [sample] for who, (_, sample) in first.items()} if rounds == 1 else {})
        for _, who in interleaved(list(work), rounds if rounds > 1 else 0):
            samples.add(who, timed(work[who], children=True)[1])
        plans[name] = statistics.median(planned[-rounds:])
        report.rows.append(_line(name, samples, plans[name]))
        print(f"{name} is right", file=sys.stderr, flush=True)
    _sum_up(report, found, plans)
    return report


def _frame(name: str, text: str, tables: Tables) -> DataFrame:
    order, limit = _ending(text)
    frame = STREAMS[name](tables).spark()
    return frame if limit or not order else frame.orderBy(*order)


def _ours(name: str, text: str, tables: Tables, planned: list[float]) -> Callable[[], pa.Table]:
    """Runs a query's stream, and adds to `planned` how many seconds it took until Spark had a plan."""

    def run() -> pa.Table:
        start = time.perf_counter()
        frame = _frame(name, text, tables)
        planned.append(time.perf_counter() - start)
        return frame.toArrow()

    return run


def _theirs(text: str, session: SparkSession) -> Callable[[], pa.Table]:
    return lambda: session.sql(text).toArrow()


def _ending(text: str) -> tuple[list[Column], bool]:
    """What a query is ordered by at last, and whether it has a limit (then the first rows of a stream are in that order)."""
    found = re.search(r"\norder by ([^()]*?)(?:\nlimit (\d+))?\s*$", text)
    if found is None:
        return [], False
    parts = [part.split() for part in found[1].split(",")]
    return [sf.col(name).desc() if falls else sf.col(name) for name, *falls in parts], found[2] is not None


def _ratios(samples: Measured, plan_s: float) -> tuple[float, float, float]:
    """Of the wall, of the wall without planning, of the CPU."""
    wall, theirs = samples.wall("stream"), samples.wall("SQL")
    return wall / theirs, max(wall - plan_s, 1e-3) / theirs, samples.cpu("stream") / samples.cpu("SQL")


def _line(name: str, samples: Measured, plan_s: float) -> tuple[str, ...]:
    walls = f"{samples.wall('stream'):.2f}", f"{plan_s * 1000:.0f}", f"{samples.wall('SQL'):.2f}"
    return (name, *walls, *(f"{r:.2f}" for r in _ratios(samples, plan_s)))


def _sum_up(report: Report, found: dict[str, Measured], plans: dict[str, float]) -> None:
    report.figures = {
        "queries": {name: m.figures() | {"plan_s": plans[name]} for name, m in found.items()},
        "not expressible": NOT_EXPRESSIBLE,
    }
    report.notes.append(f"{len(found)} of {len(tpch.queries())} queries are expressible as streams")
    report.notes += [f"{name} is not: {why}" for name, why in NOT_EXPRESSIBLE.items()]
    each = [_ratios(m, plans[name]) for name, m in found.items()]
    for kind, ratios in zip(("wall", "wall without planning", "CPU"), zip(*each, strict=True), strict=True):
        # The CPU of workers that ended meanwhile is not always counted, so that of a very short run may be nothing.
        kept = [r for r in ratios if r > 0]
        mean = math.exp(sum(map(math.log, kept)) / len(kept))
        report.figures[f"geometric mean, {kind}"] = mean
        report.target(f"stream / Spark SQL, geometric mean, {kind}", mean, most=1.1)
