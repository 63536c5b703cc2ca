"""Lineage: which stored columns each column of a query is made of.

A column's *sources* are the columns whose values flow into its own: through expressions, aggregates, windows and set
operations, also out of subqueries. What only decides which rows there are (WHERE, join conditions, GROUP BY) is told
apart, as the query's *conditions*.

>>> import pyarrow as pa
>>> from headwater.sql.query import parse_query
>>> schema = pa.schema([("id", pa.int32()), ("a", pa.int32()), ("b", pa.int32())])
>>> found = lineage(parse_query("SELECT id, sum(a + 1) AS s FROM t WHERE b > 0 GROUP BY id", lambda *_: schema))
>>> [(c.name, sorted(map(str, c.sources))) for c in found.columns], sorted(map(str, found.conditions))
([('id', ['t.id']), ('s', ['t.a'])], ['t.b', 't.id'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headwater.sql.nodes import Column, Node, SubqueryCall, walk
from headwater.sql.plan import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Match,
    Named,
    Plan,
    Project,
    Recursion,
    Reference,
    Scan,
    SetOperation,
    Values,
    Window,
)

__all__ = ["Lineage", "OutputColumn", "StoredColumn", "lineage"]


@dataclass(frozen=True, order=True, slots=True)
class StoredColumn:
    """A column of a table (``orders``, ``orders@3``) or of a table function."""

    relation: str
    name: str

    def __str__(self) -> str:
        return f"{self.relation}.{self.name}"


Sources = frozenset[StoredColumn]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer, and what it is made of."""

    name: str
    sources: Sources


@dataclass(frozen=True, slots=True)
class Lineage:
    """The columns of a query in order, and the stored columns that decide which rows there are."""

    columns: tuple[OutputColumn, ...]
    conditions: Sources


def lineage(plan: Plan) -> Lineage:
    """Trace every column of a plan to the tables."""
    walk_ = _Tracer()
    walk_.visit(plan)
    columns = tuple(OutputColumn(a.name, walk_.known[a.key]) for a in plan.output)
    return Lineage(columns, frozenset(walk_.conditions))


class _Tracer:
    def __init__(self) -> None:
        self.known: dict[str, Sources] = {}
        self.conditions: set[StoredColumn] = set()

    def visit(self, plan: Plan) -> None:
        if isinstance(plan, Recursion):
            self._recursion(plan)
            return
        for child in plan.children:
            self.visit(child)
        for subquery in plan.subqueries():
            self.visit(subquery.plan)
        for key, sources in self._made(plan):
            self.known[key] = sources
        for node in _deciding(plan):
            self.conditions |= self._sources(node)

    def _recursion(self, plan: Recursion) -> None:
        """A column comes from the base's, and from what the step makes of all columns, however often it is taken."""
        self.visit(plan.base)
        for a, first in zip(plan.columns, plan.base.output, strict=True):
            self.known[a.key] = self.known[first.key]
        before = None
        while before != (before := [self.known[a.key] for a in plan.columns]):
            self.visit(plan.step)
            for a, next_ in zip(plan.columns, plan.step.output, strict=True):
                self.known[a.key] = self.known[a.key] | self.known[next_.key]

    def _made(self, plan: Plan) -> Iterator[tuple[str, Sources]]:
        """The columns that a node makes; the others it hands on under their keys."""
        if isinstance(plan, Scan):
            for a in plan.columns:
                yield a.key, frozenset({StoredColumn(plan.relation, a.name)})
        elif isinstance(plan, Values):
            for i, a in enumerate(plan.columns):
                yield a.key, self._all(row[i] for row in plan.rows)
        elif isinstance(plan, Reference):
            for key, a in zip(plan.keys, plan.columns, strict=True):
                yield a.key, self.known[key]
        elif isinstance(plan, SetOperation):
            for left, right, a in zip(plan.left.output, plan.right.output, plan.columns, strict=True):
                # EXCEPT gives rows of its left side only.
                yield a.key, self.known[left.key] | (frozenset() if plan.kind == "except" else self.known[right.key])
        elif isinstance(plan, Generate):
            for a in (*plan.columns, *((plan.position,) if plan.position is not None else ())):
                yield a.key, self._sources(plan.source)
        for item in _named(plan):
            yield item.attribute.key, self._sources(item.node)

    def _all(self, nodes: Iterable[Node]) -> Sources:
        return frozenset().union(*map(self._sources, nodes))

    def _sources(self, node: Node) -> Sources:
        found: set[StoredColumn] = set()
        for part in walk(node):
            if isinstance(part, Column):
                found |= self.known.get(part.path[0], frozenset())
            elif isinstance(part, SubqueryCall):
                for a in part.plan.output:
                    found |= self.known.get(a.key, frozenset())
        return frozenset(found)


def _named(plan: Plan) -> Iterator[Named]:
    if isinstance(plan, Project | Window):
        yield from plan.items
    elif isinstance(plan, Match):
        yield from plan.measures
    elif isinstance(plan, Aggregate):
        yield from plan.keys
        yield from plan.aggregates


def _deciding(plan: Plan) -> Iterator[Node]:
    if isinstance(plan, Filter):
        yield plan.condition
    elif isinstance(plan, Match):
        yield from plan.partition
        yield from (o.node for o in plan.order)
        yield from (condition for _, condition in plan.definitions)
    elif isinstance(plan, Join):
        yield from () if plan.condition is None else (plan.condition,)
    elif isinstance(plan, Aggregate):
        yield from (k.node for k in plan.keys)
