"""The typed tree between Spark's text and an engine's SQL.

sqlglot's tree says what was written; this one says what is meant: names are resolved, every node has its Spark
type (as an Arrow type), and every coercion that Spark would make is a ``cast`` node. Engines then need no
knowledge of Spark's typing, only one form for each operator.

A plan holds expressions, and a subquery is an expression that holds a plan, so what all plans have in common stands
here; their kinds are in `headwater.sql.plan`.

Invariants: operands of a comparison, of ``+ - * / %`` and of ``in`` have one type; ``fallible`` is True for each
node whose evaluation may stop with an error (overflow, division by zero, a bad cast), which decides where
the order of evaluation has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import ClassVar, TypeAlias

import pyarrow as pa

from headwater.base.errors import Hint

__all__ = [
    "AggregateCall",
    "Attribute",
    "Call",
    "Column",
    "Frame",
    "Literal",
    "Named",
    "Node",
    "Offset",
    "Ordering",
    "Plan",
    "Refused",
    "SubqueryCall",
    "Unbound",
    "WindowCall",
    "Wrong",
    "call",
    "function_of",
    "parts_of",
    "rewrite",
    "variable",
    "walk",
]


class Refused(Exception):
    """Something outside the allow list: ``what`` it is, and a ``hint`` what to write instead."""

    def __init__(self, what: str, hint: Hint, *, part: object = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.position: int | None = None
        # The part of the parsed text that is meant, for whoever can look up its position.
        self.part = part


class Wrong(Refused):
    """A mistake that Spark would not take either; ``what`` is a whole sentence."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct column when ``path`` has more than one name."""

    alias: str | None
    path: tuple[str, ...]
    dtype: pa.DataType
    nullable: bool = True
    fallible: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant as a Python value: None, bool, int, float, Decimal, str, bytes, date or datetime."""

    value: object
    dtype: pa.DataType
    fallible: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function over typed operands."""

    op: str
    args: tuple[Node, ...]
    dtype: pa.DataType
    fallible: bool


@dataclass(frozen=True, slots=True)
class Ordering:
    """One key of an ORDER BY."""

    node: Node
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One value of many rows: ``op`` over ``args``, of the rows for which ``where`` is true.

    ``within`` is the order in which the rows are taken, where the answer depends on it: of several values that would
    do, the first is given.
    """

    op: str
    args: tuple[Node, ...]
    dtype: pa.DataType
    distinct: bool = False
    where: Node | None = None
    within: tuple[Ordering, ...] = ()
    fallible: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Offset:
    """A distance along the key of a RANGE frame, negative before the current row: months, days, microseconds,
    or a number of ``dtype``.
    """

    amount: int | float | Decimal
    unit: str
    dtype: pa.DataType

    @property
    def before(self) -> bool:
        """Is it before the current row?"""
        return self.amount < 0


@dataclass(frozen=True, slots=True)
class Frame:
    """``ROWS`` or ``RANGE`` between two bounds: None is unbounded, 0 the current row, -n before it, +n after it.

    Along whole numbers an offset is an int; along other keys it is an `Offset`.
    """

    unit: str
    start: int | Offset | None
    end: int | Offset | None


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function of a row and its neighbours: an aggregate over a frame, a rank, or lag and lead.

    ``order`` says which rows are in the frame and which are peers, ``within`` in which order the rows of a frame are
    taken.
    """

    op: str
    args: tuple[Node, ...]
    dtype: pa.DataType
    partition: tuple[Node, ...]
    order: tuple[Ordering, ...]
    frame: Frame | None
    distinct: bool = False
    where: Node | None = None
    ignore_nulls: bool = False
    within: tuple[Ordering, ...] = ()
    fallible: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class SubqueryCall:
    """A query inside an expression: ``kind`` is ``scalar``, ``exists`` or ``in`` (then ``args`` holds the value)."""

    kind: str
    plan: Plan
    args: tuple[Node, ...]
    dtype: pa.DataType
    fallible: ClassVar[bool] = False


Node: TypeAlias = Column | Literal | Call | AggregateCall | WindowCall | SubqueryCall


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column on its way through a plan: the name the user sees, and a key that no other column has.

    Two tables may both have an ``id``, and a table may be joined with itself. So each column has a key such as
    ``id#4``, given out once, and expressions name columns by their keys: no scope has to be searched twice.
    """

    name: str
    key: str
    dtype: pa.DataType
    nullable: bool = True

    @property
    def column(self) -> Column:
        """An expression that reads it."""
        return Column(None, (self.key,), self.dtype, self.nullable)

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.dtype, self.nullable)


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the column it becomes."""

    attribute: Attribute
    node: Node


class Plan:
    """The base of all plan nodes (`headwater.sql.plan`): its columns, its children, and itself in one line.

    `dump` prints it, children indented below their parent; subqueries inside expressions are printed below the node
    that holds them.
    """

    __slots__ = ()

    @property
    def output(self) -> tuple[Attribute, ...]:
        """The columns it gives, in order."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans it reads."""
        raise NotImplementedError

    @property
    def expressions(self) -> tuple[Node, ...]:
        """The expressions it evaluates."""
        return ()

    def line(self) -> str:
        """The node without its children."""
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        """Names, types and nullability of the rows."""
        return pa.schema([a.field for a in self.output])

    def subqueries(self) -> Iterator[SubqueryCall]:
        """The subqueries in this node's own expressions."""
        for expression in self.expressions:
            for node in walk(expression):
                if isinstance(node, SubqueryCall):
                    yield node

    def walk(self) -> Iterator[Plan]:
        """Every plan node, those of subqueries too, the root first."""
        yield self
        for child in self.children:
            yield from child.walk()
        for subquery in self.subqueries():
            yield from subquery.plan.walk()

    def dump(self) -> str:
        """The plan as readable text."""
        return "\n".join(self._lines(0)) + "\n"

    def _lines(self, depth: int) -> Iterator[str]:
        yield "  " * depth + self.line()
        for child in self.children:
            yield from child._lines(depth + 1)
        for subquery in self.subqueries():
            yield "  " * (depth + 1) + f"subquery ({subquery.kind})"
            yield from subquery.plan._lines(depth + 2)


def call(op: str, args: tuple[Node, ...], dtype: pa.DataType, *, fallible: bool = False) -> Call:
    """A `Call` that is fallible by itself or through an operand.

    >>> call("not", (Literal(True, pa.bool_()),), pa.bool_()).fallible
    False
    """
    return Call(op, args, dtype, fallible or any(a.fallible for a in args))


def variable(name: str, dtype: pa.DataType) -> Call:
    """A parameter of a lambda, where it is used.

    >>> variable("x", pa.int32()).op
    'variable'
    """
    return Call("variable", (Literal(name, pa.string()),), dtype, False)


def function_of(parameters: tuple[Call, ...], body: Node) -> Call:
    """A lambda: its parameters and, last, its body. It stands only where an operator takes it, and has no type of its
    own.

    >>> x = variable("x", pa.int32())
    >>> function_of((x,), call("minus", (x,), pa.int32(), fallible=True)).fallible
    True
    """
    return call("lambda", (*parameters, body), pa.struct([pa.field("value", body.dtype)]))


@dataclass(frozen=True, slots=True)
class Unbound:
    """A lambda as written, before its parameters have types: ``names`` are its parameters', ``read`` gives its body.

    The names are those of the text with the depth of the lambda behind them, so an inner one hides nothing.
    """

    names: tuple[str, ...]
    read: Callable[[Sequence[Node]], Node]

    def bound(self, *dtypes: pa.DataType) -> Call:
        """The lambda over variables of these types, one a parameter."""
        variables = tuple(variable(n, t) for n, t in zip(self.names, dtypes, strict=True))
        return function_of(variables, self.read(variables))


def parts_of(node: Node) -> tuple[Node, ...]:
    """The nodes directly below ``node``; those of a subquery's plan are not among them."""
    if isinstance(node, Call | SubqueryCall):
        return node.args
    if isinstance(node, AggregateCall | WindowCall):
        where = () if node.where is None else (node.where,)
        within = tuple(o.node for o in node.within)
        if isinstance(node, AggregateCall):
            return (*node.args, *where, *within)
        return (*node.args, *node.partition, *(o.node for o in node.order), *where, *within)
    return ()


def rewrite(node: Node, change: Callable[[Node], Node | None], known: dict[int, Node] | None = None) -> Node:
    """The tree with every node for which ``change`` gives another one replaced, from the root downwards.

    With ``known``, an object that stands in several places of the tree is rewritten once.

    >>> seven = Literal(7, pa.int32())
    >>> rewrite(call("minus", (seven,), pa.int32()), lambda n: Literal(8, n.dtype) if n == seven else None).args
    (Literal(value=8, dtype=DataType(int32)),)
    """
    changed = change(node)
    if changed is not None:
        return changed

    def below(part: Node) -> Node:
        if known is None:
            return rewrite(part, change)
        if id(part) not in known:
            known[id(part)] = rewrite(part, change, known)
        return known[id(part)]

    if isinstance(node, Call):
        return call(node.op, tuple(map(below, node.args)), node.dtype, fallible=node.fallible)
    if isinstance(node, SubqueryCall):
        return replace(node, args=tuple(map(below, node.args)))

    def ordered(order: tuple[Ordering, ...]) -> tuple[Ordering, ...]:
        return tuple(replace(o, node=below(o.node)) for o in order)

    if isinstance(node, AggregateCall):
        return replace(
            node,
            args=tuple(map(below, node.args)),
            where=None if node.where is None else below(node.where),
            within=ordered(node.within),
        )
    if isinstance(node, WindowCall):
        return replace(
            node,
            args=tuple(map(below, node.args)),
            partition=tuple(map(below, node.partition)),
            order=ordered(node.order),
            where=None if node.where is None else below(node.where),
            within=ordered(node.within),
        )
    return node


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, the root first.

    >>> [n.op for n in walk(call("not", (call("not", (), pa.bool_()),), pa.bool_())) if isinstance(n, Call)]
    ['not', 'not']
    """
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(parts_of(node)))
