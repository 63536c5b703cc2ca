"""Limit: ORDER BY … LIMIT is the first rows in an order, kept as such.

The order is made total: after its own keys come all columns of the row, from left to right, each ascending with nulls
first (`headwater.incremental.planning.order`); so which of two rows that tie is in the answer is determined, and the
same in every recomputation of the plan with that order. A LIMIT without ORDER BY is refused, unless there cannot be
more rows than it allows.
"""

from __future__ import annotations

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.topk import TopK
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.order import order_columns
from headwater.incremental.planning.rows import Rows, line_of
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.sql.plan import Aggregate, Filter, Limit, Plan, Project, Sort, Values, With

__all__ = ["FORM", "most_rows", "ordered_below"]

_ENDLESS = 1 << 60


def most_rows(plan: Plan) -> int | None:
    """How many rows a plan can have, where that is known."""
    if isinstance(plan, Aggregate) and not plan.keys and plan.sets is None:
        return 1
    if isinstance(plan, Values):
        return max(1, len(plan.rows))
    if isinstance(plan, Limit) and plan.count is not None:
        below = most_rows(plan.child)
        return plan.count if below is None else min(below, plan.count)
    if isinstance(plan, Filter | Project | Sort | With):
        return most_rows(plan.child)
    return None


def ordered_below(plan: Limit) -> bool:
    """Is it determined which rows a limit gives? They are if they are sorted,
    or if there are no more than it allows.
    """
    if plan.count == 0:
        return True
    most = most_rows(plan.child)
    if not plan.offset and most is not None and (plan.count is None or most <= plan.count):
        return True
    return isinstance(_sorted(plan.child), Sort)


def _sorted(plan: Plan) -> Plan:
    """The sort below a limit, through projections and the WITH around them."""
    while isinstance(plan, Project | With):
        plan = plan.child
    return plan


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Limit)
    child = shape.children[0]
    child.need(shape.needed)
    if isinstance(plan.child, Sort):
        child.need_keys(plan.child.output, keys_of(*plan.child.expressions))


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Limit)
    if not isinstance(plan.child, Sort):
        most = most_rows(plan.child)
        if not plan.offset and most is not None and (plan.count is None or most <= plan.count):
            return builder.child(shape)
        why = "without ORDER BY any rows may be meant"
        hint = "add ORDER BY, or leave the LIMIT to those who read the view"
        raise UnsupportedError.operation("LIMIT", why, hint).about("limit")
    below = shape.children[0]
    rows = builder.rows(below.children[0])
    sort = plan.child
    scope = rows.scope(sort.child.output)
    stream, order = order_columns(scope, sort.order)
    circuit = builder.circuit
    given = tuple(c if i in shape.needed else None for i, c in enumerate(rows.columns))
    columns = [(c, c) for c in dict.fromkeys(c for c in given if c is not None)] or [(c, c) for c in stream.columns[:1]]
    arranged = circuit.arranged(stream.vertex, [], order, columns=[c for c, _ in columns])
    count = _ENDLESS if plan.count is None else plan.count
    sql = f"{line_of(sort, scope)} {line_of(plan)}"
    vertex = circuit.add(lambda s: TopK(s, count, offset=plan.offset, columns=columns, sql=sql), [arranged])
    return Rows(Stream(circuit, vertex), given)


FORM = Form(_needs, _rows)
