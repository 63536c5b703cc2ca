"""Quantiles of fifty columns, approximate to one percent of the ranks where an engine can be.

Approximations are not equal, and need not be: each answer is checked against the sorted values, by how far the rank of a value that was given
is from the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import duckdb
import numpy as np
import polars as pl
from streaming.ticks import WIDE, Ticks

from headwater.timeseries.stream import Stream

__all__ = ["ERROR", "Ranks", "stream", "work"]

PROBABILITIES = (0.25, 0.5, 0.75)
ERROR = 0.01

Values = Sequence[Sequence[float]]
"""For each column the quantiles."""


def stream(ticks: Ticks) -> Stream:
    return ticks.lake.stream("wide").quantiles(WIDE, probabilities=PROBABILITIES, error=ERROR)


def work(ticks: Ticks, connection: duckdb.DuckDBPyConnection) -> Mapping[str, Callable[[], Values]]:
    return {
        "ours": partial(_ours, ticks),
        "Spark": partial(_spark, ticks),
        "polars": partial(_polars, ticks),
        "DuckDB": partial(_duckdb, connection),
    }


def _ours(ticks: Ticks) -> Values:
    found = stream(ticks).collect().sort_by("probability")
    return [found[name].to_pylist() for name in WIDE]


def _spark(ticks: Ticks) -> Values:
    found: Any = ticks.lake.table("wide").spark().approxQuantile(list(WIDE), list(PROBABILITIES), ERROR)
    return list(found)


def _polars(ticks: Ticks) -> Values:
    asked = [pl.col(WIDE).quantile(p, interpolation="lower").name.suffix(f" {p}") for p in PROBABILITIES]
    found = pl.scan_parquet(ticks.paths("wide")).select(*asked).collect()
    return [[found[f"{name} {p}"][0] for p in PROBABILITIES] for name in WIDE]


def _duckdb(connection: duckdb.DuckDBPyConnection) -> Values:
    asked = ", ".join(f"quantile_disc({name}, {list(PROBABILITIES)})" for name in WIDE)
    row = connection.execute(f"SELECT {asked} FROM wide").fetchone()
    assert row is not None
    return list(row)


class Ranks:
    """The values, sorted, that say how good an answer is."""

    def __init__(self, ticks: Ticks) -> None:
        rows = pl.read_parquet(ticks.paths("wide"))
        self._sorted = [np.sort(rows[name].to_numpy()) for name in WIDE]

    def differs(self, _: Values, found: Values) -> str | None:
        """Which value is too far off, or None."""
        for name, values, given in zip(WIDE, self._sorted, found, strict=True):
            for p, value in zip(PROBABILITIES, given, strict=True):
                low, high = np.searchsorted(values, [value, np.nextafter(value, np.inf)])
                wanted, room = p * len(values), ERROR * len(values) + 1
                if not (low - room <= wanted <= high + room and high > low):
                    return f"{name}, {p:g}: {value!r} has rank {low} of {len(values)}"
        return None
