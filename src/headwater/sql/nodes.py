"""The typed tree between Spark's text and an engine's SQL.

sqlglot's tree says what was written; this one says what is meant: names are resolved, every node has its Spark
type (as an Arrow type), and every coercion that Spark would make is a ``cast`` node. Engines then need no
knowledge of Spark's typing, only one form for each operator.

Invariants: operands of a comparison, of ``+ - * / %`` and of ``in`` have one type; ``fallible`` is True for each
node whose evaluation may stop with an error (overflow, division by zero, a bad cast), which decides where
the order of evaluation has to be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

__all__ = ["Call", "Column", "Literal", "Node", "Refused", "call", "walk"]


class Refused(Exception):
    """Something outside the allow list: ``what`` it is, and a ``hint`` what to write instead."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct column when ``path`` has more than one name."""

    alias: str | None
    path: tuple[str, ...]
    dtype: pa.DataType
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


Node = Column | Literal | Call


def call(op: str, args: tuple[Node, ...], dtype: pa.DataType, *, fallible: bool = False) -> Call:
    """A `Call` that is fallible by itself or through an operand.

    >>> call("not", (Literal(True, pa.bool_()),), pa.bool_()).fallible
    False
    """
    return Call(op, args, dtype, fallible or any(a.fallible for a in args))


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, the root first.

    >>> [n.op for n in walk(call("not", (call("not", (), pa.bool_()),), pa.bool_())) if isinstance(n, Call)]
    ['not', 'not']
    """
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, Call):
            pending.extend(reversed(node.args))
