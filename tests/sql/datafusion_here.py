"""Queries on DataFusion through the engine itself, over tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.base.schema import spark_type
from headwater.query.engines.datafusion import DataFusionEngine
from headwater.sql.nodes import Refused
from headwater.sql.plan import Scan

from .oracle import comparable, plan_of

Answer = tuple[list[str], list[str], list[tuple[object, ...]]]


@dataclass
class Memory:
    """A table as the source of a scan."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches()

    def describe(self) -> str:
        return "rows in memory"


def answer(text: str, tables: Mapping[str, pa.Table], parameters: Any = None) -> pa.Table:
    """The rows that DataFusion gives; a refusal is the error that users see."""
    plan = plan_of(text, tables, parameters)
    sources = {s: Memory(tables[s.name.lower()]) for s in plan.walk() if isinstance(s, Scan)}
    try:
        running = DataFusionEngine().run(plan, sources, text)
    except Refused as refused:
        raise ExpressionError.refused(text, refused.what, refused.hint) from None
    try:
        return running.reader.read_all()
    finally:
        running.close()


def run_datafusion(text: str, tables: Mapping[str, pa.Table]) -> Answer:
    """Names, types and rows, as the oracle compares them."""
    rows = answer(text, tables)
    types = ["void" if pa.types.is_null(f.type) else spark_type(f.type).replace("`", "") for f in rows.schema]
    return rows.schema.names, types, list(zip(*map(_values, rows.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [comparable(v) for v in column.to_pylist()]
