"""Undone: the rows of a table as they would be, had a change not happened.

To find out what one row has done to a view that ranks, averages or counts, the view is computed once more over a table
from which the change of that row is taken back, and held against what it is. The change is small and the table may be
large, so the table is read as a stream: only rows that are equal to one of the change are looked at more closely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.base import rowkey
from headwater.base.change import ChangeBatch
from headwater.derived.digest import RowHash
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct

__all__ = ["Undone"]


@dataclass(frozen=True)
class Undone:
    """A table at one version, with a change of its rows taken back: a `Relation`."""

    base: Snapshot
    change: ChangeBatch

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self.base.arrow_schema

    def read(self, columns: Sequence[str], conjuncts: Sequence[Conjunct] = ()) -> pa.RecordBatchReader:
        """The rows with these columns; all of them, whatever the conjuncts."""
        del conjuncts
        wanted = pa.schema([self.schema.field(c).with_nullable(True) for c in columns])

        def batches() -> Iterator[pa.RecordBatch]:
            for rows in self._rows():
                yield from rows.select(list(columns)).cast(wanted).to_batches()

        return pa.RecordBatchReader.from_batches(wanted, batches())

    def _rows(self) -> Iterator[pa.Table]:
        names = self.schema.names
        plain = pa.schema([pa.field(f.name, rowkey.plain_type(f.type)) for f in self.schema])
        hashed = RowHash(plain)
        back = _plain(self.change.negate().consolidate().table, plain)
        known = _hashes(hashed, back)
        held = [back]
        for batch in scan(self.base, names):
            rows = _plain(pa.Table.from_batches([batch]).append_column("_weight", pa.repeat(1, batch.num_rows)), plain)
            same = np.isin(_hashes(hashed, rows), known)
            if same.any():
                held.append(rowkey.take_rows(rows, np.flatnonzero(same)))
                rows = rowkey.take_rows(rows, np.flatnonzero(~same))
            yield rows.select(names)
        yield ChangeBatch.from_table(pa.concat_tables(held)).consolidate().inserted()


def _plain(weighted: pa.Table, plain: pa.Schema) -> pa.Table:
    schema = plain.append(pa.field("_weight", pa.int64()))
    columns = [weighted.column(f.name).cast(f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _hashes(hashed: RowHash, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A hash of each row, without its weight."""
    batches = rows.remove_column(rows.num_columns - 1).combine_chunks().to_batches()
    found = [hashed.exact_lanes(batch, hashed.plain_lanes(batch))[:, 1] for batch in batches]
    return np.concatenate(found) if found else np.zeros(0, np.uint64)
