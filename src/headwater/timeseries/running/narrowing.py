"""Less to read: columns that nobody asks for, and files that a condition rules out.

Going down a plan, each node says which columns of its inputs it needs for those that are asked of it (`Node.needs`);
one that does not say needs all. A source then reads only what is needed. Conditions go down as well, as far as the
columns that they speak of are handed on as they are, under whatever name: a source may leave out files and row groups
that hold no row that meets them. It does not compute them, and the filter stays: so a condition cannot fail for rows
that another filter, further down, takes away.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headwater.base.errors import HeadwaterError
from headwater.sql.conjuncts import Conjunct
from headwater.sql.expressions import parse_condition
from headwater.timeseries.node import Node
from headwater.timeseries.operators.computed import Computed
from headwater.timeseries.operators.narrow import Filter, Project
from headwater.timeseries.operators.time_filter import TimeFilter
from headwater.timeseries.sources.source import Source

__all__ = ["narrowed"]

Wanted = frozenset[str]
Known = tuple[Conjunct, ...]


def narrowed(plan: Node) -> Node:
    """The same rows, from less."""
    return _Narrowing().of(plan, frozenset(plan.schema.names), ())


@dataclass
class _Narrowing:
    made: dict[tuple[int, Wanted, str], Node] = field(default_factory=dict)

    def of(self, node: Node, wanted: Wanted, known: Known) -> Node:
        """The node with these columns at least, of which only rows that meet what is known are looked at."""
        key = (id(node), wanted, repr(known))
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self._new(node, wanted, known)
        return found

    def _new(self, node: Node, wanted: Wanted, known: Known) -> Node:
        if isinstance(node, Source):
            names = [n for n in node.schema.names if n in wanted]
            # Rows without columns could not be counted.
            less = node.narrowed(names or node.schema.names[:1]) if len(names) < len(node.schema) else node
            return less.skipping(known) if known else less
        if isinstance(node, Project) and (fewer := node.only(wanted)).columns:
            node = fewer
        below_known = _below(node, known)
        inputs = []
        for below, asked in zip(node.inputs, node.needs(wanted), strict=True):
            every = frozenset(below.schema.names)
            inputs.append(self.of(below, every if asked is None else asked & every, below_known))
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return node.with_inputs(*inputs)


def _below(node: Node, known: Known) -> Known:
    """What is known of the rows of a node's input: what the node itself asks,
    and what its own rows are known to meet.
    """
    if isinstance(node, Filter):
        return (*known, *_conjuncts(node))
    if isinstance(node, TimeFilter):
        return (*known, *node.conjuncts())
    if isinstance(node, Project):
        taken = node.taken()
        return tuple(replace(c, column=taken[c.column]) for c in known if c.column in taken)
    if isinstance(node, Computed):
        return tuple(c for c in known if c.column not in node.columns)
    return ()


def _conjuncts(node: Filter) -> Known:
    try:
        return tuple(parse_condition(node.condition, schema=node.schema).conjuncts())
    except HeadwaterError:
        # Streams take more SQL than conditions of the lake: it skips nothing.
        return ()
