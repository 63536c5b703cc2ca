"""Operators of time series over the same trades: Headwater's blocks, Spark's own forms, tempo, and polars and DuckDB in one process.

All read the same files. An answer is many rows, of which each engine computes a few numbers (`fingerprint`), so that nobody can leave out a
column and nobody has to move rows; numbers are compared before anything is timed. Ours is timed by blocks, also where the plan would choose
Spark's form; the last column says what it would choose.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import duckdb
import polars as pl
from pyspark.sql import DataFrame, SparkSession
from queries.measuring import Measured, Report, interleaved, timed
from streaming import fingerprint, quantile_forms
from streaming.forms import FORMS, Form
from streaming.tempo_forms import TEMPO, series
from streaming.ticks import Ticks

from headwater.lake.spark.conf import conf
from headwater.timeseries.running.stages import Run
from headwater.timeseries.stream import Stream

__all__ = ["run"]

_PEERS = ("Spark", "tempo", "polars", "DuckDB")


@dataclass(frozen=True)
class _Contest:
    """One operator, who can do it, and how answers are compared."""

    name: str
    work: Mapping[str, Callable[[], Any]]
    differs: Callable[[Any, Any], str | None]
    auto: str
    apart: Mapping[str, str] = field(default_factory=dict)


def run(session: SparkSession, rows: int, rounds: int, *, tempo: bool, only: Sequence[str] = ()) -> Report:
    """One table: a row for each operator, and how many times longer than ours the others take."""
    ticks = Ticks(session, rows)
    connection = duckdb.connect(config={"threads": session.sparkContext.defaultParallelism})
    try:
        for name in ("ticks", "wide"):
            made = ", epoch_us(ts) AS us" if name == "ticks" else ""
            connection.execute(f"CREATE VIEW {name} AS SELECT *{made} FROM read_parquet({ticks.paths(name)!r})")
        contests = [_contest(form, ticks, connection, tempo=tempo) for form in FORMS if _asked(form.name, only)]
        if _asked("quantiles", only):
            contests.append(_quantiles(ticks, connection))
        return _measured(contests, ticks, rounds)
    finally:
        connection.close()
        ticks.close()


def _asked(name: str, only: Sequence[str]) -> bool:
    return not only or any(name.startswith(part) for part in only)


def _contest(form: Form, ticks: Ticks, connection: duckdb.DuckDBPyConnection, *, tempo: bool) -> _Contest:
    def on_spark(frame: Callable[[], DataFrame], values: tuple[str, ...] = form.values) -> Callable[[], Any]:
        return lambda: fingerprint.of_spark(frame(), form.time, values)

    def rows() -> DataFrame:
        return ticks.lake.table("ticks").spark()

    def on_polars() -> fingerprint.Numbers:
        return fingerprint.of_polars(form.polars(pl.scan_parquet(ticks.paths("ticks"))), form.time, form.values)

    def by_blocks() -> DataFrame:
        return Run(ticks.spark, form.ours(ticks.stream()).plan, strategy="blocks").frame()

    work = {
        "ours": on_spark(by_blocks),
        "Spark": on_spark(lambda: form.spark(rows())),
        "polars": on_polars,
    }
    if form.duckdb is not None:
        work["DuckDB"] = partial(fingerprint.of_duckdb, connection, form.duckdb, form.values)
    apart = {}
    other = TEMPO.get(form.name) if tempo else None
    if other is not None:
        work["tempo"] = _without_ansi(ticks.spark, on_spark(lambda: other.frame(series(rows())), other.values))
        apart = {} if other.apart is None else {"tempo": other.apart}
    return _Contest(form.name, work, fingerprint.differs, _choice(form.ours(ticks.stream())), apart)


def _without_ansi(session: SparkSession, work: Callable[[], Any]) -> Callable[[], Any]:
    """tempo's range statistics rely on casts that fail by ANSI's rules, Spark's default."""

    def run() -> Any:
        with conf(session, {"spark.sql.ansi.enabled": "false"}):
            return work()

    return run


def _quantiles(ticks: Ticks, connection: duckdb.DuckDBPyConnection) -> _Contest:
    work, ranks = quantile_forms.work(ticks, connection), quantile_forms.Ranks(ticks)
    return _Contest("quantiles, 50 columns", work, ranks.differs, _choice(quantile_forms.stream(ticks)))


def _choice(stream: Stream) -> str:
    """What the plan chooses; a plan of two operators may run one so and one so."""
    stages = stream.explain()
    if "Spark's own form of it" not in stages:
        return "blocks"
    return "both" if "exchange" in stages else "Spark"


def _measured(contests: list[_Contest], ticks: Ticks, rounds: int) -> Report:
    ratios = [f"{who} {kind} x" for who in _PEERS for kind in ("wall", "CPU")]
    report = Report(
        f"Operators over {ticks.rows:,} trades, one symbol with {100 * ticks.hot:g}%: seconds by blocks, and how many times that the others take "
        f"({rounds} rounds in turns, answers equal)",
        ("", "wall s", "CPU s", *ratios, "chosen"),
        full_size=ticks.rows >= 1_000_000,
    )
    found: dict[str, Measured] = {}
    ticks.spark.range(1_000).mapInArrow(lambda batches: batches, "id long").count()  # a session starts its workers once
    for contest in contests:
        samples = found[contest.name] = _checked(contest)
        if rounds > 1:
            samples = found[contest.name] = Measured()
            for _, who in interleaved(list(contest.work), rounds):
                samples.add(who, timed(contest.work[who], children=True)[1])
        report.rows.append(_line(contest, samples))
        if (told := _regret(contest, samples)) is not None:
            report.notes.append(told)
        report.notes += contest.apart.values()
        print(f"{contest.name} is right", file=sys.stderr, flush=True)
    report.figures = {c.name: {"samples": found[c.name].figures(), "chosen": c.auto} for c in contests}
    for who in _PEERS:
        both = [m for m in found.values() if who in m.runs]
        if both:
            walls, cpus = ([kind(m, who) / kind(m, "ours") for m in both] for kind in (Measured.wall, Measured.cpu))
            report.notes.append(
                f"{who} / ours, geometric mean of {len(both)}: wall {_mean(walls):.2f}x, CPU {_mean(cpus):.2f}x"
            )
    report.notes.append(
        "the others' sums of doubles are equal to nine digits, quantiles to their error; all else exactly"
    )
    return report


def _checked(contest: _Contest) -> Measured:
    """Everyone once: answers are equal, and what starts with a first run has started. If there is one round only, this is it."""
    samples = Measured()
    wanted: Any = None
    for who, work in contest.work.items():
        found, sample = timed(work, children=True)
        samples.add(who, sample)
        wanted = found if who == "ours" else wanted
        other = None if who in contest.apart else contest.differs(wanted, found)
        assert other is None, f"{contest.name}: {who} has another answer: {other}"
    return samples


def _line(contest: _Contest, samples: Measured) -> tuple[str, ...]:
    wall, cpu = samples.wall("ours"), samples.cpu("ours")
    cells = [contest.name, f"{wall:.2f}", f"{cpu:.2f}"]
    for who in _PEERS:
        there = who in samples.runs
        cells += [
            f"{samples.wall(who) / wall:.2f}" if there else "-",
            f"{samples.cpu(who) / cpu:.2f}" if there else "-",
        ]
    return (*cells, contest.auto)


def _regret(contest: _Contest, samples: Measured) -> str | None:
    """Where the plan chooses the form that took longer, by a tenth at least."""
    if contest.auto == "both":
        return None
    chosen, left = ("Spark", "ours") if contest.auto == "Spark" else ("ours", "Spark")
    wall, cpu = samples.wall(chosen) / samples.wall(left), samples.cpu(chosen) / samples.cpu(left)
    if max(wall, cpu) < 1.1:
        return None
    return f"{contest.name}: {contest.auto} is chosen, which takes {wall:.2f}x the wall and {cpu:.2f}x the CPU of the other form"


def _mean(ratios: list[float]) -> float:
    # The CPU of workers that ended meanwhile is not always counted, so that of a very short run may be nothing.
    kept = [r for r in ratios if r > 0]
    return math.exp(sum(map(math.log, kept)) / len(kept))
