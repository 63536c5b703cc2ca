"""Match: the stretches of each series that fit a row pattern.

The text is a MATCH_RECOGNIZE over the stream's rows, read once by the driver (`headwater.sql`); a task compiles its
plan and goes over its series (`headwater.sql.matching`). A whole series is held at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headwater.sql.matching import Matcher, pattern_columns
from headwater.sql.plan import Match
from headwater.sql.query import parse_query
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

__all__ = ["END", "START", "MatchRows"]

START, END = "start", "end"
"""Where a match begins and ends, in an answer of a row for each."""

_ROWS = "rows"


@dataclass(frozen=True)
class MatchRows(Keyed):
    """The matches that ``text``, a query of ``rows``, finds.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> rows = Values(pa.table({"t": [1, 2, 3], "v": [5, 4, 6]}))
    >>> text = "SELECT * FROM rows MATCH_RECOGNIZE (ORDER BY t MEASURES LAST(t) AS t PATTERN (A D) DEFINE D AS v < A.v)"
    >>> run_here(MatchRows(rows, Ordering("t"), text)).to_pylist()
    [{'t': 2}]
    """

    input: Node
    ordering: Ordering
    text: str
    empty: bool = True
    """Does a match without rows give a row?"""

    @property
    def match(self) -> Match:
        """The match in the query."""
        schema = self.input.schema
        plan = parse_query(self.text, lambda *_: schema)
        found = next(one for one in plan.walk() if isinstance(one, Match))
        return replace(found, empty=found.empty and self.empty)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(a.name, a.dtype) for a in self.match.output])

    def line(self) -> str:
        return f"match {self.match.line().removeprefix('match ')}"

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        match = self.match
        read = pattern_columns(match)
        names = {a.name for a in match.child.output if a.key in read}
        return (frozenset({*names, *self.ordering.columns}),)

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        match = self.match
        here = not match.every_row and match.skip.to == "next row" and match.is_local
        if not here or match.length is None or START not in self.schema.names:
            return (None,)
        return (Extent(self.ordering.time, START, before=0, after=match.length),)

    def kernel(self) -> KeyedKernel:
        return _Matching(self.match, self.ordering, self.schema)


@dataclass(frozen=True)
class _Matching:
    match: Match
    ordering: Ordering
    schema: pa.Schema

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        matcher = Matcher(self.match)
        names = {a.key: a.name for a in self.match.child.output}
        read = [names[key] for key in matcher.schema.names]
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering, read)

        def batches() -> Iterator[pa.RecordBatch]:
            for chunk in chunks:
                yield from as_read(chunk, read, matcher.schema).to_batches()

        for batch in matcher.batches(batches()):
            yield pa.Table.from_batches([batch]).rename_columns(self.schema.names)


def as_read(table: pa.Table, names: list[str], schema: pa.Schema) -> pa.Table:
    """The columns that a matcher reads, under its names."""
    columns: list[Any] = [table.column(name) for name in names]
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
