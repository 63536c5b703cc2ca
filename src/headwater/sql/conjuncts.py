"""The parts of a condition that say something about single columns, for skipping files.

A condition ``a > 5 AND b IN (1, 2) AND f(c)`` cannot hold in a file whose statistics say ``a <= 5``. `conjuncts` finds
the parts at the top of the AND that compare one column with constants; whatever it does not understand contributes
nothing, so fewer parts only mean fewer files skipped.

Invariants: a row for which the whole condition is true makes every conjunct true. Constants are in the column's own
type or a wider exact one (an int column may meet a Decimal). Statistics do not count NaN, which is greater
than every number, so a float column contributes only parts that no NaN can satisfy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast, get_args
from typing import Literal as OneOf

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.sql.nodes import Call, Column, Literal, Node
from headwater.sql.types import digits_of, family

__all__ = ["Conjunct", "Op", "conjuncts_of", "equalities_of", "plain_column"]

Op = OneOf["=", "<", "<=", ">", ">=", "!=", "in", "is null", "is not null"]

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BARS_NAN = {"=", "<", "<=", "in", "is null", "is not null"}


@dataclass(frozen=True, slots=True)
class Conjunct:
    """``column op values``: no value for the null tests, several for ``in``, one for the rest.

    >>> Conjunct("a", ">", (5,))
    Conjunct(column='a', op='>', values=(5,), alias=None)
    """

    column: str
    op: Op
    values: tuple[Any, ...] = ()
    alias: str | None = None

    def __post_init__(self) -> None:
        if self.op not in get_args(Op):
            raise InputError.bad_argument("op", self.op, f"one of {', '.join(get_args(Op))}")
        wanted = None if self.op == "in" else 0 if self.op.startswith("is ") else 1
        if wanted is not None and len(self.values) != wanted:
            raise InputError.bad_argument("values", self.values, f"{wanted} value(s) for `{self.op}`")


def _parts(node: Node) -> Iterator[Call]:
    if isinstance(node, Call) and node.op == "and":
        for part in node.args:
            yield from _parts(part)
    elif isinstance(node, Call):
        yield node


def plain_column(node: Node) -> Column | None:
    """The column under casts that keep order and value."""
    while isinstance(node, Call) and node.op == "cast" and _exact(node.args[0].dtype, node.dtype):
        node = node.args[0]
    return node if isinstance(node, Column) and len(node.path) == 1 else None


def _exact(source: pa.DataType, target: pa.DataType) -> bool:
    pair = (family(source), family(target))
    if pair == ("integer", "float"):
        return bool(source != pa.int64() and target == pa.float64())
    if pair == ("float", "float"):
        return bool(target == pa.float64())
    have, want = digits_of(source), digits_of(target)
    if have is None or want is None:
        return False
    return want[1] >= have[1] and want[0] - want[1] >= have[0] - have[1]


def conjuncts_of(node: Node) -> list[Conjunct]:
    """The conjuncts of a condition, in the order they are written."""
    found = []
    for part in _parts(node):
        conjunct = _conjunct(part)
        if conjunct is not None:
            found.append(conjunct)
    return found


def _conjunct(part: Call) -> Conjunct | None:
    op, column = part.op, plain_column(part.args[0])
    values: tuple[object, ...] = ()
    if op in ("is null", "is not null"):
        column = part.args[0] if isinstance(part.args[0], Column) and len(part.args[0].path) == 1 else None
    elif op == "in":
        if not all(isinstance(i, Literal) for i in part.args[1:]):
            return None
        values = tuple(i.value for i in part.args[1:] if isinstance(i, Literal) and i.value is not None)
    elif op in _MIRRORED:
        left, right = part.args
        if isinstance(left, Literal) and not isinstance(right, Literal):
            op, column, left, right = _MIRRORED[op], plain_column(right), right, left
        if not isinstance(right, Literal) or right.value is None:
            return None
        values = (right.value,)
    else:
        return None
    if column is None or any(isinstance(v, float) and math.isnan(v) for v in values):
        return None
    if family(column.dtype) == "float" and op not in _BARS_NAN:
        return None
    return Conjunct(column.path[0], cast("Op", op), values, column.alias)


def equalities_of(node: Node, left_alias: str, right_alias: str) -> list[tuple[str, str]]:
    """The pairs of columns that the top of the AND sets equal, one of each alias."""
    pairs = []
    for part in _parts(node):
        if part.op != "=":
            continue
        a, b = plain_column(part.args[0]), plain_column(part.args[1])
        if a is None or b is None:
            continue
        if (a.alias, b.alias) == (right_alias, left_alias):
            a, b = b, a
        if (a.alias, b.alias) == (left_alias, right_alias):
            pairs.append((a.path[0], b.path[0]))
    return pairs
