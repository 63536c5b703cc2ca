"""Training sets: labels joined with the features that were known for them, in bounded memory, against plain Spark SQL.

A table of features gets its rows in several commits, some of them corrected by later ones; each label asks for the latest row of its
card up to its own time, as the lake showed it at some moment of that history. First at full size, by ``lake.training_set`` on Spark
into a table: how long, and how much memory the largest Python task, the driver and the JVM took. Then at a smaller size beside what
one writes in Spark SQL: an interval join of the labels with the versions of the rows, whose ``since`` and ``until`` it is given for
nothing, and the latest of what is left. Both give the same rows, which is checked before a number is printed. The join by event time
alone is measured as well. ``make bench ARGS="training"`` runs it, or::

    python benchmarks/training.py --labels 5000000 --features 50000000
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from queries.measuring import Measured, Report, difference, interleaved, timed

import headwater as hw

SPAN_S = 30 * 24 * 3600
START_US = 1_767_225_600_000_000
FOREVER = 1 << 62
PER_CARD = 100
BATCH = 1_000_000
ASKED = {"time": "ts", "by": "card", "known_at": "known"}
SQL = """
SELECT l.id, max_by(f.score, f.ts) AS score FROM labels AS l LEFT JOIN versions AS f
  ON l.card = f.card AND f.ts <= l.ts AND f.since <= unix_micros(l.known) AND unix_micros(l.known) < f.until
GROUP BY l.id
"""


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=10_000_000)
    parser.add_argument("--beside", type=int, default=20, help="the size beside Spark SQL is so many times smaller")
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--driver-memory", default="2g", help="of the JVM")
    parser.add_argument("--folder", type=Path, help="where the lakes are made; a folder for temporary files without it")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    return parser.parse_args(arguments)


def times_of(rng: np.random.Generator, numbers: Any) -> Any:
    """Times in the span, no two of them equal within a million rows."""
    return START_US + rng.integers(0, SPAN_S, len(numbers)) * 1_000_000 + numbers % 1_000_000


def as_table(columns: dict[str, Any], *times: str) -> pa.Table:
    found = pa.table(columns)
    for name in times:
        at = found.schema.get_field_index(name)
        found = found.set_column(at, name, found[name].cast(pa.timestamp("us", "UTC")))
    return found


def make(lake: hw.Lake, labels: int, features: int, commits: int, versions: Path | None = None) -> None:
    """The tables ``features`` and ``labels``; ``versions`` gets every row that there was, with since when and until when.

    Every third commit corrects a fiftieth of all rows so far.
    """
    rng = np.random.default_rng(3)
    cards = max(features // PER_CARD, 1)
    table, seen, begin = lake.table("features"), list[Any](), 0
    corrected: list[tuple[int, int]] = []
    for number in range(commits):
        end = features * (number + 1) // commits
        for at in range(begin, end, BATCH):
            ids = np.arange(at, min(at + BATCH, end))
            columns = {"card": rng.integers(0, cards, len(ids)), "ts": times_of(rng, ids)}
            columns["score"] = rng.integers(0, 1_000, len(ids))
            lake.write("features", as_table(columns, "ts"), mode="append")
            if versions is not None:
                seen.append(columns | {"version": np.full(len(ids), table.version)})
            time.sleep(0.005)  # commits of one millisecond are one moment to those who ask
        begin = end
        if number % 3 == 2:
            table.update({"score": "score + 1000"}, where=f"card % 50 = {number}")
            corrected.append((table.version, number))
            time.sleep(0.005)
    made = {e.version: int(e.timestamp.timestamp() * 1000 + 0.5) * 1000 for e in table.history()}
    if versions is not None:
        write_versions(seen, corrected, made, versions)
    moments = np.array(sorted(made.values()))
    for at in range(0, labels, BATCH):
        ids = np.arange(at, min(at + BATCH, labels))
        columns = {"id": ids, "card": rng.integers(0, cards + cards // 10 + 1, len(ids)), "ts": times_of(rng, ids)}
        columns["known"] = rng.choice(moments, len(ids)) + rng.integers(-1_500, 1_500, len(ids))
        lake.write("labels", as_table(columns, "ts", "known"), mode="append")


def write_versions(seen: list[Any], corrected: list[tuple[int, int]], made: dict[int, int], path: Path) -> None:
    """What each row said, from when until when, without asking the lake."""
    every = {name: np.concatenate([one[name] for one in seen]) for name in ("card", "ts", "score", "version")}
    since = np.array([made[v] for v in every["version"].tolist()])
    score, pieces = every["score"], []
    for at, number in corrected:
        hit = (every["version"] < at) & (every["card"] % 50 == number)
        old = {"card": every["card"][hit], "ts": every["ts"][hit], "score": score[hit], "since": since[hit]}
        pieces.append(as_table(old | {"until": np.full(int(hit.sum()), made[at])}, "ts"))
        score, since = np.where(hit, score + 1000, score), np.where(hit, made[at], since)
    last = {"card": every["card"], "ts": every["ts"], "score": score, "since": since}
    pieces.append(as_table(last | {"until": np.full(len(score), FOREVER)}, "ts"))
    pq.write_table(pa.concat_tables(pieces), path)


class Peaks:
    """The most memory that processes held while something ran: the driver, its JVM, and the largest of Python's tasks."""

    def __init__(self) -> None:
        self.bytes = {"driver": 0, "JVM": 0, "task": 0}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        driver = psutil.Process()
        while not self._over.wait(0.1):
            self._see("driver", driver)
            for process in driver.children(recursive=True):
                try:
                    self._see("JVM" if process.name() == "java" else "task", process)
                except psutil.Error:
                    continue

    def _see(self, kind: str, process: psutil.Process) -> None:
        self.bytes[kind] = max(self.bytes[kind], process.memory_info().rss)


def large(lake: hw.Lake, options: argparse.Namespace) -> Report:
    """At full size: seconds and memory, by known time and by event time alone."""
    report = Report(
        f"{options.labels:,} labels, {options.features:,} rows of features in {options.commits} loads, into a table",
        ("", "wall s", "CPU s", "largest task MB", "driver MB", "JVM MB"),
    )
    for name, asked in (("known at", ASKED), ("event time alone", {k: v for k, v in ASKED.items() if k != "known_at"})):
        print(f"{name}: {options.labels:,} labels", file=sys.stderr, flush=True)
        found = lake.training_set("labels", "features", **asked)
        into = f"trained_{len(report.rows)}"
        with Peaks() as peaks:
            _, sample = timed(lambda found=found, into=into: found.write(into), children=True)  # type: ignore[misc]
        rows = lake.table(into).count()
        assert rows == options.labels, f"{name}: {rows} rows"
        megabytes = {kind: used / 1e6 for kind, used in peaks.bytes.items()}
        cells = (f"{megabytes[kind]:,.0f}" for kind in ("task", "driver", "JVM"))
        report.rows.append((name, f"{sample.wall:.1f}", f"{sample.cpu:.1f}", *cells))
        report.figures[name] = {"wall_s": sample.wall, "cpu_s": sample.cpu, "mb": megabytes}
        lake.drop(into)
    return report


def beside(lake: hw.Lake, versions: Path, labels: int, features: int, rounds: int) -> Report:
    """At a smaller size: what Spark SQL takes for the same answer."""
    session = lake.spark

    def plain() -> pa.Table:
        lake.table("labels").spark().createOrReplaceTempView("labels")
        session.read.parquet(str(versions)).createOrReplaceTempView("versions")
        found: pa.Table = session.sql(SQL).toArrow()
        return found

    works = {
        "known at": lambda: lake.training_set("labels", "features", **ASKED).stream().collect(sort=False),
        "Spark SQL": plain,
    }
    answers = {who: work().select(["id", "score"]).sort_by("id") for who, work in works.items()}
    told = difference(answers["known at"], answers["Spark SQL"], exact=True)
    assert told is None, f"Spark SQL has another answer: {told}"
    met = labels - answers["known at"]["score"].null_count
    samples = Measured()
    for number, who in interleaved(list(works), rounds):
        print(f"{who}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        samples.add(who, timed(works[who], children=True)[1])
    report = Report(
        f"{labels:,} labels ({met:,} meet a row), {features:,} rows of features: median of {rounds} rounds, answers equal",
        ("", "wall s", "CPU s", "wall x", "CPU x"),
    )
    for who in works:
        wall, cpu = samples.wall(who), samples.cpu(who)
        ratios = (f"{wall / samples.wall('known at'):.2f}", f"{cpu / samples.cpu('known at'):.2f}")
        report.rows.append((who, f"{wall:.2f}", f"{cpu:.2f}", *ratios))
    report.figures["samples"] = samples.figures()
    report.figures["met"] = met
    return report


def main(arguments: list[str] | None = None) -> None:
    options = options_of(arguments)
    versions = {n: version(n) for n in ("pyspark", "pyarrow", "numpy")}
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions.items()), flush=True)
    folder = Path(tempfile.mkdtemp(prefix="headwater-training-", dir=options.folder))
    session = hw.spark(f"local[{options.cores}]", config={"spark.driver.memory": options.driver_memory})
    try:
        small = (max(options.labels // options.beside, 1), max(options.features // options.beside, 1))
        lake = hw.connect(folder / "small", spark=session)
        make(lake, *small, options.commits, folder / "versions.parquet")
        reports = {"beside": beside(lake, folder / "versions.parquet", *small, options.rounds)}
        print(reports["beside"].text(), flush=True)
        lake = hw.connect(folder / "large", spark=session)
        make(lake, options.labels, options.features, options.commits)
        reports["large"] = large(lake, options)
        print(reports["large"].text(), flush=True)
        if options.json:
            body = {"load": load, "versions": versions} | {name: one.as_dict() for name, one in reports.items()}
            options.json.write_text(json.dumps(body, indent=1, default=str) + "\n")
    finally:
        session.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
