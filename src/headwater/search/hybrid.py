"""Hybrid search: ranked by words and by nearness of embeddings, on the same rows.

The embeddings are a column of the table. Every row that is alive is compared (exactly, no approximation), by cosine
similarity; rows without an embedding, or with one of another length, have no place in that ranking. The two rankings
are joined by reciprocal rank fusion: a row's score is the sum of 1 / (60 + rank) over the rankings that it is in. Both
rankings are whole, so a row's score does not depend on how many rows are asked for, and pages fit together. Where
there is a query, words alone decide which rows are ranked by words; a row that only the embeddings find is in the
result too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, SearchQueryError
from headwater.base.schema import spark_type
from headwater.lake.find import condition
from headwater.lake.scan import POSITION, map_files, read_file
from headwater.search.reader import Hits, Reader
from headwater.search.request import Request
from headwater.search.rows import meets
from headwater.sql import expressions
from headwater.sql.expressions import Expression

__all__ = ["fused", "nearest"]

_CONSTANT = 60
_POSITION_BITS = 40


def fused(reader: Reader, query: Any, asked: Request) -> Hits:
    """The rows that are best by a query and by nearness to a vector."""
    if asked.order_by is not None:
        raise InputError.bad_argument("order_by", asked.order_by, "None: a search by a vector has an order")
    wanted = condition(reader.base, asked.where)
    near = nearest(reader, asked.vector, asked.vector_column, wanted)
    words = reader.top(query, reader.count(query))
    if wanted is not None and len(words):
        words = words.part(np.flatnonzero(meets(reader, words, wanted)))
    rankings = (words, near)
    places = np.concatenate([one.files << _POSITION_BITS | one.positions for one in rankings])
    shares = np.concatenate([1.0 / (_CONSTANT + 1 + np.arange(len(one))) for one in rankings])
    rows, which = np.unique(places, return_inverse=True)
    scores = np.bincount(which, shares, len(rows))
    end = None if asked.k is None else asked.offset + asked.k
    order = np.lexsort((rows, -scores))[asked.offset : end]
    files, positions = rows[order] >> _POSITION_BITS, rows[order] & ((1 << _POSITION_BITS) - 1)
    return Hits(files, positions, scores[order].tolist(), len(rows))


def nearest(reader: Reader, vector: Any, column: str | None, wanted: Expression | None = None) -> Hits:
    """All rows with an embedding that can be compared with a vector, nearest first, by cosine similarity."""
    base = reader.base
    name = _vector_column(reader, column)
    try:
        sought = np.asarray(vector, np.float64).ravel()
    except (TypeError, ValueError):
        raise InputError.bad_argument("vector", vector, "a list of numbers") from None
    length = float(np.linalg.norm(sought))
    if not len(sought) or not np.isfinite(length) or not length:
        raise InputError.bad_argument("vector", vector, "numbers that are finite and not all zero")
    sought = sought / length
    used = {name} if wanted is None else {name, *(c for _, c in wanted.columns)}
    names = [n for n in base.schema.names if n in used]

    def read(file: int) -> tuple[Any, Any]:
        found, places = [], []
        for batch in read_file(base, base.files[reader.paths[file]], names, positions=True):
            kept = batch
            if wanted is not None:
                met = pc.fill_null(expressions.evaluate(wanted, pa.Table.from_batches([batch])), False)
                kept = batch.filter(met.combine_chunks() if isinstance(met, pa.ChunkedArray) else met)
            rows, similarity = _similarities(kept.column(name), sought)
            found.append(similarity)
            places.append(kept.column(POSITION).to_numpy()[rows])
        empty = np.empty(0)
        return np.concatenate([empty, *found]), np.concatenate([empty.astype(np.int64), *places])

    parts = list(map_files(range(len(reader.paths)), read))
    similarity = np.concatenate([np.empty(0), *(one for one, _ in parts)])
    positions = np.concatenate([np.empty(0, np.int64), *(one for _, one in parts)])
    files = np.repeat(np.arange(len(parts)), [len(one) for one, _ in parts]).astype(np.int64)
    order = np.lexsort((positions, files, -similarity))
    return Hits(files[order], positions[order], ())


def _similarities(array: pa.Array, sought: Any) -> tuple[Any, Any]:
    """Which vectors of a column can be compared, and their similarity."""
    lists = array.cast(pa.list_(pa.float64()))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), -1))
    rows = np.flatnonzero(lengths == len(sought))
    if not len(rows):
        return rows, np.empty(0)
    values = lists.take(pa.array(rows)).flatten().to_numpy(zero_copy_only=False).reshape(len(rows), len(sought))
    norms = np.linalg.norm(values, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        similarity = values @ sought / norms
    usable = np.isfinite(similarity)
    return rows[usable], similarity[usable]


def _vector_column(reader: Reader, column: str | None) -> str:
    base = reader.base
    vectors: list[str] = [f.name for f in base.arrow_schema if _is_vector(f.type)]
    if column is None:
        if len(vectors) != 1:
            raise InputError.bad_argument(
                "vector_column", column, f"one of the columns of vectors: {', '.join(vectors)}"
            )
        return vectors[0]
    f = base.schema.field(column, base.where)
    name: str = f.name
    if not _is_vector(f.arrow.type):
        raise SearchQueryError.not_possible(
            "nearness", f.name, f"it is of type {spark_type(f.arrow.type)}", "name a column of arrays of numbers"
        )
    return name


def _is_vector(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) and pa.types.is_floating(dtype.value_type))
