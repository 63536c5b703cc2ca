"""Thin series to what a picture shows: some points of each, made little where the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headwater.timeseries.aligning import check_keys
from headwater.timeseries.node import Gathered, Node, StreamKernel
from headwater.timeseries.thinning import Thinning, thinned_schema

__all__ = ["Thinned"]


@dataclass(frozen=True)
class Thinned(Gathered):
    """Points of the first series, and of one more (see `headwater.timeseries.thinning`).

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"s": ["b", "a", "a"], "t": [1, 2, 1], "v": [1.0, None, 3.0]}))
    >>> found = run_here(Thinned(rows, "t", ("s",), ("v",), rows=10, series=1))
    >>> found.select(["s", "__hw_time", "__hw_value"]).to_pylist()[0]
    {'s': 'a', '__hw_time': 1, '__hw_value': 3.0}
    """

    input: Node
    time: str
    by: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int
    series: int

    def __post_init__(self) -> None:
        check_keys(self.input.schema, self.by)

    @property
    def schema(self) -> pa.Schema:
        return thinned_schema(self.input.schema, self.by)

    @property
    def partial_schema(self) -> pa.Schema:
        return self.schema

    def line(self) -> str:
        return f"thin {', '.join(self.columns)} to {self.rows:,} points of {self.series} series"

    def time_columns(self) -> tuple[str | None, ...]:
        return (self.time,)

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        return (frozenset((self.time, *self.by, *self.columns)),)

    def kernels(self) -> tuple[StreamKernel, StreamKernel]:
        empty = (self.schema, self.by, self.rows, self.series)
        return _Partial(*empty, self.time, self.columns), _Finish(*empty)


@dataclass(frozen=True, slots=True)
class _Finish:
    schema: pa.Schema
    by: tuple[str, ...]
    rows: int
    series: int

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        thin = Thinning(self.schema, self.by, rows=self.rows, series=self.series)
        for table in tables:
            thin.merge(table)
        yield thin.points()


@dataclass(frozen=True, slots=True)
class _Partial:
    schema: pa.Schema
    by: tuple[str, ...]
    rows: int
    series: int
    time: str
    columns: tuple[str, ...]

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        thin = Thinning(self.schema, self.by, rows=self.rows, series=self.series)
        for table in tables:
            thin.add(table, self.time, self.columns)
        yield thin.points()
