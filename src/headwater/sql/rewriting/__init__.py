"""rewriting: plans made into plans that give the same rows and are easier to compute.

One rule a file, each a function from a plan to a plan. `decorrelated` leaves no subquery in any expression; `shared`
keeps definitions that are read more than once, at the top; `pushed` moves conditions down and orders joins; `pruned`
drops columns; `merged` tidies up.
"""

from headwater.sql.plan import Plan
from headwater.sql.rewriting.decorrelation import decorrelated
from headwater.sql.rewriting.merging import merged
from headwater.sql.rewriting.pruning import pruned
from headwater.sql.rewriting.pushing import pushed
from headwater.sql.rewriting.sharing import shared

__all__ = ["decorrelated", "merged", "prepared", "pruned", "pushed", "shared"]


def prepared(plan: Plan) -> Plan:
    """The plan after all rules, in their order; raises `Refused` for a subquery that no join can say.

    >>> import pyarrow as pa
    >>> from headwater.sql.query import parse_query
    >>> schema = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("c", pa.int32())])
    >>> text = "SELECT t.a, u.b FROM t, t AS u WHERE t.a = u.a AND u.b > 3"
    >>> print(prepared(parse_query(text, lambda *_: schema)).dump(), end="")
    project a#1, b#5
      inner join on (a#1 = a#4)
        project a#1
          scan t [a#1, b#2, c#3]
        filter (b#5 > 3)
          project a#4, b#5
            scan t [a#4, b#5, c#6]
    """
    return merged(pruned(pushed(shared(decorrelated(plan)))))
