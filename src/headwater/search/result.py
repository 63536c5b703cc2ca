"""Results of searches: rows in the order of their rank, with scores, the frontier they reflect, and highlights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import InputError, SearchQueryError
from headwater.base.frontier import Frontier
from headwater.base.packages import required
from headwater.search.native import guarded
from headwater.search.reader import Hits, Reader
from headwater.search.rows import fetch_rows

if TYPE_CHECKING:
    from headwater.search.language import Ignored

__all__ = ["SearchResult"]

SCORE = "_score"
_SHOWN = 20


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The rows that a search found, best first. Rows are read from the table when they are asked for.

    Parameters
    ----------
    frontier : Frontier
        the version of the table that was searched
    ignored : tuple
        what a lenient search left out
    """

    reader: Reader = field(repr=False)
    hits: Hits = field(repr=False)
    columns: tuple[str, ...]
    frontier: Frontier
    query: Any = field(repr=False, default=None)
    ignored: tuple[Ignored, ...] = ()
    matched: int | None = None
    """How many rows match in all, where it is known without counting again."""

    def __len__(self) -> int:
        return len(self.hits)

    def __repr__(self) -> str:
        left_out = f", left out of the query: {len(self.ignored)}" if self.ignored else ""
        return f"SearchResult({len(self):,} rows of {self.frontier}: {', '.join(self.columns)}{left_out})"

    @property
    def scores(self) -> list[float]:
        """The score of each row, or the value that the rows are ordered by."""
        return list(self.hits.scores)

    @cached_property
    def total(self) -> int:
        """How many rows match in all."""
        return self.matched if self.matched is not None else self.reader.count(self.query)

    @cached_property
    def _table(self) -> pa.Table:
        return fetch_rows(self.reader, self.hits, self.columns)

    def to_arrow(self, *, scores: bool = False) -> pa.Table:
        """The rows as an Arrow table; with ``scores``, there is a column ``_score``."""
        if not scores:
            return self._table
        if SCORE in self._table.schema.names:
            raise InputError.bad_argument("scores", scores, "False: the table has a column `_score` of its own")
        listed = self.hits.scores if len(self.hits.scores) else [None] * len(self)
        return self._table.append_column(SCORE, pa.array(listed, None if len(self) else pa.float64()))

    def to_pylist(self, *, scores: bool = False) -> list[dict[str, Any]]:
        """The rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow(scores=scores).to_pylist()
        return rows

    def to_pandas(self, *, scores: bool = False) -> Any:
        """The rows as a pandas DataFrame."""
        required("pandas", "to_pandas()")
        return self.to_arrow(scores=scores).to_pandas()

    def to_polars(self, *, scores: bool = False) -> Any:
        """The rows as a polars DataFrame."""
        return required("polars", "to_polars()").from_arrow(self.to_arrow(scores=scores))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    # -- why -------------------------------------------------------------------------------------------------------

    def snippets(self, column: str, *, length: int = 150) -> list[str]:
        """A piece of each row's text around what was found, as HTML with the words in ``<b>``."""
        import tantivy

        reader, fields = self.reader, self.reader.meant.fields
        number = fields.number(column)
        if number is None or fields[number].kind != "text":
            raise SearchQueryError.not_possible("a snippet", column, "it is not indexed as text", "name a text field")
        texts = fetch_rows(reader, self.hits, [column]).column(0).to_pylist()
        found = []
        with guarded("highlighting"):
            maker = tantivy.SnippetGenerator.create(reader.searcher, self.query, reader.schema, fields.name(number))
            maker.set_max_num_chars(length)
            for text in texts:
                document = tantivy.Document()
                document.add_text(fields.name(number), text or "")
                html = maker.snippet_from_doc(document).to_html()
                found.append(html or escape((text or "")[:length]))
        return found

    def explain(self, row: int = 0) -> dict[str, Any]:
        """How the score of a row comes about: the library's explanation, as nested dicts."""
        import json

        import tantivy

        if not -len(self) <= row < len(self):
            raise InputError.bad_argument("row", row, f"the number of a row, below {len(self)}")
        if self.hits.segments is None or self.hits.documents is None:
            raise InputError.bad_argument("row", row, "a row of a search that is ranked by its query alone")
        address = tantivy.DocAddress(int(self.hits.segments[row]), int(self.hits.documents[row]))
        with guarded("explaining"):
            found: dict[str, Any] = json.loads(self.query.explain(self.reader.searcher, address).to_json())
        return found

    # -- looks -----------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        shown = replace_hits(self, self.hits.part(slice(0, _SHOWN)))
        texts = (
            {c: shown.snippets(c) for c in _text_columns(self.reader, self.columns)} if self.query is not None else {}
        )
        heads = "".join(f"<th>{escape(c)}</th>" for c in ("score", *self.columns))
        rows = []
        scores: list[float | None] = [*self.scores] or [None] * len(self)
        for n, row in enumerate(shown.to_pylist()):
            cells = [_shown(scores[n])] + [texts[c][n] if c in texts else escape(_shown(row[c])) for c in self.columns]
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        first = f", the first {_SHOWN}" if len(self) > _SHOWN else ""
        caption = f"{len(self):,} rows of {escape(str(self.frontier))}{first}"
        return f"<table><caption>{caption}</caption><tr>{heads}</tr>{''.join(rows)}</table>"


def replace_hits(result: SearchResult, hits: Hits) -> SearchResult:
    """A result with other hits."""
    return SearchResult(result.reader, hits, result.columns, result.frontier, result.query, result.ignored)


def _text_columns(reader: Reader, columns: Sequence[str]) -> list[str]:
    fields = reader.meant.fields
    return [c for c in columns if (n := fields.number(c)) is not None and fields[n].kind == "text"]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
