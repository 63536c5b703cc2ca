"""Rows: the stream that a shape has become, with the name of the column at each place.

Streams name their columns as people do (``a``, and ``a 2`` for a second one), never by the keys of a plan: so what a
part of a circuit is called, and with it the state it finds again, depends on what it computes and on nothing around it.
A `Scope` goes from the keys of one plan to these names, for expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.planning.zeros import ZeroFree, is_normal
from headwater.sql.nodes import Call, Column, Literal, Node, rewrite
from headwater.sql.plan import Attribute, Plan
from headwater.sql.plan.rebuilding import with_expressions
from headwater.sql.plan.text import expression_text
from headwater.sql.plan.wording import worded
from headwater.sql.vectorised import Program

__all__ = ["Computed", "Rows", "Scope", "line_of", "names_for"]

Computed = str | Program
"""A column of a stream by its name, or a program over its columns."""

_KEY = re.compile(r"(?<=[^\s(,])#\d+\b")


@dataclass(frozen=True, slots=True)
class Rows:
    """A stream, and where it has the columns of a plan: None for those that nobody reads."""

    stream: Stream
    columns: tuple[str | None, ...]

    def scope(self, output: Sequence[Attribute]) -> Scope:
        """The names by the keys of a reader's plan."""
        names: dict[str, str] = {}
        for a, column in zip(output, self.columns, strict=True):
            if column is not None:
                names.setdefault(a.key, column)
        return Scope(self.stream, names)


@dataclass(frozen=True, slots=True)
class Scope:
    """Names of columns by key, over a stream."""

    stream: Stream
    names: Mapping[str, str]

    def renamed(self, node: Node) -> Node:
        """An expression over the stream's columns instead of keys."""

        def change(part: Node) -> Node | None:
            if not isinstance(part, Column):
                return None
            name = self.names.get(part.path[0])
            if name is None:
                why = "it is of rows that a circuit does not have at this place"
                hint = "join the tables by a condition instead"
                raise UnsupportedError.operation(f"column `{part.path[0].split('#')[0]}` of an outer query", why, hint)
            return Column(None, (name, *part.path[1:]), part.dtype, part.nullable)

        return rewrite(node, change)

    def computed(self, node: Node) -> Computed:
        """The column of the stream that an expression is, or a program."""
        named = self.renamed(node)
        if isinstance(named, Column) and len(named.path) == 1:
            return named.path[0]
        return Program(named, self.stream.schema, expression_text(named))

    def program(self, node: Node) -> Program:
        """The program of an expression."""
        named = self.renamed(node)
        return Program(named, self.stream.schema, expression_text(named))

    def text(self, node: Node) -> str:
        """An expression as text, which state may be found by; pictures show it in words."""
        text = expression_text(self.renamed(node))
        self.caption(text, self.words(node))
        return text

    def words(self, node: Node) -> str:
        """An expression for people."""
        return expression_text(worded(self.renamed(node)))

    def caption(self, text: str, words: str) -> None:
        """Let pictures show a text in these words."""
        if words != text:
            self.stream.circuit.captions[text] = words

    def key(self, node: Node) -> Computed:
        """The same for a key of a join, an order or a partition: of floats, -0.0 is 0.0."""
        if pa.types.is_floating(node.dtype):
            zero = Literal(0.0, node.dtype)
            return self.program(Call("+", (node, zero), node.dtype, node.fallible))
        if not is_normal(node.dtype):
            named = self.renamed(node)
            return ZeroFree(named, self.stream.schema, f"{expression_text(named)} without -0.0")
        return self.computed(node)

    def nested_key(self, node: Node) -> Computed:
        """The same where plain floats are looked after elsewhere."""
        return self.computed(node) if is_normal(node.dtype) else self.key(node)


def names_for(wanted: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Names for columns, none of them twice.

    >>> names_for(["a", "b", "a"], ["b"])
    ['a', 'b 2', 'a 2']
    """
    known = set(taken)
    found = []
    for name in wanted:
        one, number = name, 1
        while one in known:
            number += 1
            one = f"{name} {number}"
        known.add(one)
        found.append(one)
    return found


def line_of(plan: Plan, *scopes: Scope) -> str:
    """A plan's node in one line, with the names of columns for their keys."""
    names = {key: name for scope in scopes for key, name in scope.names.items()}
    line = _renamed(plan.line(), names)
    for scope in scopes[:1]:
        scope.caption(line, _renamed(with_expressions(plan, worded).line(), names))
    return line


def _renamed(line: str, names: Mapping[str, str]) -> str:
    if names:
        pattern = "|".join(re.escape(k) for k in sorted(names, key=len, reverse=True))
        line = re.sub(rf"(?<![\w#])(?:{pattern})(?![\w#])", lambda m: names[m[0]], line)
    return _KEY.sub("", line)
