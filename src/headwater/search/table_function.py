"""``search(…)``: the rows that a search finds, in FROM, on every engine.

    SELECT n.id, n._score, c.name
    FROM search('notes', 'refund AND card', k => 20, filter => 'amount > 10') AS n JOIN customers c ON c.id = n.customer

The first argument is an index, or a table or view that has one. The table is searched at the version at which the rest
of the query sees it, or at ``version => 3``. Rows have the table's columns and ``_score``; as in any relation, they
have no order: write ORDER BY _score DESC. The search runs when the query is planned, since its own errors belong there;
columns are read when the engine asks for rows, and only those that it asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from headwater.base.errors import HeadwaterError, NotFoundError, SearchQueryError, did_you_mean
from headwater.derived.environment import Environment
from headwater.derived.port import PinnedTables
from headwater.lake.relation import Relation
from headwater.search.discovery import definitions, indexes_of
from headwater.search.index import SearchIndex
from headwater.search.result import SCORE, SearchResult
from headwater.search.rows import fetch_rows
from headwater.sql.conjuncts import Conjunct
from headwater.sql.nodes import Wrong
from headwater.sql.query import Arguments
from headwater.sql.statements.names import listed_names

__all__ = ["search_function"]

_FORM = "write search('table or index', 'query', k => 10, fields => 'title, body', filter => 'amount > 3')"
_OPTIONS: dict[str, tuple[type, ...]] = {
    "k": (int,),
    "fields": (str,),
    "filter": (str,),
    "default": (str,),
    "order_by": (str,),
    "descending": (bool,),
    "lenient": (bool,),
    "version": (int,),
    "timestamp": (str, datetime),
}


def search_function(arguments: Arguments, environment: Environment, pinned: PinnedTables) -> Relation:
    """The rows of a call."""
    given = _checked(arguments)
    name, query = str(given.pop("index")), str(given.pop("query"))
    version, timestamp = given.pop("version", None), given.pop("timestamp", None)
    if version is not None and timestamp is not None:
        raise Wrong("search() takes a version or a timestamp, not both", "leave one of them out")
    index = _opened(name, environment)
    base = pinned.snapshot(index.meant.source, version, _instant(timestamp))
    if any(n.lower() == SCORE for n in base.schema.names):
        raise Wrong(f"`{index.meant.source}` has a column `{SCORE}` of its own", "rename it, or search with Python")
    if "fields" in given:
        given["fields"] = listed_names(given["fields"])
    try:
        found = index.pinned_to(base).search(query, columns=(), **given)
    except HeadwaterError as error:
        error.position = None  # it is a place in the search query or in the filter, which the error shows
        raise
    return SearchedRows(found, ranked="order_by" not in given)


def _checked(arguments: Arguments) -> dict[str, Any]:
    """The arguments by name, each of a type that it may have."""
    plain = [value for name, value in arguments if name is None]
    named = [(name, value) for name, value in arguments if name is not None]
    positions = [name for name, _ in arguments]
    if len(plain) != 2 or positions[:2] != [None, None] or not all(isinstance(value, str) for value in plain):
        raise Wrong("search() takes a table or index and a query, and then options by name", _FORM)
    given: dict[str, Any] = {"index": plain[0], "query": plain[1]}
    for name, value in named:
        if name not in _OPTIONS:
            near = did_you_mean(name, _OPTIONS)
            hint = f"did you mean `{near}`?" if near else f"options: {', '.join(_OPTIONS)}"
            raise Wrong(f"search() has no option `{name}`", hint)
        if name in given:
            raise Wrong(f"`{name}` is given to search() twice", "leave one of them out")
        if value is None:
            if name == "k":  # all rows
                given[name] = None
            continue
        if not isinstance(value, _OPTIONS[name]) or (isinstance(value, bool) and bool not in _OPTIONS[name]):
            raise Wrong(f"the option `{name}` of search() cannot be {value!r}", _FORM)
        given[name] = value
    return given


def _instant(timestamp: str | datetime | None) -> datetime | None:
    if not isinstance(timestamp, str):
        return timestamp
    try:
        found = datetime.fromisoformat(timestamp)
    except ValueError:
        raise Wrong(f"`{timestamp}` is no timestamp", "write timestamp => '2024-01-31 12:00:00'") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _opened(name: str, environment: Environment) -> SearchIndex:
    """The index of that name, or the one index of the table of that name."""
    known = definitions(environment.root)
    same = [one for one in known if one == name] or [one for one in known if one.lower() == name.lower()]
    if len(same) == 1:
        return SearchIndex(same[0], environment)
    of = list(indexes_of(environment.root, name))
    if len(of) == 1:
        return SearchIndex(of[0], environment)
    if of:
        raise Wrong(f"`{name}` has several search indexes", f"name one of them: {', '.join(of)}")
    table = environment.table(name)
    if table.current() is None:
        raise NotFoundError.derived(name, SearchIndex.kind, sorted(known), environment.root.url)
    raise SearchQueryError.no_index(table.name, environment.root.url)


@dataclass(frozen=True)
class SearchedRows:
    """The rows of a search as a `Relation`."""

    found: SearchResult
    ranked: bool

    @property
    def schema(self) -> pa.Schema:
        base = self.found.reader.base
        own = [base.schema.field(name).arrow.with_nullable(True) for name in base.schema.names]
        return pa.schema([*own, pa.field(SCORE, pa.float64(), True)])

    def read(self, columns: Sequence[str], conjuncts: Sequence[Conjunct]) -> pa.RecordBatchReader:
        """The rows with these columns; what a query asks of them is asked after the search has chosen the best."""
        schema = pa.schema([self.schema.field(c) for c in columns])
        stored = [c for c in columns if c != SCORE]

        def batches() -> Iterator[pa.RecordBatch]:
            hits = self.found.hits
            rows = fetch_rows(self.found.reader, hits, stored) if stored else None
            scores = pa.array([float(s) for s in hits.scores] if self.ranked else [None] * len(hits), pa.float64())
            taken = [scores if rows is None or c == SCORE else rows.column(c) for c in columns]
            yield from pa.table(taken, schema=schema).to_batches()

        return pa.RecordBatchReader.from_batches(schema, batches())
