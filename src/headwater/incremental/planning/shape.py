"""Shapes: sub-plans that are the same up to the numbers of their columns, found once, with what is read of them.

A plan names columns by keys such as ``a#7``, which are given out anew whenever a query is read. A `Shape` names them by
their places in the children instead, so that two sub-plans that compute the same are one shape, and become one part of
the circuit: the two readings of a common table, and the same subquery written twice.

The second question is what is needed: a column that nobody reads should not be kept in anybody's state. Whoever reads a
shape says which places of its output it needs, all readers together, before anything is built.

Invariants: a shape comes after its children in `Shapes.all`; the columns of a shape's plan and of any equal plan agree
by place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, cast

from headwater.base.errors import UnsupportedError
from headwater.sql.nodes import Column, Literal, Node, SubqueryCall, walk
from headwater.sql.plan import Attribute, Plan, Recursion, Reference, Scan, With

__all__ = ["Shape", "Shapes", "keys_of"]


def keys_of(*nodes: Node) -> set[str]:
    """The keys of the columns that some expressions read.

    >>> import pyarrow as pa
    >>> sorted(keys_of(Column(None, ("a#1", "x"), pa.int32()), Literal(1, pa.int32())))
    ['a#1']
    """
    return {n.path[0] for node in nodes for n in walk(node) if isinstance(n, Column)}


@dataclass(eq=False, slots=True)
class Shape:
    """One thing to be computed: a plan that stands for all equal ones, and the shapes it reads."""

    number: int
    plan: Plan
    children: tuple[Shape, ...]
    variables: frozenset[str] = frozenset()
    needed: set[int] = field(default_factory=set)
    places: tuple[int, ...] = ()

    def need(self, places: Iterator[int] | set[int]) -> None:
        """These places of the output are read by somebody."""
        self.needed.update(places)

    def need_keys(self, output: Sequence[Attribute], keys: set[str]) -> None:
        """The columns with these keys are read, by a reader to whom the output is ``output``."""
        self.needed.update(i for i, a in enumerate(output) if a.key in keys)


class Shapes:
    """The shapes of a plan, children first."""

    def __init__(self) -> None:
        self.all: list[Shape] = []
        self._known: dict[object, Shape] = {}
        self._names: dict[str, tuple[Shape, tuple[Attribute, ...]]] = {}

    def of(self, plan: Plan) -> Shape:
        """The shape of a plan."""
        if isinstance(plan, With):
            for name, definition in plan.definitions:
                self._names[name] = (self.of(definition), definition.output)
            return self.of(plan.child)
        if isinstance(plan, Reference):
            return self._reading(plan)
        for subquery in plan.subqueries():
            why = "a circuit computes subqueries as joins"
            raise UnsupportedError.operation(f"a subquery ({subquery.kind})", why, "decorrelate the plan before")
        recursion = getattr(plan, "step", None)
        children = tuple(self.of(c) for c in plan.children) if recursion is None else self._recursion(plan)
        return self._found(plan, children, self._signature(plan))

    def _reading(self, plan: Reference) -> Shape:
        definition, output = self._names[plan.name]
        keys = [a.key for a in output]
        places = tuple(keys.index(k) for k in plan.keys)
        shape = self._found(plan, (definition,), ("reading", places))
        shape.places = places
        return shape

    def _recursion(self, plan: Any) -> tuple[Shape, ...]:
        base = self.of(plan.base)
        variable = Shape(len(self.all), plan.base, (), frozenset([plan.name]))
        self.all.append(variable)
        before = self._names.get(plan.name)
        self._names[plan.name] = (variable, plan.columns)
        step = self.of(plan.step)
        if before is not None:
            self._names[plan.name] = before
        return (base, variable, step)

    def _found(self, plan: Plan, children: tuple[Shape, ...], signature: object) -> Shape:
        key = (type(plan).__name__, tuple(c.number for c in children), signature)
        shape = self._known.get(key)
        if shape is None:
            variables = frozenset(v for c in children for v in c.variables)
            if isinstance(plan, Recursion):
                variables -= {plan.name}
            shape = Shape(len(self.all), plan, children, variables)
            self.all.append(shape)
            self._known[key] = shape
        return shape

    @staticmethod
    def _signature(plan: Plan) -> object:
        places: dict[str, object] = {}
        for c, child in enumerate(plan.children):
            for i, a in enumerate(child.output):
                places.setdefault(a.key, (c, i))
        if isinstance(plan, Scan):
            return (plan.relation, tuple((a.name, str(a.dtype)) for a in plan.columns))
        return tuple(_written(getattr(plan, f.name), places) for f in fields(cast("Any", plan)))


def _written(value: object, places: Mapping[str, object]) -> object:
    """A value of a plan's field with places for keys."""
    if isinstance(value, Plan):
        return "child"
    if isinstance(value, Attribute):
        return str(value.dtype)
    if isinstance(value, Column):
        return ("column", places.get(value.path[0], value.path[0]), value.path[1:], str(value.dtype))
    if isinstance(value, Literal):
        return ("literal", repr(value.value), str(value.dtype))
    assert not isinstance(value, SubqueryCall), "subqueries were refused"
    if isinstance(value, str):
        return places.get(value, value)
    if isinstance(value, tuple):
        return tuple(_written(v, places) for v in value)
    if is_dataclass(value):
        return (type(value).__name__, *(_written(getattr(value, f.name), places) for f in fields(value)))
    return repr(value)
