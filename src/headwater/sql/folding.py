"""Constant folding: a part of an expression that reads no row is computed when the text is read.

Many functions look at an argument when they are read: a pattern, a format, a share, a number of rows. Whether it is
one literal or several that are put together must make no difference: ``split(s, concat('a', 'b'))`` is checked as
``split(s, 'ab')`` is, at the same moment and with the same words. So `headwater.sql.calls` folds the
arguments of every call before the function sees them, and a view that was accepted does not fail at its first rows.
What cannot be computed, such as an overflow, stays as it is: it is an error only if a row needs it.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.sql.evaluation import Expression, evaluate
from headwater.sql.functions.user import is_user
from headwater.sql.nodes import Call, Literal, Node, Refused, walk
from headwater.sql.types import family

__all__ = ["folded"]

_FAMILIES = frozenset({"string", "integer", "decimal", "boolean", "float"})
_MOST_CHARACTERS = 10_000
_UNBOUND = frozenset({"variable", "lambda"})


def folded(node: Node) -> Node:
    """The constant that an expression is, or the expression.

    >>> from headwater.sql.nodes import call
    >>> folded(call("||", (Literal("a", pa.string()), Literal("b", pa.string())), pa.string()))
    Literal(value='ab', dtype=DataType(string))
    """
    if not isinstance(node, Call) or family(node.dtype) not in _FAMILIES or not _is_constant(node):
        return node
    try:
        value = evaluate(Expression("a constant", node), pa.table({"row": pa.nulls(1, pa.int8())}))[0].as_py()
    except (ExpressionError, Refused):
        return node
    return node if isinstance(value, str) and len(value) > _MOST_CHARACTERS else Literal(value, node.dtype)


def _is_constant(node: Node) -> bool:
    parts = (p for p in walk(node) if not isinstance(p, Literal))
    return all(isinstance(p, Call) and p.op not in _UNBOUND and not is_user(p.op) for p in parts)
