"""Spark on a table of the lake against Spark on plain Parquet: 20M rows of 5 columns, written and read.

Runs of both alternate in one process and one session, so both meet the same warm JVM and the same noise; medians are
compared. CPU is that of this process, its JVM and all workers. The answers are checked to be equal before a number is
printed::

    python benchmarks/spark_lake.py --rows 20000000 --rounds 5
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import psutil
from pyspark.sql import functions as sf

import headwater as hw
from headwater.lakehouse import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ["id", "customer", "amount", "country", "at"]
Measured = dict[str, list[tuple[float, float]]]


def rows(session: SparkSession, count: int) -> DataFrame:
    ident = sf.col("id")
    return session.range(count).select(
        ident,
        (sf.xxhash64(ident) % 1_000_000).alias("customer"),
        (sf.pmod(sf.xxhash64(ident, sf.lit(1)), sf.lit(100_000)) / 100).alias("amount"),
        sf.element_at(
            sf.array(*[sf.lit(c) for c in ("DE", "FR", "IT", "ES", "PL")]), (ident % 5).cast("int") + 1
        ).alias("country"),
        sf.timestamp_seconds(ident + 1_500_000_000).alias("at"),
    )


def cpu_seconds() -> float:
    """CPU time of this process and everything it started, those that have ended with it."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            continue
    return total


def timed(into: Measured, name: str, work: Callable[[], Any]) -> Any:
    cpu, start = cpu_seconds(), time.perf_counter()
    result = work()
    into.setdefault(name, []).append((time.perf_counter() - start, cpu_seconds() - cpu))
    return result


def facts(frame: DataFrame) -> tuple[Any, ...]:
    """An aggregate over every column, which a reader cannot answer without reading all of them."""
    return tuple(
        frame.agg(
            sf.count("id"),
            sf.sum("id"),
            sf.sum("customer"),
            sf.sum((sf.col("amount") * 100).cast("long")),
            sf.max("country"),
            sf.sum(sf.unix_seconds("at")),
        ).collect()[0]
    )


def full(source: Callable[[], DataFrame]) -> tuple[Any, ...]:
    return facts(source())


def one_column(source: Callable[[], DataFrame]) -> int:
    return int(source().agg(sf.sum("customer")).collect()[0][0])


def run(session: SparkSession, lake: Lake, folder: str, count: int, rounds: int) -> tuple[Measured, Measured]:
    frame = rows(session, count)
    plain = os.path.join(folder, "plain")
    micros = "spark.sql.parquet.outputTimestampType"
    session.conf.set(micros, "TIMESTAMP_MICROS")  # what the table's files have, so that both write the same bytes
    codec = hw.settings.current().parquet_compression
    measured: tuple[Measured, Measured] = ({}, {})
    for number in range(rounds + 1):
        writes, reads = measured if number else ({}, {})  # the first round warms the JVM up
        shutil.rmtree(plain, ignore_errors=True)
        if "t" in lake:
            lake.drop("t")
        names = ["plain", "lake"] if number % 2 else ["lake", "plain"]
        for name in names:
            if name == "plain":
                timed(writes, name, lambda: frame.write.option("compression", codec).parquet(plain))
            else:
                timed(writes, name, lambda: lake.write("t", frame))
        table = lake.table("t")
        sources: dict[str, Callable[[], DataFrame]] = {
            "plain": partial(session.read.parquet, plain),
            "lake": table.spark,
        }
        answers = {}
        for name in names:
            answers[name] = timed(reads, f"{name} full", partial(full, sources[name]))
            answers[f"{name} one"] = timed(reads, f"{name} one column", partial(one_column, sources[name]))
        assert answers["plain"] == answers["lake"] and answers["plain one"] == answers["lake one"], answers
        assert answers["plain"][0] == count == table.count()
    # With rows deleted in every file, to see what a deletion vector costs.
    table.delete("id % 100 = 7")
    for _ in range(rounds):
        left = timed(measured[1], "lake full, 1% deleted", lambda: facts(table.spark()))
        timed(measured[1], "plain full, again", lambda: facts(session.read.parquet(plain)))
    assert left[0] == count - len(range(7, count, 100)), left
    session.conf.unset(micros)
    return measured


def report(title: str, measured: Measured, pairs: list[tuple[str, str]]) -> None:
    head = ("wall s", "cpu s", "wall ratio", "best wall", "cpu ratio")
    print(f"\n{title:<26}" + "".join(f"{h:>12}" for h in head))
    for name, peer in pairs:
        figures = {}
        for which in (peer, name):
            wall, cpu = zip(*measured[which], strict=True)
            figures[which] = (statistics.median(wall), statistics.median(cpu), min(wall))
        for which in (peer, name):
            wall, cpu, best = figures[which]
            ratios = [wall / figures[peer][0], best / figures[peer][2], cpu / figures[peer][1]]
            print(f"{which:<26}" + "".join(f"{v:>12.2f}" for v in (wall, cpu, *ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where to write; a temporary folder if not given")
    options = parser.parse_args()
    session = hw.spark(config={"spark.driver.memory": "4g"})
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lake = hw.connect(os.path.join(folder, "lake"), spark=session)
        writes, reads = run(session, lake, folder, options.rows, options.rounds)
    load = os.getloadavg()
    print(f"{options.rows:,} rows x {len(COLUMNS)} columns, {options.rounds} rounds, medians; load {load[0]:.1f}")
    report("write", writes, [("lake", "plain")])
    report(
        "read",
        reads,
        [
            ("lake full", "plain full"),
            ("lake one column", "plain one column"),
            ("lake full, 1% deleted", "plain full, again"),
        ],
    )
    session.stop()


if __name__ == "__main__":
    main()
