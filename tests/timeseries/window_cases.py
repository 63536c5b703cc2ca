"""What windows answer, by plain Python: aggregates of lists of rows, and rows that are compared with them."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.timeseries.series_cases import Row

from headwater.timeseries.node import Ordering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = Sequence[Row]
EPOCH = dt.datetime(1970, 1, 1)


def values(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def _sum(name: str) -> Callable[[Rows], Any]:
    return lambda rows: sum(values(rows, name)) if values(rows, name) else None


def _mean(name: str) -> Callable[[Rows], Any]:
    return lambda rows: math.fsum(values(rows, name)) / len(values(rows, name)) if values(rows, name) else None


def _least(rows: Rows) -> Any:
    found = values(rows, "f")
    real = [v for v in found if not math.isnan(v)]
    return min(real) if real else (math.nan if found else None)


def _most(rows: Rows) -> Any:
    found = values(rows, "f")
    return (math.nan if any(map(math.isnan, found)) else max(found)) if found else None


def _product(rows: Rows) -> Any:
    found = [row["x"] * row["i"] for row in rows if row["x"] is not None and row["i"] is not None]
    return math.fsum(found) / len(rows) if found else None


def _at(name: str, place: int, *, skips: bool = False) -> Callable[[Rows], Any]:
    def found(rows: Rows) -> Any:
        seen = values(rows, name) if skips else [row[name] for row in rows]
        return seen[place] if seen else None

    return found


def _deviation(rows: Rows) -> Any:
    return statistics.stdev(values(rows, "x")) if len(values(rows, "x")) > 1 else None


MEASURES: dict[str, tuple[str, Callable[[Rows], Any]]] = {
    "n": ("count(*)", len),
    "nx": ("count(x)", lambda rows: len(values(rows, "x"))),
    "si": ("sum(i)", _sum("i")),
    "sx": ("sum(x)", lambda rows: math.fsum(values(rows, "x")) if values(rows, "x") else None),
    "mi": ("AVG(`i`)", _mean("i")),
    "mx": ("mean(x)", _mean("x")),
    "lo": ("min(f)", _least),
    "hi": ("max(f)", _most),
    "hi_t": ("max(t)", lambda rows: max(values(rows, "t"), default=None)),
    "sd": ("stddev(x)", _deviation),
    "vp": ("var_pop(x)", lambda rows: statistics.pvariance(values(rows, "x")) if values(rows, "x") else None),
    "dd": ("sum(d)", _sum("d")),
    "txt": ("max(name)", lambda rows: max(values(rows, "name"), default=None)),
    "spread": (
        "max(i) - min(i)",
        lambda rows: max(values(rows, "i")) - min(values(rows, "i")) if values(rows, "i") else None,
    ),
    "w": ("sum(x * i) / count(*)", _product),
    "few": ("count(*) FILTER (WHERE i > 0) + 1", lambda rows: 1 + sum(1 for v in values(rows, "i") if v > 0)),
}
"""Aggregates that do not go by order."""

DISTINCT: dict[str, tuple[str, Callable[[Rows], Any]]] = {
    "kinds": ("count(DISTINCT name)", lambda rows: len(set(values(rows, "name")))),
}
IN_ORDER: dict[str, tuple[str, Callable[[Rows], Any]]] = {
    "fx": ("first(x)", _at("x", 0)),
    "ln": ("last_value(name)", _at("name", -1)),
    "fd": ("first(d, true)", _at("d", 0, skips=True)),
    "lx": ("last(x) IGNORE NULLS", _at("x", -1, skips=True)),
    "all": ("collect_list(i)", lambda rows: values(rows, "i")),
    "turn": (
        "last(i, true) - first(i, true)",
        lambda rows: values(rows, "i")[-1] - values(rows, "i")[0] if values(rows, "i") else None,
    ),
    "pos": ("first(i) FILTER (WHERE i > 0)", lambda rows: next((v for v in values(rows, "i") if v > 0), None)),
}


def texts_of(*cases: dict[str, tuple[str, Callable[[Rows], Any]]]) -> dict[str, str]:
    return {name: text for case in cases for name, (text, _) in case.items()}


def answers_of(rows: Rows, *cases: dict[str, tuple[str, Callable[[Rows], Any]]]) -> Row:
    return {name: found(rows) for case in cases for name, (_, found) in case.items()}


def number(moment: Any) -> int:
    """A moment in the units of its column."""
    if isinstance(moment, dt.datetime):
        return (moment.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    return (moment - EPOCH.date()).days if isinstance(moment, dt.date) else moment


def moment(value: int, kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind):
        return (EPOCH + dt.timedelta(microseconds=value)).replace(tzinfo=dt.UTC if kind.tz else None)
    return EPOCH.date() + dt.timedelta(days=value) if pa.types.is_date(kind) else value


def in_series(table: pa.Table, ordering: Ordering) -> dict[Any, list[Row]]:
    """The rows of each series that have a time, in order."""
    found: dict[Any, list[Row]] = {}
    for row in table.to_pylist():
        if row[ordering.time] is not None:
            found.setdefault(tuple(row[k] for k in ordering.by), []).append(row)
    for rows in found.values():
        rows.sort(key=lambda r: (r[ordering.time], *(r[k] for k in ordering.tiebreak)))
    return found


def assert_close(found: Sequence[Row], expected: Sequence[Row], keys: Sequence[str]) -> None:
    """The same rows; doubles may differ in their last digits."""

    def order(row: Row) -> str:
        return repr([row[k] for k in keys])

    assert len(found) == len(expected)
    for a, b in zip(sorted(found, key=order), sorted(expected, key=order), strict=True):
        assert list(a) == list(b)
        for name in a:
            assert close(a[name], b[name]), (name, a, b)


def close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        return a is not None and b is not None and Decimal(a) == Decimal(b)
    return type(a) is type(b) and bool(a == b)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A Spark frame of a table; times without a zone stay so."""
    kinds = {f.name: "timestamp_ntz" for f in table.schema if f.type == pa.timestamp("us")}
    texts = [f"CAST({name} AS {kinds[name]}) AS {name}" if name in kinds else name for name in table.column_names]
    return spark.createDataFrame(table).selectExpr(*texts)
