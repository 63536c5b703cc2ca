"""The operators that tempo has, as its users call them, and the columns of its answers that can be compared.

tempo's EMA is no recursion but a sum over the last 30 rows, which begins at zero: it is another number, and is not compared. Its vwap always
fails, as its answer has no column of the time that it then looks for (0.1.30).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from streaming.forms import ALPHA

__all__ = ["TEMPO", "Other", "series"]


@dataclass(frozen=True)
class Other:
    """tempo's way, the columns that are compared, and why they are not if they are not."""

    frame: Callable[[Any], Any]
    values: tuple[str, ...]
    apart: str | None = None


def series(rows: DataFrame) -> Any:
    from tempo import TSDF

    return TSDF(rows, ts_col="ts", partition_cols=["symbol"])


def _tumbling(t: Any) -> Any:
    found = t.withGroupedStats(metricCols=["price", "size"], freq="1 minute").df
    names = {"ts": "window_start", "count_price": "n", "sum_size": "volume", "max_price": "high", "mean_price": "mean"}
    return found.withColumnsRenamed(names)


def _sliding(t: Any) -> Any:
    # All numbers are summarised if none are named, and with names it fails on a timestamp: what is not wanted has to go before.
    found = series(t.df.select("symbol", "ts", "price", "size")).withRangeStats(rangeBackWindowSecs=10).df
    return found.withColumnsRenamed({"sum_size": "volume", "max_price": "high", "mean_price": "mean"})


def _interpolated(t: Any) -> Any:
    return t.interpolate(freq="1 second", func="mean", method="linear", target_cols=["price"], perform_checks=False).df


def _bars(t: Any) -> Any:
    found = t.calc_bars(freq="1 minute", metricCols=["price"]).df
    return found.withColumnsRenamed({f"{name}_price": name for name in ("open", "high", "low", "close")})


TEMPO: Mapping[str, Other] = {
    "tumbling 1m": Other(_tumbling, ("n", "volume", "high", "mean")),
    "sliding 10s": Other(_sliding, ("price", "size", "volume", "high", "mean")),
    "resample 1s, linear": Other(_interpolated, ("price",)),
    "ema": Other(
        lambda t: t.EMA("price", window=30, exp_factor=ALPHA).df.withColumnRenamed("EMA_price", "price_ema"),
        ("tid", "price", "size", "price_ema"),
        "tempo's ema is cut after 30 rows and begins at zero: timed, and not compared",
    ),
    "bars 1m": Other(_bars, ("open", "high", "low", "close")),
}
