"""A market: quotes and trades of a thousand symbols, one of which has a fifth of everything, in a lake.

Times have milliseconds, so trades fall on quotes' times; quotes are unique by symbol and time, so that there is one right answer for
every engine.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from pyspark.sql import SparkSession

import headwater as hw

__all__ = ["Market"]

_SYMBOLS = 1_000
_START = 1_700_000_000_000_000


@dataclass
class Market:
    """The lake of the market, on a session."""

    spark: SparkSession
    quotes: int
    trades: int
    hot: float = 0.2
    lake: hw.Lake = field(init=False)

    def __post_init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-bench-streams-")
        self.lake = hw.connect(self._folder.name, spark=self.spark)
        random = np.random.default_rng(7)
        names = np.array([f"SYM{i:04d}" for i in range(_SYMBOLS)])
        span = 6 * 3_600 * 1_000 * max(1, self.quotes // 5_000_000)
        pieces = max(8, self.quotes // 2_500_000)
        for name, rows in (("quotes", self.quotes), ("trades", self.trades)):
            for piece in range(pieces):
                count = rows * (piece + 1) // pieces - rows * piece // pieces
                symbols = random.integers(0, _SYMBOLS, count)
                symbols[random.random(count) < self.hot] = 0
                # Each piece has milliseconds of its own, so that a quote's time is unique over all pieces.
                times = _START + (random.integers(0, span // pieces, count) * pieces + piece) * 1_000
                price = np.round(100 + random.normal(0, 1, count), 2)
                frame = pl.DataFrame({"symbol": names[symbols], "ts": times}).with_columns(
                    pl.col("ts").cast(pl.Datetime("us", "UTC"))
                )
                first = rows * piece // pieces
                ids = np.arange(first, first + count, dtype=np.int64)
                if name == "quotes":
                    frame = frame.with_columns(qid=pl.Series(ids), bid=pl.Series(price), ask=pl.Series(price) + 0.02)
                    frame = frame.unique(subset=["symbol", "ts"], keep="last", maintain_order=True)
                else:
                    size = random.integers(1, 500, count)
                    frame = frame.with_columns(tid=pl.Series(ids), price=pl.Series(price), size=pl.Series(size))
                self.lake.write(name, frame.to_arrow())

    def paths(self, name: str) -> list[str]:
        """The files of a table, for engines that read Parquet."""
        now = self.lake.table(name).snapshot
        return [str(now.storage.local_path(path)) for path in now.files]

    def close(self) -> None:
        self._folder.cleanup()
