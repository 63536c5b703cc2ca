"""Searching: one question to an index, from its text to the rows that answer it.

A question with a condition (``filter``) is answered exactly: the condition gives candidates (`predicates`), and rows
are verified in the order of their rank, a batch at a time, until enough of them meet it.

Words have BM25 scores (k1 = 1.2, b = 0.75) from statistics of all splits together: the number of rows, how many of them
have the word, and the average length of the field. Rows that were deleted since their split was written still count in
all three, until the split is rewritten without them; so scores do not depend on how splits are cut, but for such rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, SearchQueryError
from headwater.lake.find import condition
from headwater.search.answers import remembered
from headwater.search.language import Ignored
from headwater.search.native import guarded
from headwater.search.predicates import candidates
from headwater.search.reader import Hits, Reader
from headwater.search.request import Request, compile_query, field_number
from headwater.search.result import SearchResult
from headwater.search.rows import meets
from headwater.sql.expressions import Expression

__all__ = ["count", "more_like", "search"]

_BATCH = 1_000


def search(reader: Reader, asked: Request) -> SearchResult:
    """Answer a question."""
    base = reader.base
    columns = tuple(base.schema.field(c, base.where).name for c in (asked.columns or base.schema.names))
    if asked.vector is None and asked.where is None:
        found = remembered((reader.key, asked.question), lambda: _answered(reader, asked), _bytes_of)
        return SearchResult(reader, found[1], columns, reader.frontier, found[0], found[2])
    query, ignored = compile_query(reader, asked)
    if asked.vector is not None:
        from headwater.search.hybrid import fused

        hits = fused(reader, query, asked)
        return SearchResult(reader, hits, columns, reader.frontier, query, ignored, hits.total)
    assert asked.where is not None
    wanted = condition(base, asked.where)
    assert wanted is not None
    narrowed = _narrowed(reader, query, wanted)
    hits = _verified(reader, narrowed, wanted, asked)
    result = SearchResult(reader, hits, columns, reader.frontier, query, ignored)
    return result if hits.total is None else replace(result, matched=hits.total)


def _answered(reader: Reader, asked: Request) -> tuple[Any, Hits, tuple[Ignored, ...]]:
    query, ignored = compile_query(reader, asked)
    return query, _ranked(reader, query, asked, asked.k, asked.offset), ignored


def _bytes_of(answer: tuple[Any, Hits, tuple[Ignored, ...]]) -> int:
    """Four numbers for each row, and a score; and what was compiled, of which a set of terms is the largest."""
    return len(answer[1]) * 64 + 10_000


def _ranked(reader: Reader, query: Any, asked: Request, k: int | None, offset: int) -> Hits:
    most = k if k is not None else max(0, reader.count(query) - offset)
    if asked.order_by is None:
        return reader.top(query, most, offset)
    number = field_number(reader, asked.order_by)
    f, name = reader.meant.fields[number], reader.meant.fields.name(number)
    if f.kind in ("text", "json", "binary", "ip"):
        raise SearchQueryError.not_possible(
            "an order", f.column, f"it is of kind {f.kind}", "index it as keyword or numeric, or sort the rows"
        )
    if f.kind == "float":
        return _by_floats(reader, query, name, most, offset, descending=asked.descending)
    return reader.ordered(query, name, most, offset, descending=asked.descending)


def _by_floats(reader: Reader, query: Any, name: str, k: int, offset: int, *, descending: bool) -> Hits:
    """Rows by a float: not-a-number is the largest, as in Spark, which the library's order does not know."""
    import tantivy

    hits = reader.every(query)
    assert hits.segments is not None or not len(hits)
    if not len(hits) or hits.segments is None or hits.documents is None:
        return hits
    places = zip(hits.segments.tolist(), hits.documents.tolist(), strict=True)
    addresses = [tantivy.DocAddress(s, d) for s, d in places]
    with guarded("ordering"):
        listed = reader.searcher.fast_field_values(name, addresses)
    column = pa.array(listed, pa.float64())
    order = pc.array_sort_indices(column, order="descending" if descending else "ascending", null_placement="at_end")
    numbers = order.to_numpy()
    if descending:  # Arrow has not-a-number last in either order
        is_nan = np.isnan(np.array([np.nan if v is None else v for v in listed], np.float64))
        is_null = np.array([v is None for v in listed])
        nan = is_nan & ~is_null
        numbers = np.concatenate([numbers[nan[numbers]], numbers[~nan[numbers]]])
    chosen = numbers[offset : offset + k]
    return replace(hits.part(chosen), scores=[listed[n] for n in chosen])


# -- conditions ------------------------------------------------------------------------------------------------------


def _narrowed(reader: Reader, query: Any, wanted: Expression) -> Any:
    import tantivy

    with guarded("reading the condition"):
        found = candidates(reader, wanted.node)
    if found is None:
        return query
    occur, make = tantivy.Occur, tantivy.Query
    return make.boolean_query([(occur.Must, query), (occur.Must, make.const_score_query(found, 0.0))])


def _verified(reader: Reader, query: Any, wanted: Expression, asked: Request) -> Hits:
    """The rows of a ranking that meet a condition, as many as are asked for."""
    need = None if asked.k is None else asked.k + asked.offset
    parts: list[Hits] = []
    have, begin, size = 0, 0, _BATCH
    exhausted = False
    while need is None or have < need:
        hits = _ranked(reader, query, asked, size, begin)
        if not len(hits):
            exhausted = True
            break
        met = meets(reader, hits, wanted)
        parts.append(hits.part(np.flatnonzero(met)))
        have += int(met.sum())
        begin += len(hits)
        if len(hits) < size:
            exhausted = True
            break
        size = min(2 * size, 100_000)
    whole = _joined(parts)
    end = len(whole) if asked.k is None else asked.offset + asked.k
    return replace(whole.part(slice(asked.offset, end)), total=have if exhausted else None)


def _joined(parts: Sequence[Hits]) -> Hits:
    empty = np.empty(0, np.int64)
    if not parts:
        return Hits(empty, empty, [], None, empty, empty)
    scores = [score for part in parts for score in part.scores]
    columns = ([getattr(part, name) for part in parts] for name in ("files", "positions", "segments", "documents"))
    files, positions, segments, documents = (
        np.concatenate([empty if c is None else c for c in one]) for one in columns
    )
    return Hits(files, positions, scores, None, segments, documents)


def count(reader: Reader, query: str, *, where: str | None, default: Literal["or", "and"]) -> int:
    """How many rows match a query and meet a condition."""
    asked = Request(query=query, k=None, default=default, where=where)
    if where is None:
        key = (reader.key, "count", asked.question)
        return remembered(key, lambda: reader.count(compile_query(reader, asked)[0]), lambda _: 0)
    compiled, _ = compile_query(reader, asked)
    wanted = condition(reader.base, where)
    assert wanted is not None
    return len(_verified(reader, _narrowed(reader, compiled, wanted), wanted, asked))


def more_like(
    reader: Reader, text: str | Mapping[str, str | None], *, columns: Sequence[str] | None, k: int | None
) -> SearchResult:
    """The rows whose text has most in common with a text: those of its words count that are rare."""
    import tantivy

    base, fields = reader.base, reader.meant.fields
    asked = Request(query="", k=k)
    document = {fields.name(number): [one] for number, one in _given(reader, text).items()}
    query = tantivy.Query.empty_query()
    if document:
        with guarded("reading the text"):
            query = tantivy.Query.more_like_this_document_fields_query(
                reader.schema, document, min_doc_frequency=1, min_term_frequency=1
            )
    hits = reader.top(query, asked.k if asked.k is not None else reader.count(query))
    names = tuple(base.schema.field(c, base.where).name for c in (columns or base.schema.names))
    return SearchResult(reader, hits, names, reader.frontier, query)


def _given(reader: Reader, text: str | Mapping[str, str | None]) -> dict[int, str]:
    """A text for each of some fields, by their numbers; nulls are left out."""
    fields = reader.meant.fields
    if isinstance(text, str):
        return dict.fromkeys(fields.text, text)
    if not isinstance(text, Mapping) or not text:
        raise InputError.bad_argument("text", text, "a text, or texts by the names of columns")
    found: dict[int, str] = {}
    for column, one in text.items():
        number = field_number(reader, column)
        f = fields[number]
        if not f.is_text:
            hint = "give texts of text and keyword fields, and search for other values"
            raise SearchQueryError.not_possible("more rows like a text", f.column, f"it is of kind {f.kind}", hint)
        if one is not None and not isinstance(one, str):
            raise InputError.bad_argument("text", one, f"a text for the field `{f.column}`")
        if one is not None:
            found[number] = one
    return found
