"""``FROM range(5)``: whole numbers, counted out. An array of them is made and taken apart, so that every engine knows
how.

Spark counts without holding the numbers; here they are held, so there may not be too many.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.casts import cast
from headwater.sql.nodes import Literal, Named, Refused, Wrong, call
from headwater.sql.plan import Generate, Limit, Plan, Project, Values
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.scopes import RowScope
from headwater.sql.types import LONG, NULL, array_of

__all__ = ["read_range"]

_MOST = 10_000_000
_FORM = "write range(5), range(1, 5) or range(1, 5, 2)"


def read_range(context: Context, node: exp.Expr) -> Plan:
    """The rows of ``range(end)``, ``range(start, end)`` or ``range(start, end, step)``."""
    given = [_number(context, e) for e in node.expressions]
    if not 1 <= len(given) <= 4:
        raise Wrong(f"range() takes 1 to 4 arguments, and {len(given)} are given", _FORM)
    start, end, step = (0, given[0], 1) if len(given) == 1 else (*given[:3], 1)[:3]
    if step == 0:
        raise Wrong("range() with a step of 0 never ends", _FORM)
    numbers = range(start, end, step)
    if len(numbers) > _MOST:
        raise Refused(f"a range() of {len(numbers)} numbers", f"ask for at most {_MOST}")
    last = numbers[-1] if numbers else start
    bounds = (Literal(start, LONG), Literal(last, LONG), Literal(step if numbers else 1, LONG))
    column = context.attribute("id", LONG, nullable=False)
    made: Plan = Generate(Values(((),), ()), call("sequence", bounds, array_of(LONG)), False, None, (column,))
    made = Project(made, (Named(column, column.column),))
    return made if numbers else Limit(made, 0, 0)


def _number(context: Context, node: exp.Expr) -> int:
    if isinstance(node, exp.Kwarg):
        raise Refused("range() with arguments by name", _FORM)
    value = QueryReader(context, RowScope(()), place="the arguments of a table function").read(node)
    found = cast(value, LONG) if isinstance(value, Literal) and value.dtype != NULL else None
    if not isinstance(found, Literal) or not isinstance(found.value, int):
        raise Wrong("range() counts with constant whole numbers", _FORM)
    return found.value
