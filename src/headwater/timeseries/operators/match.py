"""Match: the stretches of each series that fit a row pattern.

The text is a MATCH_RECOGNIZE over the stream's rows, read once by the driver (`headwater.sql`); a task compiles its
plan and goes over its series (`headwater.sql.matching`). A whole series is held at a time, unless each row is tried by
itself and matches end within a time: then several tasks can share a series, each with the rows within reach of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sql.matching import OWN, Matcher, pattern_columns
from headwater.sql.plan import Match
from headwater.sql.query import parse_query
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering, RowKernel, RowWise, Slicing
from headwater.timeseries.rows import Rows
from headwater.timeseries.total_order import checked

__all__ = ["END", "START", "MatchRows", "Owned"]

START, END = "start", "end"
"""Where a match begins and ends, in an answer of a row for each."""

_ROWS = "rows"


@dataclass(frozen=True)
class Owned(RowWise):
    """The rows with a column of flags, all true: for a key that several tasks share, it says whose they are."""

    input: Node

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema.append(pa.field(OWN, pa.bool_()))

    def line(self) -> str:
        return "mark rows as those of their slice"

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        return (wanted - {OWN},)

    def kernel(self) -> RowKernel:
        return _owned


def _owned(rows: pa.Table) -> pa.Table:
    return rows.append_column(pa.field(OWN, pa.bool_()), pa.array(np.ones(rows.num_rows, np.bool_)))


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
        own = {OWN} if isinstance(self.input, Owned) else set()
        return (frozenset({*names, *self.ordering.columns, *own}),)

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    @property
    def reach(self) -> int | None:
        """How long after a row its own match can end, where each row is tried by itself; None where others decide."""
        match = self.match
        alone = not match.every_row and match.skip.to == "next row" and match.is_local
        return match.length if alone else None

    def sliced(self) -> MatchRows:
        """The same, so that several tasks can share a series with very many rows, where its matches allow that."""
        if self.reach is None or not self.ordering.by or isinstance(self.input, Owned):
            return self
        return replace(self, input=Owned(self.input))

    def slicing(self) -> tuple[Slicing, ...] | None:
        if not isinstance(self.input, Owned) or self.reach is None:
            return None
        return (Slicing(self.ordering.time, reach=(0, self.reach), own=OWN),)

    def extents(self) -> tuple[Extent | None, ...]:
        if self.reach is None or START not in self.schema.names:
            return (None,)
        return (Extent(self.ordering.time, START, before=0, after=self.reach),)

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
        schema = matcher.schema
        if OWN in rows.schema.names:
            read.append(OWN)
            schema = schema.append(pa.field(OWN, pa.bool_()))
        chunks = checked(rows.sorted(self.ordering.columns), self.ordering, read)

        def batches() -> Iterator[pa.RecordBatch]:
            for chunk in chunks:
                yield from as_read(chunk, read, schema).to_batches()

        for batch in matcher.batches(batches()):
            yield pa.Table.from_batches([batch]).rename_columns(self.schema.names)


def as_read(table: pa.Table, names: list[str], schema: pa.Schema) -> pa.Table:
    """The columns that a matcher reads, under its names."""
    columns: list[Any] = [table.column(name) for name in names]
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
