"""What the reading of one plan shares: the keys given out, the definitions of WITH, and who reads which class.

Spark names columns by numbers that change with every run. Here they get keys in the order in which the tree is read, as
the reader of SQL gives them, so that the plan of a text is the same each time, and on every version of Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa

from headwater.sql.analyzed.datatypes import INTERVAL, dtype_of
from headwater.sql.analyzed.tree import Tree
from headwater.sql.functions.user import UserFunction
from headwater.sql.nodes import Column, Literal, Node, Refused
from headwater.sql.nullability import nullable
from headwater.sql.plan import Attribute, Named, Plan
from headwater.sql.types import NULL, has_void, name_of

__all__ = [
    "EXPRESSIONS",
    "PLANS",
    "Definition",
    "Expressions",
    "Reading",
    "Rows",
    "Scope",
    "expression",
    "plan",
    "refused",
]

_LONGEST_KEY = 40
ExpressionReader = Callable[["Expressions", Tree], Node]
PlanReader = Callable[["Reading", Tree, "Scope | None"], "Rows"]
E = TypeVar("E", bound=ExpressionReader)
P = TypeVar("P", bound=PlanReader)
EXPRESSIONS: dict[str, ExpressionReader] = {}
PLANS: dict[str, PlanReader] = {}


def expression(*kinds: str) -> Callable[[E], E]:
    """The function below reads expressions of these classes."""

    def register(reader: E) -> E:
        EXPRESSIONS.update(dict.fromkeys(kinds, reader))
        return reader

    return register


def plan(*kinds: str) -> Callable[[P], P]:
    """The function below reads plan nodes of these classes."""

    def register(reader: P) -> P:
        PLANS.update(dict.fromkeys(kinds, reader))
        return reader

    return register


def refused(kind: str) -> Refused:
    """A class that is not read here."""
    return Refused(f"Spark's {kind}", "write it with other functions")


@dataclass(frozen=True, slots=True)
class Rows:
    """A plan, and Spark's number of each column of its output, in order."""

    plan: Plan
    ids: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.ids) == len(self.plan.output), "every column has its number"

    @property
    def columns(self) -> dict[int, Attribute]:
        """The columns by Spark's numbers; of two with one number the first."""
        return dict(reversed(list(zip(self.ids, self.plan.output, strict=True))))


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may name, and those of the queries around it."""

    columns: Mapping[int, Attribute]
    around: Scope | None = None

    def find(self, number: int) -> Attribute | None:
        found = self.columns.get(number)
        return found if found is not None or self.around is None else self.around.find(number)


@dataclass(frozen=True, slots=True)
class Definition:
    """A query of WITH: its name in the plan, and its columns."""

    name: str
    columns: tuple[Attribute, ...]


@dataclass
class Reading:
    """One plan's reading, with the Python functions that it may call."""

    user_functions: Mapping[str, UserFunction] = field(default_factory=dict)
    definitions: dict[int, Definition] = field(default_factory=dict)
    loops: dict[int, Definition] = field(default_factory=dict)
    # An array that PIVOT makes is a column for each of its elements: their numbers, by the array's.
    pivots: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _own: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def rows(self, tree: Tree, around: Scope | None) -> Rows:
        """What a plan node means."""
        reader = PLANS.get(tree.kind)
        if reader is None:
            raise Refused(f"Spark's plan node {tree.kind}", "write the query without it")
        return reader(self, tree, around)

    def attribute(self, name: str, dtype: pa.DataType, *, nullable: bool = True) -> Attribute:
        """A new column, with a key of its own."""
        return Attribute(name, f"{name[:_LONGEST_KEY]}#{next(self._numbers)}", dtype, nullable)

    def named(self, name: str, node: Node) -> Named:
        """A new column for an expression."""
        if node.dtype == INTERVAL:
            raise Refused("a column of intervals", "cast it to a number first")
        if node.dtype != NULL and has_void(node.dtype):
            raise Refused(f"a column of type {name_of(node.dtype)}", "cast the array to its type")
        return Named(self.attribute(name, node.dtype, nullable=nullable(node)), node)

    def own_number(self) -> int:
        """A number for a column that Spark does not have."""
        return -next(self._own)

    def definition_name(self, name: str) -> str:
        """A name for a definition of WITH that no other one has."""
        return f"{name}#{next(self._numbers)}"

    def declared(self, trees: Iterable[Tree]) -> tuple[tuple[Attribute, ...], tuple[int, ...]]:
        """New columns for the attributes that a leaf of the plan declares, and their numbers."""
        attributes, ids = [], []
        for tree in trees:
            dtype = dtype_of(tree.fields["dataType"])
            attributes.append(self.attribute(tree.fields["name"], dtype, nullable=bool(tree.fields["nullable"])))
            ids.append(int(tree.fields["exprId"]))
        return tuple(attributes), tuple(ids)

    def expressions(self, rows: Rows, around: Scope | None) -> Expressions:
        """A reader of expressions over these rows."""
        return Expressions(self, Scope(rows.columns, around))


@dataclass
class Expressions:
    """Reads expressions over one scope; ``variables`` are the parameters of the lambdas around,
    ``shared`` those of With.
    """

    reading: Reading
    scope: Scope
    variables: dict[int, Node] = field(default_factory=dict)
    shared: dict[int, Node] = field(default_factory=dict)
    depth: int = 0

    def read(self, tree: Tree) -> Node:
        """What an expression means."""
        reader = EXPRESSIONS.get(tree.kind)
        if reader is not None:
            return reader(self, tree)
        if "replacement" in tree.fields and len(tree.children) == 1:
            return self.read(tree.children[0])  # what Spark itself computes in its place
        raise refused(tree.kind)

    def children(self, tree: Tree) -> list[Node]:
        """The operands of a node; an interval is none, except of the few that ask for it by themselves."""
        found = [self.read(child) for child in tree.children]
        if any(n.dtype == INTERVAL for n in found):
            raise Refused(f"an interval in Spark's {tree.kind}", "add it to a date or a timestamp")
        return found

    def named(self, tree: Tree) -> tuple[int, Named]:
        """One item of a select list: Spark's number of the column, and what it is.

        A column that only passes through keeps its key, also under another name; `unique` renews what is there twice.
        """
        if tree.kind == "Alias":
            node = self.read(tree.children[0])
            named = self.reading.named(tree.fields["name"], node)
            if isinstance(node, Column) and len(node.path) == 1:
                named = replace(named, attribute=replace(named.attribute, key=node.path[0]))
            return int(tree.fields["exprId"]), named
        if tree.kind != "AttributeReference":
            raise refused(tree.kind)
        found = self.attribute(tree)
        return int(tree.fields["exprId"]), Named(replace(found, name=tree.fields["name"]), found.column)

    def attribute(self, tree: Tree) -> Attribute:
        """The column that an AttributeReference names, of the type that Spark gives it."""
        found = self.scope.find(int(tree.fields["exprId"]))
        if found is None:
            raise Refused(f"the column `{tree.fields['name']}`, which Spark's plan does not define,", "rename it")
        wanted = dtype_of(tree.fields["dataType"])
        if found.dtype != wanted:
            what = f"`{found.name}`, which is {name_of(wanted)} to Spark and {name_of(found.dtype)} here,"
            raise Refused(what, "cast it to the type you want")
        return found


@expression("AttributeReference")
def _attribute(reader: Expressions, tree: Tree) -> Node:
    return reader.attribute(tree).column


@expression(
    "Alias", "KnownNullable", "KnownNotNull", "KnownNotContainsNull", "KnownFloatingPointNormalized", "UnaryPositive"
)
def _same(reader: Expressions, tree: Tree) -> Node:
    return reader.read(tree.children[0])


@expression("With")
def _with(reader: Expressions, tree: Tree) -> Node:
    """Expressions that Spark computes once and names by a number: here each is written where it is used."""
    body, *definitions = tree.children
    for definition in definitions:
        reader.shared[int(definition.fields["id"])] = reader.read(definition.children[0])
    return reader.read(body)


@expression("CommonExpressionRef")
def _shared(reader: Expressions, tree: Tree) -> Node:
    return reader.shared[int(tree.fields["id"])]


@expression("TypedNullLiteral")
def _typed_null(reader: Expressions, tree: Tree) -> Node:
    return Literal(None, reader.read(tree.children[0]).dtype)
