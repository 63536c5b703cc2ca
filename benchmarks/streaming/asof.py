"""The as-of join: to each trade the quote that was known, against Spark's own ways, tempo and polars.

All read the same files of the same tables, and give the same five numbers of the joined rows; those on Spark compute them with Spark, from
a DataFrame of the joined rows. Spark's own form is a union of both sides and the last quote by a window; tempo makes the same of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Self

import polars as pl
import psutil
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from queries.measuring import Measured, Report, interleaved, timed
from streaming.market import Market

__all__ = ["run"]


def run(market: Market, rounds: int, *, full_size: bool, tempo: bool) -> Report:
    """One table: who takes how long for the same answer."""
    work: dict[str, Callable[[], tuple[Any, ...]]] = {
        "headwater": lambda: _numbers(_ours(market).spark()),
        "Spark: union and window": lambda: _numbers(_window(market)),
        "polars, one process": lambda: _polars(market),
    }
    if tempo:
        work["tempo"] = lambda: _numbers(_tempo(market))
    report = Report(
        f"As-of join of {market.trades:,} trades with {market.quotes:,} quotes, one symbol with {100 * market.hot:g}% "
        f"({rounds} rounds in turns, answers equal)",
        ("", "wall s", "CPU s", "wall x ours", "CPU x ours", "largest worker MB"),
        full_size=full_size,
    )
    # A session starts its workers once. They do not know this folder, so what they run has to come with its code.
    market.spark.range(1_000).mapInArrow(lambda batches: batches, "id long").count()
    samples, peaks, answers = Measured(), dict.fromkeys(work, 0), {}
    for _, name in interleaved(list(work), rounds):
        with _Peak() as peak:
            answer, sample = timed(work[name], children=True)
        samples.add(name, sample)
        peaks[name] = max(peaks[name], peak.bytes)
        answers.setdefault(name, answer)
        assert answers[name] == answers["headwater"] if "headwater" in answers else True, answers
    assert len(set(answers.values())) == 1, answers
    for name in work:
        wall, cpu = samples.wall(name), samples.cpu(name)
        ratios = (wall / samples.wall("headwater"), cpu / samples.cpu("headwater"))
        worker = f"{peaks[name] >> 20:,}" if name == "headwater" else ""
        report.rows.append((name, f"{wall:.1f}", f"{cpu:.1f}", *(f"{r:.2f}" for r in ratios), worker))
    report.figures = {
        "samples": samples.figures(),
        "peak_worker_bytes": peaks["headwater"],
        "answer": answers["headwater"],
    }
    for other in ("Spark: union and window", "tempo"):
        if other in work:
            report.target(f"{other} / ours, CPU", samples.cpu(other) / samples.cpu("headwater"), least=3)
            report.target(f"{other} / ours, wall", samples.wall(other) / samples.wall("headwater"), least=3)
    report.target("ours / polars, CPU", samples.cpu("headwater") / samples.cpu("polars, one process"), most=3)
    report.target("ours / polars, wall", samples.wall("headwater") / samples.wall("polars, one process"), most=3)
    report.notes.append("stages: " + _ours(market).explain().replace("\n", " | "))
    return report


def _ours(market: Market) -> Any:
    trades = market.lake.stream("trades", time="ts", by="symbol")
    joined = trades.join_asof(market.lake.stream("quotes", time="ts", by="symbol"))
    # Spark and polars find out by themselves which columns the answer needs; a stream that ends in a frame is told.
    return joined.select("tid", "size", "qid", "bid")


def _numbers(frame: DataFrame) -> tuple[Any, ...]:
    weighed = sf.col("qid") * (sf.col("tid") % 7 + 1)
    asked = (sf.count("*"), sf.count("qid"), sf.sum(weighed), sf.sum("size"), sf.round(sf.sum("bid"), 2))
    return tuple(frame.select(*asked).collect()[0])


def _window(market: Market) -> DataFrame:
    quotes, trades = market.lake.table("quotes").spark(), market.lake.table("trades").spark()
    known = quotes.select("symbol", "ts", sf.lit(0).alias("side"), sf.struct("ts", "qid", "bid", "ask").alias("quote"))
    both = known.unionByName(trades.withColumn("side", sf.lit(1)), allowMissingColumns=True)
    before = Window.partitionBy("symbol").orderBy("ts", "side").rowsBetween(Window.unboundedPreceding, 0)
    joined = both.withColumn("quote", sf.last("quote", ignorenulls=True).over(before)).where("side = 1")
    return joined.select("symbol", "ts", "tid", "price", "size", "quote.qid", "quote.bid", "quote.ask")


def _tempo(market: Market) -> DataFrame:
    from tempo import TSDF

    trades = TSDF(market.lake.table("trades").spark(), ts_col="ts", partition_cols=["symbol"])
    quotes = TSDF(market.lake.table("quotes").spark(), ts_col="ts", partition_cols=["symbol"])
    return trades.asofJoin(quotes, right_prefix="q").df.withColumnsRenamed({"q_qid": "qid", "q_bid": "bid"})


def _polars(market: Market) -> tuple[Any, ...]:
    trades, quotes = (pl.scan_parquet(market.paths(name)).sort("ts") for name in ("trades", "quotes"))
    joined = trades.join_asof(quotes, on="ts", by="symbol", check_sortedness=False)
    weighed = (pl.col("qid") * (pl.col("tid") % 7 + 1)).sum()
    asked = (
        pl.len().alias("n"),
        pl.col("qid").count().alias("c"),
        weighed.alias("w"),
        pl.col("size").sum(),
        pl.col("bid").sum(),
    )
    n, c, w, size, bid = joined.select(*asked).collect().row(0)
    return (n, c, w, size, round(bid, 2))


class _Peak:
    """The largest Python worker, looked at a few times a second."""

    def __enter__(self) -> Self:
        self.bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            for process in psutil.Process().children(recursive=True):
                try:
                    if process.name().startswith("python"):
                        self.bytes = max(self.bytes, process.memory_info().rss)
                except psutil.Error:
                    continue
            time.sleep(0.2)
