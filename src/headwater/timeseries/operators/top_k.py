"""The k first rows by some columns: top_k, of all rows or of each key.

Ties for the last place are decided by the other columns (`ranking`), so that the answer is one, wherever the rows lie.
Spark's own form orders by all of them, which is the same; with columns that have no order, or with very many, the
kernel is the one form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.timeseries.aligning import check_keys, in_pieces
from headwater.timeseries.node import Gathered, Keyed, KeyedKernel, Node, ResultOrder, StreamKernel
from headwater.timeseries.querying import quoted
from headwater.timeseries.ranking import By, first_rows, tiebreaks
from headwater.timeseries.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["TopK", "TopKOfEach"]

_HELD_ROWS = 65_536
_MANY_COLUMNS = 64
_PLACE = "__hw_place"


@dataclass(frozen=True)
class TopK(Gathered):
    """The first k of all rows, in order.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> run_here(TopK(Values(pa.table({"v": [1, 3, None, 2]})), 2, (("v", True),))).to_pylist()
    [{'v': 3}, {'v': 2}]
    """

    input: Node
    k: int
    by: tuple[By, ...]

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def partial_schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def frame_first(self) -> bool:
        return len(self.schema) <= _MANY_COLUMNS

    def line(self) -> str:
        return f"top {self.k:,} by {_shown(self.by)}"

    def kernels(self) -> tuple[StreamKernel, StreamKernel]:
        kernel = _Top(self.k, self.by, self.schema)
        return kernel, kernel

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        if not _all_ordered(self.schema):
            return None
        return frames[0].orderBy(*_order(self.schema, self.by, ())).limit(self.k)


@dataclass(frozen=True)
class TopKOfEach(Keyed):
    """The first k rows of each key.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"s": ["a", "a", "b"], "v": [1, 3, 2]}))
    >>> run_here(TopKOfEach(rows, ("s",), 1, (("v", True),))).to_pylist()
    [{'s': 'a', 'v': 3}, {'s': 'b', 'v': 2}]
    """

    input: Node
    per: tuple[str, ...]
    k: int
    by: tuple[By, ...]

    def __post_init__(self) -> None:
        check_keys(self.input.schema, self.per)

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def frame_first(self) -> bool:
        return len(self.schema) <= _MANY_COLUMNS

    def line(self) -> str:
        return f"top {self.k:,} of each {', '.join(self.per)} by {_shown(self.by)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.per,)

    def kernel(self) -> KeyedKernel:
        return _TopOfEach(self.per, self.k, self.by)

    def result_order(self) -> ResultOrder:
        return (*((name, False) for name in self.per), *self.by)

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        if not _all_ordered(self.schema):
            return None
        from pyspark.sql import Window
        from pyspark.sql.functions import col, row_number

        window = Window.partitionBy(*[col(quoted(n)) for n in self.per]).orderBy(
            *_order(self.schema, self.by, self.per)
        )
        placed = frames[0].withColumn(_PLACE, row_number().over(window))
        return placed.where(col(_PLACE) <= self.k).drop(_PLACE)


@dataclass(frozen=True, slots=True)
class _Top:
    k: int
    by: tuple[By, ...]
    schema: pa.Schema

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        held: list[pa.Table] = []
        rows = 0
        for table in tables:
            held.append(table)
            rows += table.num_rows
            if rows > 2 * self.k + _HELD_ROWS:
                held = [first_rows(pa.concat_tables(held), self.k, self.by)]
                rows = held[0].num_rows
        yield first_rows(pa.concat_tables([self.schema.empty_table(), *held]), self.k, self.by)


@dataclass(frozen=True, slots=True)
class _TopOfEach:
    per: tuple[str, ...]
    k: int
    by: tuple[By, ...]

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        for piece in in_pieces(rows, self.per):
            yield first_rows(piece, self.k, self.by, self.per)


def _shown(by: tuple[By, ...]) -> str:
    return ", ".join(f"{name} DESC" if descends else name for name, descends in by)


def _all_ordered(schema: pa.Schema) -> bool:
    return not any(pa.types.is_nested(f.type) for f in schema)


def _order(schema: pa.Schema, by: tuple[By, ...], keys: tuple[str, ...]) -> list[Column]:
    from pyspark.sql.functions import col

    order = [col(quoted(name)).desc() if descends else col(quoted(name)).asc() for name, descends in by]
    return order + [col(quoted(name)).asc() for name in tiebreaks(schema, [*(n for n, _ in by), *keys])]
