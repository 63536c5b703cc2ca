"""Rows on their way between tasks: Z-sets as Arrow tables with a weight, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.change import WEIGHT
from headwater.incremental.layout import Layout
from headwater.incremental.views.addresses import row_keys
from headwater.incremental.zset import ZSet
from headwater.spark.blocks import split

__all__ = ["by_row", "scattered", "schema_of", "table_of", "zset_of"]


def schema_of(layout: Layout) -> pa.Schema:
    """The columns of rows that travel. Their names do not: they may be anything."""
    fields = [pa.field(f"c{i}", f.type) for i, f in enumerate(layout.schema)]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64())])


def table_of(rows: ZSet) -> pa.Table:
    """Rows as a table."""
    assert rows.layout.weights == 1, "rows that flow have one weight"
    return pa.Table.from_arrays(rows.to_arrow().columns, schema=schema_of(rows.layout))


def zset_of(layout: Layout, tables: Iterable[pa.Table]) -> ZSet:
    """Tables as rows of a layout."""
    pieces = list(tables)
    if not pieces:
        return ZSet.empty(layout)
    table = pa.concat_tables(pieces)  # words are wider than columns, so it is columns that are put together
    weights = table.column(table.num_columns - 1).to_numpy()
    return ZSet.packed(layout, pa.Table.from_arrays(table.columns[:-1], schema=layout.schema), weights)


def scattered(rows: ZSet, places: npt.NDArray[np.int64], shards: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each shard, as tables."""
    if len(rows):
        yield from split(table_of(rows), places, shards)


def by_row(rows: ZSet, shards: int) -> npt.NDArray[np.int64]:
    """The shard in which a row of a view is with all rows that equal it."""
    high = row_keys(rows)[:, 0]
    return (((high >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32)).astype(np.int64)
