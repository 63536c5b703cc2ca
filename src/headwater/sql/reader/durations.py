"""How long it is from one moment to another, compared with an interval: ``paid - placed < INTERVAL '2' DAY``.

Spark has a type for such differences, and a plan has none. But what is compared is a number of microseconds, so both sides are read as one. Dates
are their midnights. Moments with and without a zone are not mixed, and months have no length.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.sql import operators
from headwater.sql.casts import cast
from headwater.sql.functions.catalogue import apply_function
from headwater.sql.intervals import Interval
from headwater.sql.nodes import Literal, Node
from headwater.sql.operator_readers import COMPARISONS
from headwater.sql.types import LONG, STRING, TIMESTAMP, family

__all__ = ["compared"]

_DAY = 86_400_000_000


def compared(node: exp.Expr, read: Callable[[exp.Expr], Node], interval: Callable[[exp.Expr], Interval]) -> Node | None:
    """A comparison of differences and intervals; None where it is another one."""
    names = ("this", "low", "high") if isinstance(node, exp.Between) else ("this", "expression")
    if not isinstance(node, exp.Between) and type(node) not in COMPARISONS:
        return None
    sides = [node.args[n].unnest() for n in names if node.args.get(n) is not None]
    if not any(isinstance(s, exp.Interval) for s in sides):
        return None
    found = [_micros(side, read, interval) for side in sides]
    known = [f for f in found if f is not None]
    if len(known) < len(names):
        return None
    return operators.between(*known) if len(known) == 3 else operators.compare(COMPARISONS[type(node)], *known)


def _micros(side: exp.Expr, read: Callable[[exp.Expr], Node], interval: Callable[[exp.Expr], Interval]) -> Node | None:
    if isinstance(side, exp.Interval):
        length = interval(side)
        return None if length.months else Literal(length.days * _DAY + length.micros, LONG)
    if not isinstance(side, exp.Sub) or isinstance(side.expression, exp.Interval):
        return None
    end, start = read(side.this), read(side.expression)
    kinds = {family(end.dtype), family(start.dtype)}
    if kinds <= {"date", "timestamp"}:
        end, start = cast(end, TIMESTAMP), cast(start, TIMESTAMP)
    elif kinds != {"timestamp_ntz"}:
        return None
    return apply_function("timestampdiff", [Literal("MICROSECOND", STRING), start, end])
