"""Select: some columns of the rows that meet a condition, as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headwater.lake import find
from headwater.lake.actions import AddFile
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot
from headwater.sql import expressions
from headwater.sql.fragment import Fragment

__all__ = ["select"]


def select(
    base: Snapshot,
    columns: Sequence[str] | None = None,
    where: str | Fragment | None = None,
    *,
    files: Sequence[AddFile] | None = None,
) -> pa.RecordBatchReader:
    """The live rows of a table, or of some of its files; files and row groups that cannot match are not read."""
    names = [base.schema.field(c, base.where).name for c in columns] if columns is not None else base.schema.names
    schema = pa.schema([base.schema.field(c).arrow for c in names])
    loose = pa.schema([f.with_nullable(True) for f in schema])
    wanted = find.condition(base, where)
    if wanted is None:
        return pa.RecordBatchReader.from_batches(loose, scan(base, names, files))
    needed = [n for n in base.schema.names if n in names or any(n == c for _, c in wanted.columns)]
    conjuncts = wanted.conjuncts()

    def matching() -> Iterator[pa.RecordBatch]:
        for batch in scan(base, needed, find.candidate_files(base, conjuncts, files), conjuncts=conjuncts):
            met = pc.fill_null(expressions.evaluate(wanted, pa.Table.from_batches([batch])), False)
            kept = batch.filter(met.combine_chunks() if isinstance(met, pa.ChunkedArray) else met)
            if kept.num_rows:
                yield kept.select(names)

    return pa.RecordBatchReader.from_batches(loose, matching())
