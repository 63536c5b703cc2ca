"""MATCH_RECOGNIZE for Spark, which does not know it: found in the text, computed by tasks, and left as a view.

The clause and the relation before it are cut out of the text. Spark computes the relation, puts the rows of each
partition in one place and in order, and the tasks go over them with our matcher. What the clause means is read by our
own reader, with the relation's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.base.schema import Schema
from headwater.base.spark_text import quoted_name
from headwater.lake.spark.types import arrow_schema, spark_struct
from headwater.spark.failures import carried
from headwater.sql.matching import Matcher, pattern_columns, sorted_for
from headwater.sql.nodes import Column, Ordering
from headwater.sql.plan import Match, Plan, Project, Scan, Sort
from headwater.sql.query import Parameters, parse_query
from headwater.sql.tokens import Token, tokenize
from headwater.sql.vectorised import compile_expression, vector_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["MatchText", "match_texts", "matched"]

_INPUT = "input"
_BEFORE_RELATION = {"FROM", "JOIN", ","}


@dataclass(frozen=True)
class MatchText:
    """A MATCH_RECOGNIZE in a text: where its relation begins, where the clause begins and ends.

    ``definitions`` is where those of WITH that stand before it begin and end, ``name`` what the relation is called.
    """

    start: int
    clause: int
    end: int
    definitions: tuple[int, int] | None
    name: str | None


def match_texts(text: str) -> list[MatchText]:
    """The clauses of a text from left to right, without those inside of another one's relation.

    >>> text = "SELECT * FROM (SELECT 1 AS a) AS t MATCH_RECOGNIZE (ORDER BY a PATTERN (A)) AS m JOIN u"
    >>> [text[m.start : m.end] for m in match_texts(text)]
    ['(SELECT 1 AS a) AS t MATCH_RECOGNIZE (ORDER BY a PATTERN (A))']
    """
    if "match_recognize" not in text.lower():
        return []
    tokens = list(tokenize(text))
    found: list[MatchText] = []
    for at, token in enumerate(tokens):
        if token.word != "MATCH_RECOGNIZE" or at + 1 >= len(tokens) or tokens[at + 1].text != "(":
            continue
        first = _relation(tokens, at)
        last = _closing(tokens, at + 1)
        # What was found inside of the relation is part of it.
        found = [one for one in found if one.start < tokens[first].start]
        found.append(
            MatchText(tokens[first].start, token.start, tokens[last].end, _definitions(tokens, at), _name(tokens, at))
        )
    return found


def _relation(tokens: Sequence[Token], at: int) -> int:
    """The first token of the relation before a place."""
    depth, first = 0, at
    for place in range(at - 1, -1, -1):
        word = tokens[place].word if tokens[place].kind in ("word", "mark") else ""
        depth += {")": 1, "(": -1}.get(word, 0)
        if depth < 0 or (depth == 0 and word in _BEFORE_RELATION):
            break
        first = place
    if first == at:
        raise ExpressionError.syntax(tokens[at].source, "a table is expected before this", tokens[at].start)
    return first


def _name(tokens: Sequence[Token], at: int) -> str | None:
    """What the relation before a place is called: its alias, or the last part of a table's name."""
    last = tokens[at - 1]
    return str(last.value) if last.kind in ("word", "name") else None


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place].text if tokens[place].kind == "mark" else "", 0)
        if depth == 0:
            return place
    why = "the parenthesis that opens here is never closed"
    raise ExpressionError.syntax(tokens[opening].source, why, tokens[opening].start)


def _definitions(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """The definitions of WITH at the head of the text that end before a place."""
    if not tokens or tokens[0].word != "WITH":
        return None
    depth, end = 0, None
    for place, token in enumerate(tokens[:at]):
        if token.kind != "mark":
            if depth == 0 and token.word == "SELECT":
                break
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        behind = tokens[place + 1].word if place + 1 < len(tokens) else ""
        if depth == 0 and token.text == ")" and behind != "AS":  # names of columns stand in parentheses too
            end = token.end
    return None if end is None else (tokens[0].start, end)


def matched(frame: DataFrame, clause: str, parameters: Parameters, *, name: str | None) -> DataFrame:
    """The rows that a clause finds in those of a frame, which the clause may call by a name."""
    schema = arrow_schema(frame.schema)
    alias = "" if name is None else f"AS {quoted_name(name)} "
    plan = parse_query(f"SELECT * FROM {_INPUT} {alias}{clause}", lambda *_: schema, parameters)
    match = next(one for one in plan.walk() if isinstance(one, Match))
    below = sorted_for(match)
    assert isinstance(below, Sort)
    rows = _with_keys(frame, match)
    keys = [_column(p.path[0]) for p in match.partition if isinstance(p, Column)]
    spread = rows.repartition(*keys) if keys else rows.coalesce(1)
    ordered = spread.sortWithinPartitions(*(_sorted(o) for o in below.order))
    names = list(pattern_columns(match))
    output = pa.schema([(a.key, a.dtype) for a in match.output])
    found = ordered.select(*map(_column, names)).mapInArrow(_Matching(match), _struct(output))
    return found.toDF(*(a.name for a in match.output))


def _with_keys(frame: DataFrame, match: Match) -> DataFrame:
    """The columns that a match reads, by their keys; what is computed for its partitions and order is computed."""
    projections: list[Project] = []
    plan: Plan = match.child
    while isinstance(plan, Project):
        projections.insert(0, plan)
        plan = plan.child
    assert isinstance(plan, Scan), "a clause is read over one table"
    keyed = frame.toDF(*(a.key for a in plan.output))
    for projection in projections:
        schema = pa.schema([(a.key, a.dtype) for a in projection.output])
        keyed = keyed.mapInArrow(_Projecting(projection, schema), _struct(schema))
    return keyed


@dataclass(frozen=True)
class _Projecting:
    """Computes the columns of a projection in a task."""

    projection: Project
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        below = pa.schema([(a.key, a.dtype) for a in self.projection.child.output])
        programs = [compile_expression(item.node, below) for item in self.projection.items]
        for batch in batches:
            columns = [vector_of(c.cast(f.type)) for c, f in zip(batch.columns, below, strict=True)]
            with carried():
                values = [program.run(columns, batch.num_rows).to_arrow() for program in programs]
            yield pa.RecordBatch.from_arrays(values, schema=self.schema)


@dataclass(frozen=True)
class _Matching:
    """Finds the matches of the partitions that come to a task."""

    match: Match

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = Matcher(self.match)
        schema = matcher.schema

        def conformed() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                columns = [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        with carried():
            yield from matcher.batches(conformed())


def _struct(schema: pa.Schema) -> Any:
    return spark_struct(Schema.from_arrow(schema))


def _column(key: str) -> Any:
    from pyspark.sql import functions

    return functions.col(quoted_name(key))


def _sorted(order: Ordering) -> Any:
    assert isinstance(order.node, Column)
    column = _column(order.node.path[0])
    if order.descending:
        return column.desc_nulls_first() if order.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if order.nulls_first else column.asc_nulls_last()
