"""What an aggregate gives for no rows: the counts give 0, the collections an empty one, all others null.

A subquery such as ``(SELECT count(*) FROM u WHERE u.k = t.k)`` is computed per key and joined from the left: a key
without rows finds no partner, and the join's null has to become what the aggregate would have said. Those that say
something never say null otherwise.
"""

from __future__ import annotations

from headwater.sql.functions.catalogue import empty_value
from headwater.sql.nodes import AggregateCall, Literal, Node, call
from headwater.sql.plan import Named

__all__ = ["of_no_rows"]


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
    value, dtype = empty_value(item.node.op), item.attribute.dtype
    if value is None:
        return column
    return call("coalesce", (column, call("array", (), dtype) if value == [] else Literal(value, dtype)), dtype)
