"""Operators of time series over the same trades: Headwater's blocks, Spark's own forms, tempo, and polars and DuckDB in one process.

All read the same files. An answer is many rows, of which each engine computes a few numbers (`fingerprint`), so that nobody can leave out a
column and nobody has to move rows; numbers are compared before anything is timed. Ours is timed by blocks, also where the plan would choose
Spark's form; the last column says what it would choose. A peer that takes too long is stopped, told as such, and left out of further rounds.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import duckdb
import polars as pl
from pyspark.sql import DataFrame, SparkSession
from queries.measuring import Measured, Report, Sample, interleaved, timed
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
    stop: Callable[[], object]
    """What ends whatever runs."""
    auto: str
    apart: Mapping[str, str] = field(default_factory=dict)


class _TooLong(Exception):
    """A peer was stopped."""


def run(
    session: SparkSession, rows: int, rounds: int, *, limit_s: float, tempo: bool, only: Sequence[str] = ()
) -> Report:
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
        return _measured(contests, ticks, rounds, limit_s)
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
    stop = _stopping(ticks.spark, connection)
    return _Contest(form.name, work, fingerprint.differs, stop, _choice(form.ours(ticks.stream())), apart)


def _stopping(session: SparkSession, connection: duckdb.DuckDBPyConnection) -> Callable[[], object]:
    return lambda: (session.sparkContext.cancelAllJobs(), connection.interrupt())


def _without_ansi(session: SparkSession, work: Callable[[], Any]) -> Callable[[], Any]:
    """tempo's range statistics rely on casts that fail by ANSI's rules, Spark's default."""

    def run() -> Any:
        with conf(session, {"spark.sql.ansi.enabled": "false"}):
            return work()

    return run


def _quantiles(ticks: Ticks, connection: duckdb.DuckDBPyConnection) -> _Contest:
    work, ranks = quantile_forms.work(ticks, connection), quantile_forms.Ranks(ticks)
    stop = _stopping(ticks.spark, connection)
    return _Contest("quantiles, 50 columns", work, ranks.differs, stop, _choice(quantile_forms.stream(ticks)))


def _choice(stream: Stream) -> str:
    """What the plan chooses; a plan of two operators may run one so and one so."""
    stages = stream.explain()
    if "Spark's own form of it" not in stages:
        return "blocks"
    return "both" if "exchange" in stages else "Spark"


def _measured(contests: list[_Contest], ticks: Ticks, rounds: int, limit_s: float) -> Report:
    ratios = [f"{who} {kind} x" for who in _PEERS for kind in ("wall", "CPU")]
    report = Report(
        f"Operators over {ticks.rows:,} trades, one symbol with {100 * ticks.hot:g}%: seconds by blocks, and how many times that the others take "
        f"({rounds} rounds in turns, answers equal)",
        ("", "wall s", "CPU s", *ratios, "chosen"),
        full_size=ticks.rows >= 1_000_000,
    )
    found: dict[str, Measured] = {}
    report.begin([contest.name for contest in contests])
    ticks.spark.range(1_000).mapInArrow(lambda batches: batches, "id long").count()  # a session starts its workers once
    for contest in contests:
        samples = found[contest.name] = _checked(contest, limit_s)
        if rounds > 1:
            stopped = contest.work.keys() - samples.runs.keys()
            samples = found[contest.name] = _in_turns(contest, rounds, limit_s, stopped)
        report.add(_line(contest, samples, limit_s))
        if (told := _regret(contest, samples)) is not None:
            report.notes.append(told)
        report.notes += contest.apart.values()
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


def _checked(contest: _Contest, limit_s: float) -> Measured:
    """Everyone once: answers are equal, and what starts with a first run has started. If there is one round only, this is it."""
    samples = Measured()
    wanted: Any = None
    for who in contest.work:
        try:
            found, sample = _timed(contest, who, "checked", limit_s)
        except _TooLong:
            continue
        samples.add(who, sample)
        wanted = found if who == "ours" else wanted
        other = None if who in contest.apart else contest.differs(wanted, found)
        assert other is None, f"{contest.name}: {who} has another answer: {other}"
    return samples


def _in_turns(contest: _Contest, rounds: int, limit_s: float, stopped: set[str]) -> Measured:
    samples = Measured()
    for number, who in interleaved(list(contest.work), rounds):
        if who in stopped:
            continue
        try:
            samples.add(who, _timed(contest, who, f"round {number + 1} of {rounds}", limit_s)[1])
        except _TooLong:
            stopped.add(who)
            samples.runs.pop(who, None)
    return samples


def _timed(contest: _Contest, who: str, when: str, limit_s: float) -> tuple[Any, Sample]:
    print(f"{contest.name}: {who}, {when}", file=sys.stderr, flush=True)
    if who == "ours":  # all others are told in its seconds
        return timed(contest.work[who], children=True)
    with _within(limit_s, contest.stop):
        return timed(contest.work[who], children=True)


@contextmanager
def _within(limit_s: float, stop: Callable[[], object]) -> Iterator[None]:
    """Stop what takes longer. polars cannot be stopped: it is let finish."""
    over = threading.Event()

    def stopping() -> None:
        over.set()
        stop()

    timer = threading.Timer(limit_s, stopping)
    timer.start()
    try:
        yield
    except Exception as error:
        if over.is_set():
            raise _TooLong from error
        raise
    finally:
        timer.cancel()
    if over.is_set():
        raise _TooLong


def _line(contest: _Contest, samples: Measured, limit_s: float) -> tuple[str, ...]:
    wall, cpu = samples.wall("ours"), samples.cpu("ours")
    cells = [contest.name, f"{wall:.2f}", f"{cpu:.2f}"]
    for who in _PEERS:
        if who in samples.runs:
            cells += [f"{samples.wall(who) / wall:.2f}", f"{samples.cpu(who) / cpu:.2f}"]
        else:
            cells += [f"over {limit_s:g} s" if who in contest.work else "-", "-"]
    return (*cells, contest.auto)


def _regret(contest: _Contest, samples: Measured) -> str | None:
    """Where the plan chooses the form that took longer, by a tenth at least."""
    if contest.auto == "both" or "Spark" not in samples.runs:
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
