"""Rows of hits: from addresses to the columns that are asked for.

Searching takes microseconds, and taking rows out of Parquet files milliseconds, so columns are always named. Rows come
in the order of the hits. Where the index keeps all the columns that are asked for (hot columns), the table is not read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.lake.scan import POSITION, map_files, read_file
from headwater.search.reader import Hits, Reader
from headwater.search.split_file import HOT
from headwater.search.split_store import forget_corrupt
from headwater.sql import expressions
from headwater.sql.expressions import Expression

__all__ = ["fetch_rows", "meets"]


def fetch_rows(reader: Reader, hits: Hits, columns: Sequence[str]) -> pa.Table:
    """The rows of hits, in their order."""
    base = reader.base
    names = [base.schema.field(c, base.where).name for c in columns]
    schema = pa.schema([base.schema.field(c).arrow.with_nullable(True) for c in names])
    if not len(hits):
        return schema.empty_table()
    if names and set(names) <= set(reader.meant.hot) and hits.segments is not None:
        try:
            return _hot(reader, hits, names, schema)
        except (pa.ArrowException, OSError, IndexError, ValueError):  # the copy is damaged, and the table has the rows
            forget_corrupt(reader.lent)
    groups = [(int(file), np.flatnonzero(hits.files == file)) for file in np.unique(hits.files)]

    def read(group: tuple[int, Any]) -> pa.Table:
        file, at = group
        positions = np.unique(hits.positions[at])
        batches = list(read_file(base, base.files[reader.paths[file]], names, positions=True, only=positions))
        return pa.Table.from_batches(batches)

    tables, order, first = [], np.empty(len(hits), np.int64), 0
    for (_, at), table in zip(groups, map_files(groups, read), strict=True):
        found = table.column(POSITION).to_numpy()
        order[at] = first + np.searchsorted(found, hits.positions[at])
        tables.append(table.drop_columns([POSITION]))
        first += table.num_rows
    return pa.concat_tables(tables).cast(schema).take(pa.array(order))


def _hot(reader: Reader, hits: Hits, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    """The rows by the hot columns of the splits."""
    assert hits.segments is not None and hits.documents is not None
    pieces: list[pa.RecordBatch] = []
    places: list[Any] = []
    for number in np.unique(hits.segments):
        at = np.flatnonzero(hits.segments == number)
        folder, before = reader.place(int(number))
        firsts, batches = _hot_batches(os.path.join(folder, HOT), tuple(names))
        rows = hits.documents[at] + before
        batch_of = np.searchsorted(firsts, rows, side="right") - 1
        for batch in np.unique(batch_of):
            mine = batch_of == batch
            pieces.append(batches[batch].take(pa.array(rows[mine] - firsts[batch])))
            places.append(at[mine])
    found = pa.Table.from_batches(pieces)
    found = found if found.schema == schema else found.cast(schema)
    if len(places) == 1:  # they are in the order of the hits
        return found
    order = np.empty(len(hits), np.int64)
    order[np.concatenate(places)] = np.arange(len(hits))
    return found.take(pa.array(order))


@lru_cache(maxsize=256)
def _hot_batches(path: str, names: tuple[str, ...]) -> tuple[Any, list[pa.RecordBatch]]:
    """Columns of a file of hot columns, with the number of the first row of each batch: batches are of any size."""
    source = pa.ipc.open_file(pa.memory_map(path))
    batches = [source.get_batch(n).select(list(names)) for n in range(source.num_record_batches)]
    return np.cumsum([0, *(batch.num_rows for batch in batches[:-1])]), batches


def meets(reader: Reader, hits: Hits, wanted: Expression) -> Any:
    """Which rows of hits meet a condition."""
    columns = sorted({name for _, name in wanted.columns})
    table = pa.table({"_": pa.nulls(len(hits))}) if not columns else fetch_rows(reader, hits, columns)
    met = pc.fill_null(expressions.evaluate(wanted, table), False)
    return np.asarray(met.combine_chunks() if isinstance(met, pa.ChunkedArray) else met, dtype=bool)
