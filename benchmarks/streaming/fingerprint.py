"""A few numbers that stand for an answer of many rows, in three dialects, so that answers can be compared without being brought together.

For each column of values: how many there are, their sum, and their sum weighed by the row's symbol and time, so that a value beside the wrong
row is seen. Whole numbers must be equal; numbers made of sums of doubles, which depend on the order of rows in every engine, to nine digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from pyspark.sql import DataFrame

__all__ = ["Numbers", "differs", "of_duckdb", "of_polars", "of_spark"]

Numbers = tuple[Any, ...]
_RELATIVE = 1e-9
_WEIGHT = "CAST(substr(symbol, 4, 4) AS BIGINT) + {micros} % 1009"


def of_spark(frame: DataFrame, time: str, values: Sequence[str]) -> Numbers:
    """Of a frame of Spark's; Spark computes it."""
    weighed = frame.selectExpr(f"{_WEIGHT.format(micros=f'unix_micros({time})')} AS w", *values)
    return tuple(weighed.selectExpr(*_texts(values)).collect()[0])


def of_duckdb(connection: Any, text: str, values: Sequence[str]) -> Numbers:
    """Of a query for DuckDB, which gives the time as microseconds, as `us`."""
    weighed = f"SELECT {_WEIGHT.format(micros='us')} AS w, {', '.join(values)} FROM ({text})"
    found = connection.execute(f"SELECT {', '.join(_texts(values))} FROM ({weighed})").fetchone()
    return tuple(int(x) if not isinstance(x, float) and x is not None else x for x in found)


def of_polars(frame: pl.LazyFrame, time: str, values: Sequence[str]) -> Numbers:
    """Of a frame of polars'."""
    number = pl.col("symbol").str.slice(3, 4).cast(pl.Int64)
    weighed = frame.with_columns(w=number + pl.col(time).dt.epoch("us") % 1009)
    asked: list[pl.Expr] = [pl.len().alias("n"), pl.col("w").sum().alias("wn")]
    for name in values:
        v = pl.col(name)
        v_or_none = pl.when(v.count() > 0).then(v.sum())
        asked += [v.count().alias(f"{name} c"), v_or_none.alias(f"{name} s"), (v * pl.col("w")).sum().alias(f"{name} w")]
    return weighed.select(*asked).collect().row(0)


def _texts(values: Sequence[str]) -> list[str]:
    found = ["count(*)", "sum(w)"]
    for name in values:
        found += [f"count({name})", f"sum({name})", f"sum({name} * w)"]
    return found


def differs(wanted: Numbers, found: Numbers) -> str | None:
    """How two answers differ, or None."""
    if len(wanted) != len(found):
        return f"{len(found)} numbers, not {len(wanted)}"
    for place, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if isinstance(a, float) or isinstance(b, float):
            if a is None or b is None or not math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=1e-9):
                return f"number {place} is {b!r}, not {a!r}"
        elif a != b:
            return f"number {place} is {b!r}, not {a!r}"
    return None
