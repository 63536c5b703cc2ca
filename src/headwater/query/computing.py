"""What derived artefacts need of this room: the rows of a plan, at given versions of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.query.engines.duckdb import DuckDBEngine
from headwater.query.pinned import Pinned
from headwater.sql.nodes import Refused
from headwater.sql.plan import Plan

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake

__all__ = ["computing"]

Compute = Callable[[Plan, Mapping[str, Snapshot | Relation], str], pa.RecordBatchReader]


def computing(lake: DerivingLake) -> Compute:
    """A function that computes plans over a lake by DuckDB; it is given what the names in the plan stand for."""

    def compute(plan: Plan, relations: Mapping[str, Snapshot | Relation], text: str) -> pa.RecordBatchReader:
        pinned = Pinned(lake, relations)
        try:
            running = DuckDBEngine().run(plan, pinned.sources(plan), text)
        except Refused as refused:
            raise ExpressionError.refused(text, refused.what, refused.hint, refused.position) from None

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from running.reader
            finally:
                running.close()

        return pa.RecordBatchReader.from_batches(running.reader.schema, batches())

    return compute
