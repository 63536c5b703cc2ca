"""Filtering: the rows that meet a condition of SQL, exactly those that a scan of the table gives.

The index names candidates; they are read and verified. Where it cannot help, or so many rows are candidates that
reading them one by one costs more than reading all, the table is scanned, with files skipped by their statistics as
always.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.lake.find import condition
from headwater.lake.scan import map_files, read_file
from headwater.lake.select import select
from headwater.search.native import guarded
from headwater.search.predicates import candidates
from headwater.search.reader import Reader
from headwater.sql import expressions
from headwater.sql.expressions import Expression
from headwater.sql.fragment import Fragment
from headwater.sql.nodes import Node

__all__ = ["MOST_SHARE", "SPARK_SHARE", "Way", "choose_way", "explained", "filtered", "spark_share"]

MOST_SHARE = 0.25
SPARK_SHARE = 0.002
"""On Spark: its tasks read pages and not rows, and candidates that are more than these lie in most of the pages."""
_FEW = 500


@dataclass(frozen=True, slots=True)
class Way:
    """How the rows of a condition are found: by a query that gives candidates, or by a scan (None), and why."""

    query: Any | None
    rows: int
    total: int
    reason: str


def choose_way(reader: Reader, wanted: Node, most_share: float = MOST_SHARE) -> Way:
    """Whether the index pays for a condition: up to ``most_share`` of the rows may be candidates."""
    total = int(reader.searcher.num_docs)
    with guarded("reading the condition"):
        found = candidates(reader, wanted)
    if found is None:
        return Way(None, total, total, "the index says nothing about it")
    rows = reader.count(found)
    if rows > most_share * total:
        return Way(None, rows, total, f"{rows:,} of {total:,} rows are candidates: too many")
    return Way(found, rows, total, f"{rows:,} of {total:,} rows are candidates")


def spark_share(reader: Reader) -> float:
    """How many of the rows may be candidates on Spark, as a share: a few hundred of a small table always may."""
    return max(SPARK_SHARE, min(MOST_SHARE, _FEW / max(1, int(reader.searcher.num_docs))))


def filtered(reader: Reader, where: str | Fragment, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """The rows that meet a condition, as a stream."""
    base = reader.base
    wanted = condition(base, where)
    assert wanted is not None
    way = choose_way(reader, wanted.node)
    if way.query is None:
        return select(base, columns, where)
    names = [base.schema.field(c, base.where).name for c in (columns or base.schema.names)]
    schema = pa.schema([base.schema.field(c).arrow.with_nullable(True) for c in names])
    return pa.RecordBatchReader.from_batches(schema, _verified(reader, way.query, wanted, names))


def _verified(reader: Reader, query: Any, wanted: Expression, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    base = reader.base
    asked = {name for _, name in wanted.columns}
    needed = [n for n in base.schema.names if n in names or n in asked]
    hits = reader.every(query)
    groups = [(int(file), hits.positions[hits.files == file]) for file in np.unique(hits.files)]

    def read(group: tuple[int, Any]) -> list[pa.RecordBatch]:
        file, positions = group
        found = []
        for batch in read_file(base, base.files[reader.paths[file]], needed, only=positions):
            met = pc.fill_null(expressions.evaluate(wanted, pa.Table.from_batches([batch])), False)
            kept = batch.filter(met.combine_chunks() if isinstance(met, pa.ChunkedArray) else met)
            if kept.num_rows:
                found.append(kept.select(list(names)))
        return found

    for batches in map_files(groups, read):
        yield from batches


def explained(reader: Reader, where: str) -> str:
    """What `filtered` would do."""
    wanted = condition(reader.base, where)
    assert wanted is not None
    way = choose_way(reader, wanted.node)
    return f"{'scan' if way.query is None else 'index'}: {way.reason}"
