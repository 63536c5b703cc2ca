"""What an aggregate gives for no rows: the counts give 0, the collections an empty one, all others null.

A subquery such as ``(SELECT count(*) FROM u WHERE u.k = t.k)`` is computed per key and joined from the left: a key
without rows finds no partner, and the join's null has to become what the aggregate would have said. Those that say
something never say null otherwise.
"""

from __future__ import annotations

from headwater.sql.nodes import AggregateCall, Literal, Node, call
from headwater.sql.plan import Named
from headwater.sql.types import LONG

__all__ = ["of_no_rows"]

_ZERO = {"count", "count_if", "approx_count_distinct", "regr_count"}
_EMPTY = {"collect_list", "collect_set", "array_agg"}


def of_no_rows(item: Named) -> Node:
    """The column of an aggregate behind a left join, as if every row had found its group.

    >>> import pyarrow as pa
    >>> from headwater.sql.plan import Attribute
    >>> from headwater.sql.plan.text import expression_text
    >>> expression_text(of_no_rows(Named(Attribute("n", "n#1", pa.int64()), AggregateCall("count", (), pa.int64()))))
    'coalesce(n#1, 0)'
    """
    column = item.attribute.column
    assert isinstance(item.node, AggregateCall)
    if item.node.op in _ZERO:
        return call("coalesce", (column, Literal(0, LONG)), item.attribute.dtype)
    if item.node.op in _EMPTY:
        return call("coalesce", (column, call("array", (), item.attribute.dtype)), item.attribute.dtype)
    return column
