"""What a task does to read its share of a Delta table: apart from `delta`,
so that a worker need not load what reads SQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headwater.lake.actions import AddFile
from headwater.lake.scan import read_file
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct

__all__ = ["DeltaReading", "shaped"]


@dataclass(frozen=True, slots=True)
class DeltaReading:
    """Reads the n-th share of a table's files."""

    snapshot: Snapshot
    shares: tuple[str, ...]
    names: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...]
    schema: pa.Schema
    coded: tuple[str, ...] = ()

    def __call__(self, number: int) -> Iterator[pa.Table]:
        for action, within in json.loads(self.shares[number]):
            file, span = AddFile.from_json(action), None if within is None else (within[0], within[1])
            batches = read_file(
                self.snapshot, file, self.names, conjuncts=self.conjuncts, within=span, coded=self.coded
            )
            for batch in batches:
                yield shaped(batch, self.schema)


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """A batch with exactly these columns and types; one that it lacks is null."""
    arrays = []
    for f in schema:
        at = batch.schema.get_field_index(f.name)
        column = pa.nulls(batch.num_rows, f.type) if at < 0 else batch.column(at)
        arrays.append(column if column.type == f.type else column.cast(f.type))
    return pa.Table.from_arrays(arrays, schema=schema)
