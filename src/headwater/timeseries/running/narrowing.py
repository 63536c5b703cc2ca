"""Less to read: columns that nobody asks for, and files that a condition rules out.

Going down a plan, each node says which columns of its inputs it needs for those that are asked of it (`Node.needs`); one that does not say
needs all. A source then reads only what is needed. A filter right above a source tells it the condition: the source may leave out what
cannot meet it, and the filter stays.
"""

from __future__ import annotations

from headwater.timeseries.node import Node
from headwater.timeseries.operators.narrow import Filter, Project
from headwater.timeseries.sources.source import Source

__all__ = ["narrowed"]

Wanted = frozenset[str]


def narrowed(plan: Node) -> Node:
    """The same rows, from less."""
    return _narrowed(plan, frozenset(plan.schema.names), {})


def _narrowed(node: Node, wanted: Wanted, made: dict[tuple[int, Wanted], Node]) -> Node:
    key = (id(node), wanted)
    found = made.get(key)
    if found is None:
        found = made[key] = _new(node, wanted, made)
    return found


def _new(node: Node, wanted: Wanted, made: dict[tuple[int, Wanted], Node]) -> Node:
    if isinstance(node, Source):
        names = [n for n in node.schema.names if n in wanted]
        # Rows without columns could not be counted.
        return node.narrowed(names or node.schema.names[:1]) if len(names) < len(node.schema) else node
    if isinstance(node, Project) and (less := node.only(wanted)).columns:
        node = less
    inputs = []
    for below, asked in zip(node.inputs, node.needs(wanted), strict=True):
        every = frozenset(below.schema.names)
        inputs.append(_narrowed(below, every if asked is None else asked & every, made))
    if isinstance(node, Filter) and isinstance(inputs[0], Source):
        inputs = [inputs[0].filtered(node.condition)]
    if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return node
    return node.with_inputs(*inputs)
