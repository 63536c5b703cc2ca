"""Approximate quantiles of many columns in one pass: quantiles, median.

The partial result of a task is a sketch of all columns (`quantile_sketch`, where the bound of the error is shown). The
answer has a row for each probability, and the columns keep their types: each value is one that occurs. Null and NaN are
left out, as Spark's `approxQuantile` does; a column without values has null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from headwater.timeseries.node import Gathered, Node, StreamKernel
from headwater.timeseries.quantile_sketch import SKETCH_SCHEMA, QuantileSketch
from headwater.timeseries.quantile_words import check_words, from_words, to_words

__all__ = ["PROBABILITY", "Quantiles"]

PROBABILITY = "probability"


@dataclass(frozen=True)
class Quantiles(Gathered):
    """For each probability the quantile of each column.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> run_here(Quantiles(Values(pa.table({"v": [3, None, 1, 2]})), ("v",), (0.5, 1.0), 0.01)).to_pylist()
    [{'probability': 0.5, 'v': 2}, {'probability': 1.0, 'v': 3}]
    """

    input: Node
    columns: tuple[str, ...]
    probabilities: tuple[float, ...]
    error: float

    def __post_init__(self) -> None:
        known = self.input.schema
        for name in self.columns:
            check_words(known.field(name))

    @cached_property
    def schema(self) -> pa.Schema:
        known = self.input.schema
        fields = [pa.field(name, known.field(name).type) for name in self.columns]
        return pa.schema([pa.field(PROBABILITY, pa.float64()), *fields])

    @property
    def partial_schema(self) -> pa.Schema:
        return SKETCH_SCHEMA

    def line(self) -> str:
        return f"quantiles of {len(self.columns):,} columns within {self.error:g}"

    def kernels(self) -> tuple[StreamKernel, StreamKernel]:
        return _Sketch(self.columns, self.error), _Finish(self.schema, self.probabilities, self.error)


@dataclass(frozen=True, slots=True)
class _Sketch:
    columns: tuple[str, ...]
    error: float

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        sketch = QuantileSketch(len(self.columns), self.error)
        for table in tables:
            sketch.add([to_words(table.column(name)) for name in self.columns])
        yield sketch.to_arrow()


@dataclass(frozen=True, slots=True)
class _Finish:
    schema: pa.Schema
    probabilities: tuple[float, ...]
    error: float

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        fields = list(self.schema)[1:]
        sketch = QuantileSketch(len(fields), self.error)
        for table in tables:
            sketch.merge(table)
        columns = [
            pa.nulls(len(self.probabilities), field.type) if words is None else from_words(words, field.type)
            for field, words in zip(fields, sketch.quantiles(self.probabilities), strict=True)
        ]
        yield pa.Table.from_arrays([pa.array(self.probabilities, pa.float64()), *columns], schema=self.schema)
