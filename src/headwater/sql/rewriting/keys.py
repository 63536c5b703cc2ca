"""Which columns a plan makes, which it reads from outside of itself, and keys that nothing has yet.

A column's key is given out once, so what a correlated plan reads of the query around it are the keys it reads and does
not make. Rules that read one plan twice need a copy of it, with keys of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.sql.nodes import Column, Node, SubqueryCall, rewrite, walk
from headwater.sql.nullability import nullable
from headwater.sql.plan import (
    Aggregate,
    Attribute,
    Generate,
    Match,
    Named,
    Plan,
    Project,
    Recursion,
    Reference,
    Scan,
    SetOperation,
    Single,
    Values,
    Window,
    With,
)
from headwater.sql.plan.rebuilding import with_children, with_expressions

__all__ = ["Keys", "columns_of", "free", "made", "reads"]

_NUMBER = re.compile(r"#(\d+)$")
_LONGEST = 40


@dataclass
class Keys:
    """Gives out keys with numbers above all those of a plan."""

    last: int = 0

    @classmethod
    def above(cls, plan: Plan) -> Keys:
        """Keys that no column and no definition of the plan has.

        >>> scan = Scan("t", None, None, (Attribute("a", "a#7", pa.int32()),))
        >>> Keys.above(scan).attribute("a", pa.int32()).key
        'a#8'
        """
        names = [name for node in plan.walk() for name in _names(node)]
        return cls(max((int(m[1]) for name in names if (m := _NUMBER.search(name))), default=0))

    def name(self, name: str) -> str:
        self.last += 1
        return f"{name[:_LONGEST]}#{self.last}"

    def attribute(self, name: str, dtype: pa.DataType, *, nullable: bool = True) -> Attribute:
        """A new column."""
        return Attribute(name, self.name(name), dtype, nullable)

    def named(self, name: str, node: Node) -> Named:
        """A new column for an expression; a plain column keeps its key."""
        if isinstance(node, Column) and len(node.path) == 1:
            return Named(Attribute(name, node.path[0], node.dtype, node.nullable), node)
        return Named(self.attribute(name, node.dtype, nullable=nullable(node)), node)

    def renewed(self, attribute: Attribute) -> Attribute:
        """The same column under a new key."""
        return replace(attribute, key=self.name(attribute.name))

    def copied(self, plan: Plan) -> tuple[Plan, dict[str, str]]:
        """The plan again, with new keys for all that it makes, and which key became which."""
        new = {a.key: self.name(a.name) for node in plan.walk() for a in _made_here(node)}
        tables = {n: self.name(n.rsplit("#")[0]) for node in plan.walk() for n in _defined(node)}
        return _renamed(plan, new, tables), new


def _names(node: Plan) -> Iterator[str]:
    yield from (a.key for a in node.output)
    if isinstance(node, With):
        yield from (name for name, _ in node.definitions)
    if isinstance(node, Reference):
        yield from (node.name, *node.keys)


def _defined(node: Plan) -> tuple[str, ...]:
    return tuple(name for name, _ in node.definitions) if isinstance(node, With) else ()


def _made_here(node: Plan) -> tuple[Attribute, ...]:
    if isinstance(node, Scan | Reference | Values | SetOperation | Recursion):
        return node.columns
    if isinstance(node, Project | Window):
        return tuple(i.attribute for i in node.items if not _passes(i))
    if isinstance(node, Aggregate):
        return tuple(n.attribute for n in (*node.keys, *node.aggregates) if not _passes(n))
    if isinstance(node, Match):
        return tuple(m.attribute for m in node.measures)
    if isinstance(node, Generate):
        return (*(() if node.position is None else (node.position,)), *node.columns)
    return ()


def _passes(item: Named) -> bool:
    """Does a column only keep its key? It may be one of the query around, and is made there."""
    return isinstance(item.node, Column) and item.node.path == (item.attribute.key,)


def made(plan: Plan) -> set[str]:
    """The keys of all columns that the plan makes anywhere."""
    return {a.key for node in plan.walk() for a in _made_here(node)}


def columns_of(node: Node) -> Iterator[Column]:
    """The columns an expression reads, those free in the plans of its subqueries too."""
    for part in walk(node):
        if isinstance(part, Column):
            yield part
        elif isinstance(part, SubqueryCall):
            yield from free(part.plan)


def reads(node: Node) -> set[str]:
    """The keys of the columns an expression reads."""
    return {c.path[0] for c in columns_of(node)}


def free(plan: Plan) -> tuple[Column, ...]:
    """The columns that a plan reads and does not make: those of the query around it, each once."""
    found: dict[tuple[str, ...], Column] = {}
    for node in plan.walk():
        for expression in node.expressions:
            found.update((n.path, n) for n in walk(expression) if isinstance(n, Column))
    inside = made(plan)
    return tuple(c for path, c in found.items() if path[0] not in inside)


def _renamed(plan: Plan, new: dict[str, str], tables: dict[str, str]) -> Plan:
    def column(node: Node) -> Node | None:
        if isinstance(node, Column) and node.path[0] in new:
            return replace(node, path=(new[node.path[0]], *node.path[1:]))
        if isinstance(node, SubqueryCall):
            args = tuple(rewrite(a, column) for a in node.args)
            return replace(node, args=args, plan=_renamed(node.plan, new, tables))
        return None

    def attribute(a: Attribute) -> Attribute:
        return replace(a, key=new.get(a.key, a.key))

    def named(items: tuple[Named, ...]) -> tuple[Named, ...]:
        return tuple(replace(i, attribute=attribute(i.attribute)) for i in items)

    plan = with_children(plan, tuple(_renamed(child, new, tables) for child in plan.children))
    plan = with_expressions(plan, lambda node: rewrite(node, column))
    if isinstance(plan, With):
        return replace(plan, definitions=tuple((tables[name], inner) for name, inner in plan.definitions))
    if isinstance(plan, Reference):
        keys = tuple(new.get(k, k) for k in plan.keys) if plan.name in tables else plan.keys
        name = tables.get(plan.name, plan.name)
        return Reference(name, keys, tuple(map(attribute, plan.columns)))
    if isinstance(plan, Recursion):
        name = tables.get(plan.name, plan.name)
        return replace(plan, name=name, columns=tuple(map(attribute, plan.columns)))
    if isinstance(plan, Scan | Values | SetOperation):
        return replace(plan, columns=tuple(map(attribute, plan.columns)))
    if isinstance(plan, Project | Window):
        return replace(plan, items=named(plan.items))
    if isinstance(plan, Aggregate):
        return replace(plan, keys=named(plan.keys), aggregates=named(plan.aggregates))
    return _with_attributes(plan, attribute, named)


def _with_attributes(
    plan: Plan,
    attribute: Callable[[Attribute], Attribute],
    named: Callable[[tuple[Named, ...]], tuple[Named, ...]],
) -> Plan:
    if isinstance(plan, Match):
        kept, rest = (tuple(map(attribute, own)) for own in (plan.kept, plan.rest))
        return replace(plan, kept=kept, rest=rest, measures=named(plan.measures))
    if isinstance(plan, Generate):
        position = None if plan.position is None else attribute(plan.position)
        return replace(plan, position=position, columns=tuple(map(attribute, plan.columns)))
    if isinstance(plan, Single):
        return replace(plan, keys=tuple(map(attribute, plan.keys)))
    return plan
