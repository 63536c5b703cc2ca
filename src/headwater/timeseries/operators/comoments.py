"""Gramian, covariance and correlation of some columns, in one pass: a matrix, with a row and a column for each of them.

A row counts for a pair of columns if both have a value, as in Spark's ``covar_samp``, ``covar_pop`` and ``corr``: null
where there are not enough rows, and NaN with an infinite value or NaN among the rows. A correlation with a column that
has one value only is NaN, where Spark's ANSI mode divides by zero and stops: one such column among many should not cost
the others their answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.timeseries.comoments import COMOMENTS_SCHEMA, Comoments, matrix_blocks
from headwater.timeseries.node import Gathered, Node, StreamKernel

__all__ = ["Products"]


@dataclass(frozen=True)
class Products(Gathered):
    """The matrix of a kind: ``gramian``, ``covariance`` or ``correlation``.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> run_here(Products(Values(pa.table({"a": [1.0, 2.0], "b": [3, 5]})), ("a", "b"), "covariance", 1)).to_pylist()
    [{'column': 'a', 'a': 0.5, 'b': 1.0}, {'column': 'b', 'a': 1.0, 'b': 2.0}]
    """

    input: Node
    columns: tuple[str, ...]
    kind: str
    ddof: int = 1

    def __post_init__(self) -> None:
        t = pa.types
        known = self.input.schema
        for name in self.columns:
            kind = known.field(name).type
            if not (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)):
                raise UnsupportedError.column_type(name, str(kind), "products are of numbers; name the columns")

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field("column", pa.string()), *(pa.field(n, pa.float64()) for n in self.columns)])

    @property
    def partial_schema(self) -> pa.Schema:
        return COMOMENTS_SCHEMA

    def line(self) -> str:
        return f"{self.kind} of {len(self.columns):,} columns"

    def kernels(self) -> tuple[StreamKernel, StreamKernel]:
        return _Partial(self.columns, self.kind != "gramian"), _Finish(self.schema, self.kind, self.ddof)


@dataclass(frozen=True, slots=True)
class _Partial:
    columns: tuple[str, ...]
    centred: bool

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        found = Comoments.of(len(self.columns), centred=self.centred)
        for table in tables:
            for values, there in matrix_blocks(table.select(list(self.columns))):
                found.add(values, there)
        yield found.to_arrow()


@dataclass(frozen=True, slots=True)
class _Finish:
    schema: pa.Schema
    kind: str
    ddof: int

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        names = self.schema.names[1:]
        centred = self.kind != "gramian"
        found = Comoments.of(len(names), centred=centred)
        for table in _wholes(tables, len(names)):
            found.merge(Comoments.from_arrow(table, len(names), centred=centred))
        if self.kind == "gramian":
            matrix = found.gramian()
            columns = [pa.array(matrix[:, i]) for i in range(len(names))]
        else:
            matrix, enough = found.covariance(self.ddof) if self.kind == "covariance" else found.correlation()
            columns = [pa.array(matrix[:, i], mask=~enough[:, i]) for i in range(len(names))]
        yield pa.Table.from_arrays([pa.array(names, pa.string()), *columns], schema=self.schema)


def _wholes(tables: Iterator[pa.Table], columns: int) -> Iterator[pa.Table]:
    """One table for each partial result, which has a row a column, however it was cut on its way."""
    held = COMOMENTS_SCHEMA.empty_table()
    for table in tables:
        held = pa.concat_tables([held, table])
        while held.num_rows >= columns:
            yield held.slice(0, columns)
            held = held.slice(columns)
    assert not held.num_rows, held.num_rows
