"""The same operator as each engine says it best: Headwater, Spark, polars and DuckDB.

Spark's forms are its own windows and window functions where it has them. Where it has none, they are what its users write: gaps are filled
by exploding a sequence up to the next value, and an exponential average, which is a recursion, is a Python function of each series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

import headwater as hw
from headwater.timeseries.stream import Stream

__all__ = ["ALPHA", "FORMS", "Form"]

ALPHA = 0.2
_SECOND = 1_000_000


@dataclass(frozen=True)
class Form:
    """One operator: the columns of its answer that are compared, and how each says it."""

    name: str
    time: str
    values: tuple[str, ...]
    ours: Callable[[Stream], Stream]
    spark: Callable[[DataFrame], DataFrame]
    polars: Callable[[pl.LazyFrame], pl.LazyFrame]
    duckdb: str | None
    """Over `ticks`, whose time is there as `us` too; it gives a time as `us`."""


_ROW = ("tid", "price", "size")
_STATS = {"n": "count(*)", "volume": "sum(size)", "high": "max(price)", "mean": "avg(price)"}
_STATS_SQL = ", ".join(f"{text} AS {name}" for name, text in _STATS.items())
_NEAR = {"volume": "sum(size)", "high": "max(price)", "mean": "avg(price)"}
_BARS = ("open", "high", "low", "close", "count", "volume", "vwap")


def _spark_stats(rows: DataFrame, window: Column) -> DataFrame:
    found = rows.groupBy("symbol", window.alias("w")).agg(*[sf.expr(t).alias(n) for n, t in _STATS.items()])
    return found.select("symbol", sf.col("w.start").alias("window_start"), *_STATS)


def _polars_stats() -> dict[str, pl.Expr]:
    price, size = pl.col("price"), pl.col("size")
    return {"n": pl.len(), "volume": size.sum(), "high": price.max(), "mean": price.mean()}


def _polars_hopping(rows: pl.LazyFrame) -> pl.LazyFrame:
    last = pl.col("ts").dt.truncate("15s")
    starts = pl.concat_list(last - pl.duration(seconds=15 * i) for i in range(4))
    return (
        rows.with_columns(window_start=starts)
        .explode("window_start")
        .group_by("symbol", "window_start")
        .agg(**_polars_stats())
    )


def _spark_over(rows: DataFrame, frame: str) -> DataFrame:
    over = [f"{text} OVER (PARTITION BY symbol ORDER BY {frame}) AS {name}" for name, text in _NEAR.items()]
    return rows.selectExpr("*", *over)


def _duckdb_over(frame: str) -> str:
    over = ", ".join(f"{text} OVER w AS {name}" for name, text in _NEAR.items())
    return f"SELECT *, {over} FROM ticks WINDOW w AS (PARTITION BY symbol ORDER BY us {frame})"


def _polars_sliding(rows: pl.LazyFrame) -> pl.LazyFrame:
    price, size = pl.col("price"), pl.col("size")
    found = {
        "volume": size.rolling_sum_by("ts", "10s", closed="both"),
        "high": price.rolling_max_by("ts", "10s", closed="both"),
        "mean": price.rolling_mean_by("ts", "10s", closed="both"),
    }
    return rows.sort("symbol", "ts").with_columns(**{name: e.over("symbol") for name, e in found.items()})


def _polars_rolling(rows: pl.LazyFrame) -> pl.LazyFrame:
    price, size = pl.col("price"), pl.col("size")
    found = {
        "volume": size.rolling_sum(100, min_samples=1),
        "high": price.rolling_max(100, min_samples=1),
        "mean": price.rolling_mean(100, min_samples=1),
    }
    return rows.sort("symbol", "ts").with_columns(**{name: e.over("symbol") for name, e in found.items()})


def _polars_session(rows: pl.LazyFrame) -> pl.LazyFrame:
    begins = (pl.col("ts").diff() > pl.duration(seconds=30)) | (pl.col("symbol") != pl.col("symbol").shift())
    numbered = rows.sort("symbol", "ts").with_columns(session=begins.fill_null(value=True).cum_sum())
    made = _polars_stats() | {"symbol": pl.col("symbol").first(), "window_start": pl.col("ts").first()}
    return numbered.group_by("session").agg(**made)


_DUCKDB_SESSION = f"""
SELECT symbol, min(us) AS us, {_STATS_SQL} FROM (
  SELECT *, sum(begins) OVER (PARTITION BY symbol ORDER BY us) AS session FROM (
    SELECT *, CASE WHEN us - lag(us) OVER (PARTITION BY symbol ORDER BY us) > 30000000 THEN 1 ELSE 0 END AS begins FROM ticks))
GROUP BY symbol, session"""


def _spark_interpolated(rows: DataFrame) -> DataFrame:
    means = rows.groupBy("symbol", sf.window("ts", "1 second").alias("w")).agg(sf.avg("price").alias("v"))
    series = Window.partitionBy("symbol").orderBy("us")
    known = means.select("symbol", sf.unix_micros("w.start").alias("us"), "v")
    pairs = known.withColumns({"u2": sf.lead("us").over(series), "v2": sf.lead("v").over(series)})
    steps = sf.expr(f"explode(sequence(us, coalesce(u2 - {_SECOND}, us), {_SECOND}L))")
    filled = pairs.withColumn("at", steps)
    value = "CASE WHEN at = us THEN v ELSE v + (v2 - v) * ((at - us) / (u2 - us)) END AS price"
    return filled.selectExpr("symbol", "timestamp_micros(at) AS ts", value)


def _polars_interpolated(rows: pl.LazyFrame) -> pl.LazyFrame:
    at = pl.col("ts").dt.truncate("1s").dt.epoch("us").alias("us")
    means = rows.group_by("symbol", at).agg(v=pl.col("price").mean()).sort("symbol", "us")
    us, v, u2, v2, now = (pl.col(n) for n in ("us", "v", "u2", "v2", "at"))
    pairs = means.with_columns(u2=us.shift(-1).over("symbol"), v2=v.shift(-1).over("symbol"))
    steps = pairs.with_columns(at=pl.int_ranges(us, u2.fill_null(us + 1), _SECOND)).explode("at")
    value = pl.when(now == us).then(v).otherwise(v + (v2 - v) * ((now - us) / (u2 - us)))
    return steps.select("symbol", ts=now.cast(pl.Datetime("us", "UTC")), price=value)


_DUCKDB_INTERPOLATED = f"""
SELECT symbol, t AS us, CASE WHEN t = u THEN v ELSE v + (v2 - v) * ((t - u) / (u2 - u)) END AS price FROM (
  SELECT *, unnest(range(u, coalesce(u2, u + 1), {_SECOND})) AS t FROM (
    SELECT symbol, u, v, lead(u) OVER s AS u2, lead(v) OVER s AS v2 FROM (
      SELECT symbol, us // {_SECOND} * {_SECOND} AS u, avg(price) AS v FROM ticks GROUP BY ALL)
    WINDOW s AS (PARTITION BY symbol ORDER BY u)))"""


def _spark_ema(rows: DataFrame) -> DataFrame:
    from pyspark.sql.types import DoubleType, StructType

    def averaged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        series = pa.Table.from_batches(list(batches)).sort_by("ts")
        mean = pl.Series(series["price"]).ewm_mean(alpha=ALPHA, adjust=False)
        yield from series.append_column("price_ema", mean.to_arrow()).to_batches()

    schema = StructType([*rows.schema.fields]).add("price_ema", DoubleType())
    return rows.groupBy("symbol").applyInArrow(averaged, schema)


def _polars_ema(rows: pl.LazyFrame) -> pl.LazyFrame:
    mean = pl.col("price").ewm_mean(alpha=ALPHA, adjust=False).over("symbol")
    return rows.sort("symbol", "ts").with_columns(price_ema=mean)


def _spark_shift(rows: DataFrame) -> DataFrame:
    return rows.withColumn("price_lag_1", sf.lag("price").over(Window.partitionBy("symbol").orderBy("ts")))


def _polars_shift(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.sort("symbol", "ts").with_columns(price_lag_1=pl.col("price").shift().over("symbol"))


def _spark_bars(rows: DataFrame) -> DataFrame:
    made = {
        "open": "min_by(price, ts)",
        "high": "max(price)",
        "low": "min(price)",
        "close": "max_by(price, ts)",
        "count": "count(price)",
        "volume": "sum(size)",
        "vwap": "sum(price * size) / sum(size)",
    }
    minutes = rows.groupBy("symbol", sf.window("ts", "1 minute").alias("w"))
    found = minutes.agg(*[sf.expr(text).alias(name) for name, text in made.items()])
    return found.select("symbol", sf.col("w.start").alias("ts"), *made)


def _polars_bars(rows: pl.LazyFrame) -> pl.LazyFrame:
    price, size = pl.col("price"), pl.col("size")
    made = {
        "open": price.first(),
        "high": price.max(),
        "low": price.min(),
        "close": price.last(),
        "count": price.count(),
    }
    made |= {"volume": size.sum(), "vwap": (price * size).sum() / size.sum()}
    minutes = rows.sort("ts").group_by("symbol", pl.col("ts").dt.truncate("1m").alias("minute")).agg(**made)
    return minutes.rename({"minute": "ts"})


_DUCKDB_BARS = """
SELECT symbol, us // 60000000 * 60000000 AS us, arg_min(price, ticks.us) AS open, max(price) AS high, min(price) AS low,
  arg_max(price, ticks.us) AS close, count(price) AS count, sum(size) AS volume, sum(price * size) / sum(size) AS vwap
FROM ticks GROUP BY symbol, ticks.us // 60000000"""


def _spark_vwap(rows: DataFrame) -> DataFrame:
    minutes = rows.groupBy("symbol", sf.window("ts", "1 minute").alias("w"))
    sums = minutes.agg(sf.expr("sum(price * size)").alias("value"), sf.sum("size").alias("volume"))
    return sums.selectExpr("symbol", "w.start AS ts", "value / volume AS vwap", "volume", "value")


def _polars_vwap(rows: pl.LazyFrame) -> pl.LazyFrame:
    value, volume = (pl.col("price") * pl.col("size")).sum(), pl.col("size").sum()
    minutes = rows.group_by("symbol", pl.col("ts").dt.truncate("1m").alias("minute")).agg(value=value, volume=volume)
    return minutes.rename({"minute": "ts"}).with_columns(vwap=pl.col("value") / pl.col("volume"))


FORMS = (
    Form(
        "tumbling 1m",
        "window_start",
        tuple(_STATS),
        lambda s: s.window(hw.Tumbling("1m")).agg(_STATS),
        lambda f: _spark_stats(f, sf.window("ts", "1 minute")),
        lambda p: p.group_by("symbol", pl.col("ts").dt.truncate("1m").alias("window_start")).agg(**_polars_stats()),
        f"SELECT symbol, us // 60000000 * 60000000 AS us, {_STATS_SQL} FROM ticks GROUP BY symbol, ticks.us // 60000000",
    ),
    Form(
        "hopping 1m every 15s",
        "window_start",
        tuple(_STATS),
        lambda s: s.window(hw.Hopping("1m", "15s")).agg(_STATS),
        lambda f: _spark_stats(f, sf.window("ts", "1 minute", "15 seconds")),
        _polars_hopping,
        f"SELECT symbol, (us // 15000000 - i) * 15000000 AS us, {_STATS_SQL} FROM ticks, range(4) r(i) GROUP BY symbol, ticks.us // 15000000 - i",
    ),
    Form(
        "sliding 10s",
        "ts",
        (*_ROW, *_NEAR),
        lambda s: s.window(hw.Sliding("10s")).agg(_NEAR),
        lambda f: _spark_over(f, "unix_micros(ts) RANGE BETWEEN 10000000 PRECEDING AND CURRENT ROW"),
        _polars_sliding,
        _duckdb_over("RANGE BETWEEN 10000000 PRECEDING AND CURRENT ROW"),
    ),
    Form(
        "rolling 100 rows",
        "ts",
        (*_ROW, *_NEAR),
        lambda s: s.rolling(rows=100, columns=_NEAR),
        lambda f: _spark_over(f, "ts ROWS BETWEEN 99 PRECEDING AND CURRENT ROW"),
        _polars_rolling,
        _duckdb_over("ROWS BETWEEN 99 PRECEDING AND CURRENT ROW"),
    ),
    Form(
        "session 30s",
        "window_start",
        tuple(_STATS),
        lambda s: s.window(hw.Session("30s")).agg(_STATS),
        lambda f: _spark_stats(f, sf.session_window("ts", "30 seconds")),
        _polars_session,
        _DUCKDB_SESSION,
    ),
    Form(
        "resample 1s, linear",
        "ts",
        ("price",),
        lambda s: s.resample("1s", "mean", columns="price", fill="linear"),
        _spark_interpolated,
        _polars_interpolated,
        _DUCKDB_INTERPOLATED,
    ),
    Form("ema", "ts", (*_ROW, "price_ema"), lambda s: s.ema("price", alpha=ALPHA), _spark_ema, _polars_ema, None),
    Form(
        "shift",
        "ts",
        (*_ROW, "price_lag_1"),
        lambda s: s.shift("price"),
        _spark_shift,
        _polars_shift,
        "SELECT *, lag(price) OVER (PARTITION BY symbol ORDER BY us) AS price_lag_1 FROM ticks",
    ),
    Form("bars 1m", "ts", _BARS, lambda s: s.bars("1m", size="size"), _spark_bars, _polars_bars, _DUCKDB_BARS),
    Form(
        "vwap 1m",
        "ts",
        ("vwap", "volume", "value"),
        lambda s: s.vwap("price", "size", every="1m"),
        _spark_vwap,
        _polars_vwap,
        "SELECT symbol, us // 60000000 * 60000000 AS us, sum(price * size) AS value, sum(size) AS volume, value / volume AS vwap "
        "FROM ticks GROUP BY symbol, ticks.us // 60000000",
    ),
)
