"""Aggregates of groups of rows, or of all rows: group(…).agg and agg.

Aggregates are Spark SQL, and so are their values: nulls, overflow, decimals, NaN and -0.0 among the keys. Only sums of
doubles may differ in their last bits, which depend on the order of the rows in every engine. In a task the rows stream
through DuckDB's hash aggregation, so that a group may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.timeseries.aligning import check_keys
from headwater.timeseries.node import Keyed, KeyedKernel, Node, ResultOrder
from headwater.timeseries.querying import quoted
from headwater.timeseries.reading import RowsText, of_groups
from headwater.timeseries.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Aggregated"]


@dataclass(frozen=True)
class Aggregated(Keyed):
    """A row for each group: its keys, and its aggregates.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> trades = Values(pa.table({"s": ["a", "b", "a"], "v": [1, 2, 3]}))
    >>> run_here(Aggregated(trades, ("s",), {"total": "sum(v)"})).sort_by("s").to_pylist()
    [{'s': 'a', 'total': 4}, {'s': 'b', 'total': 2}]
    """

    input: Node
    by: tuple[str, ...]
    columns: Mapping[str, str]
    """Aggregates by the names they get; none at all gives each key once."""

    def __post_init__(self) -> None:
        check_keys(self.input.schema, self.by)

    @property
    def schema(self) -> pa.Schema:
        return self.text.query.schema

    @cached_property
    def text(self) -> RowsText:
        return of_groups(self.by, self.columns, self.input.schema, ", ".join(self.columns.values()) or None)

    @property
    def frame_first(self) -> bool:
        return True

    def line(self) -> str:
        made = ", ".join(f"{text} AS {name}" for name, text in self.columns.items())
        if not made:
            return f"distinct {', '.join(self.by)}"
        return f"group {', '.join(self.by)}: {made}" if self.by else f"agg {made}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.by,)

    def kernel(self) -> KeyedKernel:
        return _Aggregate(self.text)

    def result_order(self) -> ResultOrder:
        return tuple((name, False) for name in self.by)

    def frame(self, *frames: DataFrame) -> DataFrame:
        from pyspark.sql.functions import col, expr

        keys = [col(quoted(name)) for name in self.by]
        made = [expr(text).alias(name) for name, text in self.columns.items()]
        return frames[0].groupBy(*keys).agg(*made) if made else frames[0].select(*keys).distinct()


@dataclass(frozen=True, slots=True)
class _Aggregate:
    text: RowsText

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        yield self.text.stream(rows)
