"""Searching several indexes at once: one question, the best rows of several tables.

Each index is asked by itself, and its rows have the scores that it gives them: BM25 by the statistics of that index, as
in other engines that search several indexes. All indexes of one table see the same version of it, and a row that
several of them find is in the result once, with the best of its scores. A field that an index does not have matches
nothing there; one that none of them has is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, SearchQueryError
from headwater.base.frontier import Frontier
from headwater.base.packages import required
from headwater.search.request import Request
from headwater.search.result import SCORE, SearchResult, replace_hits
from headwater.search.searching import search

if TYPE_CHECKING:
    from headwater.lake.snapshot import Snapshot
    from headwater.search.index import SearchIndex

__all__ = ["INDEX", "SeveralResult", "search_several"]

INDEX = "_index"
_SHOWN = 20


def search_several(
    indexes: Sequence[SearchIndex],
    query: str,
    *,
    columns: Sequence[str] | None = None,
    k: int | None = 10,
    offset: int = 0,
    default: Literal["or", "and"] = "or",
    lenient: bool = False,
) -> SeveralResult:
    """The best rows of several indexes."""
    if not indexes:
        raise InputError.bad_argument("indexes", [], "the names of search indexes")
    pinned: dict[str, Snapshot] = {}
    parts: list[SearchResult] = []
    errors: list[SearchQueryError] = []
    most = None if k is None else k + offset
    for index in indexes:
        base = pinned.setdefault(index.meant.source, index.snapshot)
        own = None if columns is None else [c for c in columns if c in base.schema]
        asked = Request(query=query, columns=own, k=most, default=default, lenient=lenient)
        at = index.pinned_to(base)
        try:
            parts.append(_asked(at, asked))
        except SearchQueryError as error:
            if error.code != "E1807":
                raise
            errors.append(error)
            parts.append(_asked(at, replace(asked, absent=True)))
    if len(errors) == len(indexes):
        raise errors[0]
    for name in columns or ():
        if not any(name in base.schema for base in pinned.values()):
            known = sorted({one for base in pinned.values() for one in base.schema.names})
            raise NotFoundError.column(name, known, ", ".join(pinned))
    return SeveralResult(tuple(index.name for index in indexes), tuple(parts), columns, *_best(parts, k, offset))


def _asked(index: SearchIndex, asked: Request) -> SearchResult:
    return index.steadily(lambda: search(index.reader(), asked))


def _best(parts: Sequence[SearchResult], k: int | None, offset: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which rows of which parts, best first."""
    listed = [(-score, part, row) for part, found in enumerate(parts) for row, score in enumerate(found.scores)]
    seen: set[tuple[str, str, int]] = set()
    chosen: list[tuple[int, int]] = []
    for _, part, row in sorted(listed):
        reader, hits = parts[part].reader, parts[part].hits
        address = (reader.meant.source, reader.paths[int(hits.files[row])], int(hits.positions[row]))
        if address not in seen:
            seen.add(address)
            chosen.append((part, row))
    kept = chosen[offset : None if k is None else offset + k]
    return tuple(part for part, _ in kept), tuple(row for _, row in kept)


@dataclass(frozen=True)
class SeveralResult:
    """The rows that a search of several indexes found, best first.

    Parameters
    ----------
    indexes : tuple of str
        the names of the indexes that were searched
    parts : tuple of SearchResult
        what each of them found
    """

    indexes: tuple[str, ...]
    parts: tuple[SearchResult, ...] = field(repr=False)
    columns: Sequence[str] | None = None
    _part: tuple[int, ...] = field(default=(), repr=False)
    _row: tuple[int, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self._part)

    @property
    def frontier(self) -> Frontier:
        """The versions of the tables that were searched."""
        found = Frontier()
        for part in self.parts:
            found = found | part.frontier
        return found

    @property
    def totals(self) -> Mapping[str, int]:
        """How many rows match in each index."""
        return {name: part.total for name, part in zip(self.indexes, self.parts, strict=True)}

    @property
    def scores(self) -> list[float]:
        """The score of each row."""
        return [self.parts[part].scores[row] for part, row in zip(self._part, self._row, strict=True)]

    @property
    def names(self) -> list[str]:
        """The index that found each row."""
        return [self.indexes[part] for part in self._part]

    @cached_property
    def _tables(self) -> list[pa.Table]:
        """The rows of each part that are in the result, in the order of the result."""
        tables = [self._narrowed(number).to_arrow() for number in range(len(self.parts))]
        if self.columns is None:
            return tables
        own = ([c for c in self.columns if c in part.reader.base.schema] for part in self.parts)
        return [table.rename_columns(names) for table, names in zip(tables, own, strict=True)]

    def _narrowed(self, number: int, most: int | None = None) -> SearchResult:
        rows = [row for part, row in zip(self._part[:most], self._row[:most], strict=True) if part == number]
        return replace_hits(self.parts[number], self.parts[number].hits.part(np.array(rows, np.int64)))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table: ``_index``, ``_score`` and the columns, null where a table has no such one."""
        wanted = list(self.columns) if self.columns is not None else _union(self._tables)
        for own in (INDEX, SCORE):
            if own in wanted:
                raise InputError.bad_argument("columns", own, "other columns: the result has one of that name itself")
        order = np.argsort(np.argsort(np.array(self._part, np.int64), kind="stable"), kind="stable")
        try:
            rows = pa.concat_tables(self._tables, promote_options="permissive").take(pa.array(order))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError.bad_argument("columns", wanted, f"columns whose types agree: {error}") from None
        table = pa.table({INDEX: pa.array(self.names, pa.string()), SCORE: pa.array(self.scores, pa.float64())})
        for name in wanted:
            table = table.append_column(name, rows.column(name))
        return table

    def snippets(self) -> list[dict[str, str]]:
        """For each row, what was found in each of its columns that is indexed as text: HTML, with words in ``<b>``."""
        found: list[dict[str, str]] = [{} for _ in self._part]
        for number, part in enumerate(self.parts):
            some, fields = self._narrowed(number), part.reader.meant.fields
            at = [n for n, one in enumerate(self._part) if one == number]
            names = part.columns if self.columns is None else [c for c in self.columns if c in part.reader.base.schema]
            for name in names:
                field_at = fields.number(name)
                if at and field_at is not None and fields[field_at].kind == "text":
                    for n, text in zip(at, some.snippets(name), strict=True):
                        found[n][name] = text
        return found

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        required("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        return required("polars", "to_polars()").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def _repr_html_(self) -> str:
        """Each index's rows, with what was found in bold."""
        pieces = [self._narrowed(n, _SHOWN)._repr_html_() for n in range(len(self.parts))]
        heads = (f"<p>{escape(name)}</p>" for name in self.indexes)
        return "".join(f"{head}{piece}" for head, piece in zip(heads, pieces, strict=True))


def _union(tables: Sequence[pa.Table]) -> list[str]:
    return list(dict.fromkeys(name for table in tables for name in table.schema.names))
