"""Hybrid search: ranked by words and by nearness of embeddings, on the same rows.

The embeddings are a column of the table. Every row that is alive is compared (exactly, no approximation), by cosine
similarity; rows without an embedding, or with one of another length, have no place in that ranking. The two rankings
are joined by reciprocal rank fusion: a row's score is the sum of 1 / (60 + rank) over the rankings that it is in. Where
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
from headwater.sql.expressions import Expression

__all__ = ["fused", "nearest"]

_CONSTANT = 60
_LEAST_DEPTH = 100


def fused(reader: Reader, query: Any, asked: Request) -> Hits:
    """The rows that are best by a query and by nearness to a vector."""
    if asked.order_by is not None:
        raise InputError.bad_argument("order_by", asked.order_by, "None: a search by a vector has an order")
    k = asked.k if asked.k is not None else int(reader.searcher.num_docs)
    depth = max(_LEAST_DEPTH, 4 * (k + asked.offset))
    wanted = condition(reader.base, asked.where)
    words = reader.top(query, depth)
    if wanted is not None and len(words):
        words = words.part(np.flatnonzero(meets(reader, words, wanted)))
    near = nearest(reader, asked.vector, asked.vector_column, depth, wanted)
    scores: dict[tuple[int, int], float] = {}
    for ranking in (words, near):
        for rank, place in enumerate(zip(ranking.files.tolist(), ranking.positions.tolist(), strict=True), start=1):
            scores[place] = scores.get(place, 0.0) + 1.0 / (_CONSTANT + rank)
    order = sorted(scores, key=lambda place: (-scores[place], place))[asked.offset : asked.offset + k]
    files, positions = (np.array([place[n] for place in order], np.int64) for n in (0, 1))
    return Hits(files, positions, [scores[place] for place in order], None)


def nearest(reader: Reader, vector: Any, column: str | None, k: int, wanted: Expression | None = None) -> Hits:
    """The rows whose embeddings are nearest to a vector, nearest first, by cosine similarity."""
    base = reader.base
    name = _vector_column(reader, column)
    sought = np.asarray(vector, np.float64).ravel()
    length = float(np.linalg.norm(sought))
    if not len(sought) or not np.isfinite(length) or not length:
        raise InputError.bad_argument("vector", vector, "numbers that are finite and not all zero")
    sought = sought / length

    def read(file: int) -> tuple[Any, Any]:
        found, places = [], []
        for batch in read_file(base, base.files[reader.paths[file]], [name], positions=True):
            rows, similarity = _similarities(batch.column(0), sought)
            found.append(similarity)
            places.append(batch.column(POSITION).to_numpy()[rows])
        empty = np.empty(0)
        return np.concatenate([empty, *found]), np.concatenate([empty.astype(np.int64), *places])

    parts = list(map_files(range(len(reader.paths)), read))
    similarity = np.concatenate([np.empty(0), *(one for one, _ in parts)])
    positions = np.concatenate([np.empty(0, np.int64), *(one for _, one in parts)])
    files = np.repeat(np.arange(len(parts)), [len(one) for one, _ in parts]).astype(np.int64)
    order = np.lexsort((positions, files, -similarity))
    every = Hits(files[order], positions[order], similarity[order].tolist())
    if wanted is None:
        return every.part(slice(0, k))
    chosen: list[Any] = []
    for begin in range(0, len(every), 1_000):
        some = every.part(slice(begin, begin + 1_000))
        chosen.extend((begin + np.flatnonzero(meets(reader, some, wanted))).tolist())
        if len(chosen) >= k:
            break
    return every.part(np.array(chosen[:k], np.int64))


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
