"""The table of the operators' benchmark: trades of a thousand symbols, one of which has a fifth of them, and a wide table of doubles.

A symbol never trades twice at one time, so that there is one right answer for every engine, also for those that know no tiebreak. However many
rows there are, a symbol trades every few seconds; only the day gets longer.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession

import headwater as hw
from headwater.timeseries.stream import Stream

__all__ = ["WIDE", "Ticks"]

_SYMBOLS = 1_000
_ROWS_PER_HOUR = 1_000_000
_PIECES = 8
_START_US = 1_699_920_000_000_000
WIDE = tuple(f"v{i:02d}" for i in range(50))


@dataclass
class Ticks:
    """The lake of the trades, on a session."""

    spark: SparkSession
    rows: int
    hot: float = 0.2
    lake: hw.Lake = field(init=False)

    def __post_init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-bench-ticks-")
        self.lake = hw.connect(self._folder.name, spark=self.spark)
        random = np.random.default_rng(11)
        names = np.array([f"SYM{i:04d}" for i in range(_SYMBOLS)])
        span_ms = max(120_000, self.rows * 3_600_000 // _ROWS_PER_HOUR)
        for piece in range(_PIECES):
            first, end = self.rows * piece // _PIECES, self.rows * (piece + 1) // _PIECES
            count = end - first
            symbols = random.integers(0, _SYMBOLS, count)
            symbols[random.random(count) < self.hot] = 0
            # Each piece has milliseconds of its own, so that a time is unique over all pieces.
            times = _START_US + (random.integers(0, span_ms // _PIECES, count) * _PIECES + piece) * 1_000
            frame = pl.DataFrame(
                {
                    "symbol": names[symbols],
                    "ts": pl.Series(times).cast(pl.Datetime("us", "UTC")),
                    "tid": np.arange(first, end, dtype=np.int64),
                    "price": np.round(100 + random.normal(0, 1, count), 2),
                    "size": random.integers(1, 500, count),
                }
            )
            self.lake.write(
                "ticks", frame.unique(subset=["symbol", "ts"], keep="first", maintain_order=True).to_arrow()
            )
            wide = count // 10 or 1
            self.lake.write("wide", pa.table({name: random.normal(0, 1, wide) for name in WIDE}))

    def stream(self) -> Stream:
        """The trades, for us."""
        return self.lake.stream("ticks", time="ts", by="symbol")

    def paths(self, name: str) -> list[str]:
        """The files of a table, for engines that read Parquet."""
        now = self.lake.table(name).snapshot
        return [str(now.storage.local_path(path)) for path in now.files]

    def close(self) -> None:
        self._folder.cleanup()
