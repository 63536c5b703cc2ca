"""One answer for every query: unread columns go first, then orders are made total.

`headwater.incremental.planning.order` breaks ties by all columns of a row. A circuit arranges the columns of an order,
so a tie must not be broken by a column that nothing else reads: it would be read from the table and kept in the state
for that alone. Rows that are equal in every column that is read are interchangeable, whichever comes first. So the plan
is pruned before its orders are made total.

Circuits and the query that a view is verified with are both made of the plan that `determined` gives.
"""

from __future__ import annotations

from headwater.incremental.planning import order
from headwater.sql.plan import Plan
from headwater.sql.rewriting.pruning import pruned

__all__ = ["determined"]


def determined(plan: Plan, *, any_rows: bool = False) -> Plan:
    """The same plan with one answer; a plan that has one stays as it is.

    With ``any_rows`` a LIMIT without an order is by all columns that are read.

    >>> import pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> schema = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("c", pa.int32())])
    >>> text = "SELECT a, lag(a) OVER (ORDER BY b) AS before FROM t"
    >>> print(determined(parse_query(text, lambda *_: schema)).dump(), end="")
    project a#1, lag#4
      project a#1, lag#4
        window lag(a#1, 1, null) over (order by b#2 asc nulls first, a#1 asc nulls first) as lag#4
          project a#1, b#2
            scan t [a#1, b#2, c#3]
    """
    if order.determined(plan, any_rows=any_rows) == plan:
        return plan
    return order.determined(pruned(plan), any_rows=any_rows)
