"""Names of columns in which intervals and moments are added: Spark shows what it made of them, not what was written."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from headwater.sql.interval_types import DAY, IntervalType, is_interval
from headwater.sql.intervals.texts import text_of_interval
from headwater.sql.nodes import Literal
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.types import family

__all__ = ["interval_name", "moved_name"]

_MOMENTS = {"date", "timestamp", "timestamp_ntz"}


class _Namer(Protocol):
    reader: QueryReader
    variables: list[set[str]]

    def name(self, node: exp.Expr) -> str: ...


def interval_name(node: Literal) -> str:
    """``INTERVAL '1 02' DAY TO HOUR``.

    >>> interval_name(Literal(86_400_000_000, DAY))
    "INTERVAL '1' DAY"
    """
    assert isinstance(node.value, int) and isinstance(node.dtype, IntervalType)
    return text_of_interval(node.value, node.dtype)


def moved_name(namer: _Namer, node: exp.Expr) -> str | None:
    """The name of ``+``, ``-`` or ``*`` with an interval; None where it is as written."""
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul) or not _may_move(namer, node):
        return None
    if node.meta.get("together"):
        found = namer.reader.read(node)
        return interval_name(found) if isinstance(found, Literal) else None
    left, right = node.this, node.expression
    kinds = [namer.reader.read(side).dtype for side in (left, right)]
    if is_interval(kinds[0]) and not is_interval(kinds[1]) and isinstance(node, exp.Add):
        left, right, kinds = right, left, kinds[::-1]
    if (counted := _counted_name(namer, node, kinds)) is not None:
        return counted
    if isinstance(node, exp.Mul):
        return f"({namer.name(right)} * {namer.name(left)})" if is_interval(kinds[1]) else None
    if family(kinds[0]) not in _MOMENTS or not is_interval(kinds[1]):
        return None
    if family(kinds[0]) == "date" and kinds[1] == DAY:  # which is date_add() to Spark
        count = f"extractansiintervaldays({namer.name(right)})"
        return f"date_add({namer.name(left)}, {f'(- {count})' if isinstance(node, exp.Sub) else count})"
    return f"{namer.name(left)} {'-' if isinstance(node, exp.Sub) else '+'} {namer.name(right)}"


def _counted_name(namer: _Namer, node: exp.Expr, kinds: list[pa.DataType]) -> str | None:
    """``day + 1`` is date_add() to Spark, and ``day - 1`` date_sub()."""
    families = [family(k) for k in kinds]
    if families == ["date", "integer"] and isinstance(node, exp.Add | exp.Sub):
        word = "date_add" if isinstance(node, exp.Add) else "date_sub"
        return f"{word}({namer.name(node.this)}, {namer.name(node.expression)})"
    if families == ["integer", "date"] and isinstance(node, exp.Add):
        return f"date_add({namer.name(node.expression)}, {namer.name(node.this)})"
    return None


def _may_move(namer: _Namer, node: exp.Expr) -> bool:
    """Is there an interval in it? Asked of the words first: types cost a second reading."""
    if namer.variables:
        return False
    if node.find(exp.Interval) is not None:
        return True
    scope = namer.reader.rows
    known = [*(e.attribute.dtype for e in scope.entries), *(n.dtype for n in scope.aliases.values())]
    if any(map(is_interval, known)):
        return True
    moments = any(family(t) in _MOMENTS for t in known)
    if moments and isinstance(node, exp.Add | exp.Sub):
        return True
    return node.find(exp.Anonymous, exp.Cast) is not None
