"""A few numbers that stand for an answer of many rows, in three dialects, so that answers can be compared without being brought together.

For each column of values: how many there are, their sum, and their sum weighed by the row's symbol and time, so that a value beside the wrong
row is seen. Whole numbers must be equal; sums of doubles, which depend on the order of rows in every engine, to nine digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pyspark.sql import DataFrame

__all__ = ["Numbers", "differs", "of_duckdb", "of_polars", "of_spark"]

Numbers = Mapping[str, Any]
_RELATIVE = 1e-9
_WEIGHT = "CAST(substr(symbol, 4, 4) AS BIGINT) + {micros} % 1009"


def of_spark(frame: DataFrame, time: str, values: Sequence[str]) -> Numbers:
    """Of a frame of Spark's; Spark computes it."""
    weighed = frame.selectExpr(f"{_WEIGHT.format(micros=f'unix_micros({time})')} AS w", *values)
    return _named(values, weighed.selectExpr(*_texts(values)).collect()[0])


def of_duckdb(connection: Any, text: str, values: Sequence[str]) -> Numbers:
    """Of a query for DuckDB, which gives the time as microseconds, as `us`."""
    weighed = f"SELECT {_WEIGHT.format(micros='us')} AS w, {', '.join(values)} FROM ({text})"
    return _named(values, connection.execute(f"SELECT {', '.join(_texts(values))} FROM ({weighed})").fetchone())


def of_polars(frame: pl.LazyFrame, time: str, values: Sequence[str]) -> Numbers:
    """Of a frame of polars'."""
    number = pl.col("symbol").str.slice(3, 4).cast(pl.Int64)
    weighed = frame.with_columns(w=number + pl.col(time).dt.epoch("us") % 1009)
    asked = [pl.len(), pl.col("w").sum()]
    for v in map(pl.col, values):
        asked += [v.count(), v.sum(), (v * pl.col("w")).sum()]
    return _named(values, weighed.select(e.alias(str(i)) for i, e in enumerate(asked)).collect().row(0))


def _texts(values: Sequence[str]) -> list[str]:
    found = ["count(*)", "sum(w)"]
    for name in values:
        found += [f"count({name})", f"sum({name})", f"sum({name} * w)"]
    return found


def _named(values: Sequence[str], found: Sequence[Any]) -> Numbers:
    return dict(zip(_texts(values), found, strict=True))


def differs(wanted: Numbers, found: Numbers) -> str | None:
    """How an answer differs from what is wanted, in the columns that it has, or None."""
    for name, b in found.items():
        a = wanted[name]
        floats = isinstance(a, float) and isinstance(b, float)
        if not (math.isclose(a, b, rel_tol=_RELATIVE) if floats else a == b):
            return f"{name} is {b!r}, not {a!r}"
    return None
